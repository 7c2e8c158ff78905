"""Inner loops of the searches for unknown strings."""
