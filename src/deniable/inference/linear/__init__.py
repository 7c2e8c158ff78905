"""Joint tables from pair counts, by least squares."""
