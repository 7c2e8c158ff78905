"""Strings that nobody listed: discovery from prefixes, with strict control of false strings."""

from deniable.discovery.prefixes import discover_prefixes

__all__ = ["discover_prefixes"]
