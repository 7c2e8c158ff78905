"""Joint tables of two questions from pair counts, by least squares."""
