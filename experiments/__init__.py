"""Experiments: accuracy, coverage, false discoveries and attacks, as commands.

Each module runs as `python -m experiments.NAME`. docs/results/promises.md and accuracy.md show
figures from docs/results/calibration and data/accuracy.json. The experiments of the paper are in
`experiments.paper`: `python -m experiments.paper` lists them.
"""
