"""What the reports say: pure functions of arrays."""
