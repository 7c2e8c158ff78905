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
    reply = exchange("GET", url, headers={"Accept": "application/json"}, timeout=timeout, tls=tls)
    if reply.status != 200:
        raise TransferError(f"expected a published survey at {url}, got {reply}")
    return checked_digest(Survey.from_json(reply.body), digest, url)


def checked_digest(survey: Survey, digest: str | bytes | None, where: str) -> Survey:
    """The survey found there, if it is the one with this digest, or none was given."""
    if digest is None:
        return survey
    try:
        expected = bytes.fromhex(digest) if isinstance(digest, str) else digest
    except ValueError:
        expected = b""
    if len(expected) != DIGEST_SIZE:
        raise InputError(
            f"expected a digest of {2 * DIGEST_SIZE} hexadecimal digits, got {digest!r:.80}"
        )
    if survey.digest != expected:
        raise InputError(
            f"expected the survey with digest {expected.hex()} at {where}, got {survey.name!r} "
            f"v{survey.version} with {survey.digest.hex()}: it is not the one that was reviewed"
        )
    return survey
