"""Experiments of our own: accuracy, coverage, false discoveries and attacks, as commands.

Each file runs as `python -m experiments.NAME`. The paper's own experiments are part of the package:
`deniable reproduce NAME`.
"""
