"""Discovery of strings that clients hold, without a list of candidates."""

from deniable.discovery.discovering import discover

__all__ = ["discover"]
