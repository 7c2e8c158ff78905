"""Benchmarks: `python -m benchmarks.NAME` prints how fast one part of the package is.

The results are in docs/results/benchmarks.md. Tests never assert a time.
"""
