"""Experiments: accuracy, coverage, false discoveries and attacks, as commands.

Each module runs as `python -m experiments.NAME`. The results are in docs/results/accuracy.md, which
is generated from docs/results/data/accuracy.json. The experiments of the paper are in
`experiments.paper`: `python -m experiments.paper` lists them.
"""
