"""Conformance tests for clients in any language: test vectors, and a driver that replays them.

This package imports nothing of the Python client, which is tested with it like any other client.
"""

from deniable.conformance.cases import FILES, REQUIRED, Case, cases
from deniable.conformance.driver import CaseResult, replay

__all__ = ["FILES", "REQUIRED", "Case", "CaseResult", "cases", "replay"]
