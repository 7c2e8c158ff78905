"""A client whose random bytes a test chooses, to replay what a device once did.

No parameter of `Client` does this, so that nobody answers a real survey with predictable noise.
"""

from __future__ import annotations

from collections.abc import Callable

from deniable.client import Client, Ledger
from deniable.survey import Survey
from tests.surveys import ANY_SURVEY


def replayed_client(
    survey: Survey, *, secret: bytes, entropy: Callable[[int], bytes], ledger: Ledger | None = None
) -> Client:
    """Return a client that draws its random bytes from `entropy`."""
    client = Client(survey, secret=secret, ledger=ledger, limits=ANY_SURVEY)
    client._entropy = entropy
    return client
