"""A soak test: every fault at once, for an hour, on one collector: `make soak`."""
