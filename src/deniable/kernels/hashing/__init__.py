"""SHA-256, Bloom positions and local hashing of many strings at once."""
