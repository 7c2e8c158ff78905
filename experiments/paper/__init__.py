"""The paper's experiments, and every number that it prints compared with ours.

`python -m experiments.paper ID` runs one of them. Each module that `PAPER` names has a function
`run_all(quick, seed)`, which returns the record of the experiment, and its published SEED.
"""

PAPER = {
    "tables": "Tables I and II: two independent variables, top 5 and Other",
    "other": "the four panels with and without Other, and models of it",
    "playstore": "30 categories × paid: intervals, T, p-value",
    "independence": "Appendix A: are p-values uniform under independence?",
    "hashes": "hash strings without a dictionary",
    "urls": "a hundred domains with and without a dictionary",
    "length": "accuracy against the length of strings and n-grams",
    "complexity": "computing time against clients, alphabet and length",
    "threshold": "accuracy and edges against the pair threshold",
    "distributions": "Appendix B: geometric, step and uniform populations",
}
"""The experiments in the order of the paper."""
