"""Unknown strings of a domain small enough to look at every string."""
