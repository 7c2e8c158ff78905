"""The judge of clients in any language: vectors, and a driver that asks a program to replay them.

It imports nothing of our own client, which is judged by it like any other.
"""

from deniable.conformance.cases import FILES, REQUIRED, Case, cases
from deniable.conformance.driver import CaseResult, replay

__all__ = ["FILES", "REQUIRED", "Case", "CaseResult", "cases", "replay"]
