"""What several searches use: tallies, tables, tests, models of language."""
