"""Accuracy, as commands: the paper's tables and figures beside ours, and trials of our own.

`deniable reproduce NAME` runs those of the paper; every file here is a command too.
"""

PAPER = {
    "tables": "Tables I and II: two independent variables, top 5 and Other",
    "other": "the four panels with and without Other, and models of it",
    "playstore": "30 categories × paid: intervals, T, p-value",
    "independence": "Appendix A: are p-values uniform under independence?",
    "hashes": "hash strings without a dictionary",
    "urls": "a hundred domains with and without a dictionary",
    "length": "accuracy against the length of strings and n-grams",
    "threshold": "accuracy and edges against the pair threshold",
    "distributions": "Appendix B: geometric, step and uniform populations",
}
"""What `deniable reproduce` knows, in the paper's order."""
