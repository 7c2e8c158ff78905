"""Other systems' files."""
