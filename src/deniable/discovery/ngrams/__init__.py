"""Unknown strings from reported n-grams: the paper's reading and ours."""
