"""SHA-256, keyed streams and Bloom positions of many strings at once."""
