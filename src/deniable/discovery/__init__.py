"""Discovery of strings that clients hold, without a list of candidates."""

from deniable.extras import needs_packages

with needs_packages("deniable.discovery"):
    from deniable.discovery.discovering import discover

__all__ = ["discover"]
