"""Parts that all searches share: counts, tables of cells, tests, models of strings."""
