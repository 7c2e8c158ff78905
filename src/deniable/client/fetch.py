"""Downloading a published survey, and holding it to the digest that a program was reviewed with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deniable.client.exchange import exchange
from deniable.errors import InputError, TransferError
from deniable.survey.survey import DIGEST_SIZE, Survey

if TYPE_CHECKING:
    import ssl


def fetch_survey(
    url: str,
    *,
    digest: str | bytes | None = None,
    timeout: float = 30.0,
    tls: ssl.SSLContext | None = None,
) -> Survey:
    """The published survey at this address, such as https://collector.example/v1/surveys/pages.

    With `digest` (16 bytes, or 32 hexadecimal digits, as `deniable check` prints them) no other
    survey is taken. Without, whoever answers at that address decides what is asked, at what ε.
    """
    expected = _digest(digest)
    reply = exchange("GET", url, headers={"Accept": "application/json"}, timeout=timeout, tls=tls)
    if reply.status != 200:
        raise TransferError(f"expected a published survey at {url}, got {reply}")
    survey = Survey.from_json(reply.body)
    if expected is not None and survey.digest != expected:
        raise TransferError(
            f"expected the survey with digest {expected.hex()} at {url}, got {survey.name!r} "
            f"v{survey.version} with {survey.digest.hex()}: it was changed since this was pinned"
        )
    return survey


def _digest(digest: str | bytes | None) -> bytes | None:
    if digest is None:
        return None
    try:
        found = bytes.fromhex(digest) if isinstance(digest, str) else digest
    except ValueError:
        found = b""
    if len(found) != DIGEST_SIZE:
        raise InputError(f"expected a digest of {2 * DIGEST_SIZE} hexadecimal digits: {digest!r}")
    return found
