"""Speed, printed and never asserted: `python -m benchmarks.NAME` from the repository's root."""
