"""One HTTP exchange: a connection of its own, one request, one answer, within a deadline.

Nothing sent here tells one client from another: the headers are the same for all (no language, no
version of anything, no cookies), no connection carries two requests, and no TLS session is resumed.
Redirections are not followed: what is sent goes to the address that was given, or nowhere.
"""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from email.message import Message
from email.utils import parsedate_to_datetime
from urllib.parse import SplitResult, urlsplit

from deniable.errors import InputError, TransferError
from deniable.survey.survey import DIGEST_SIZE, Survey

AGENT = "deniable"
MOST = 1 << 20
"""Bytes of an answer that are read; a published survey has a few thousand."""


@dataclass(frozen=True)
class Reply:
    """What the server answered."""

    status: int
    headers: Message
    body: bytes

    @property
    def problem(self) -> bool:
        """Is it a collector's own refusal, and not that of a proxy or a hotel's network?"""
        return self.headers.get_content_type() == "application/problem+json"

    @property
    def retry_after(self) -> float | None:
        """Seconds to wait, given in seconds or as a date, by the server's own clock if it tells."""
        text = self.headers.get("Retry-After", "").strip()
        if text.isascii() and text.isdigit():
            return float(text)
        if (until := _timestamp(text)) is None:
            return None
        now = _timestamp(self.headers.get("Date", ""))
        return max(0.0, until - (time.time() if now is None else now))

    def __str__(self) -> str:
        reason = http.client.responses.get(self.status, "")
        text = f"{self.status} {reason}".strip()
        if self.problem:
            with suppress(ValueError, AttributeError, RecursionError):
                found = json.loads(self.body)
                text += f": {found.get('detail') or found.get('title') or ''!s:.300}"
        return shown(text)


def _timestamp(date: str) -> float | None:
    """Seconds since 1970 of an HTTP date, if it is one."""
    try:
        return parsedate_to_datetime(date).timestamp()
    except (ValueError, TypeError, OverflowError, OSError):
        return None


def shown(text: str) -> str:
    """A stranger's words without what would steer a terminal."""
    return "".join(c if c.isprintable() else " " for c in text)


def checked_url(url: str) -> SplitResult:
    """The address in its parts, if it is one that can be used."""
    try:
        parts = urlsplit(url)
        fine = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        fine = False
    if not fine or not url.isascii() or any(c <= " " for c in url) or "@" in parts.netloc:
        raise InputError(f"expected an address such as https://collector.example, got {url!r:.200}")
    return parts


def exchange(
    method: str,
    url: str,
    *,
    headers: Mapping[str, str],
    body: bytes | None = None,
    timeout: float = 30.0,
    tls: ssl.SSLContext | None = None,
    connected: Callable[[], None] = lambda: None,
) -> Reply:
    """Ask once. `connected` is called when there is a connection and nothing was sent yet.

    Raises TransferError when no answer came. `timeout`, in seconds, bounds each step of
    connecting, and the request and its answer as a whole.
    """
    parts = checked_url(url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    connection = _connection(parts, timeout, tls)
    timer = None
    try:
        connection.connect()
        connected()
        timer = threading.Timer(timeout, _cut, [connection.sock])
        timer.daemon = True
        timer.start()
        connection.putrequest(method, target, skip_accept_encoding=True)
        common = {"User-Agent": AGENT, "Connection": "close"}
        if body is not None:
            common["Content-Length"] = str(len(body))
        for name, value in {**common, **headers}.items():
            connection.putheader(name, value)
        connection.endheaders(body)
        response = connection.getresponse()
        data = response.read(MOST + 1)
    except (OSError, http.client.HTTPException) as error:
        why = str(error) or type(error).__name__
        raise TransferError(f"no answer from {parts.netloc}: {why}") from None
    finally:
        if timer is not None:
            timer.cancel()
        connection.close()
    if len(data) > MOST:
        raise TransferError(f"expected at most {MOST} bytes from {parts.netloc}, got more")
    return Reply(response.status, response.headers, data)


def _connection(
    parts: SplitResult, timeout: float, tls: ssl.SSLContext | None
) -> http.client.HTTPConnection:
    host = parts.hostname or ""
    if parts.scheme == "http":
        return http.client.HTTPConnection(host, parts.port, timeout=timeout)
    context = tls or ssl.create_default_context()
    return http.client.HTTPSConnection(host, parts.port, timeout=timeout, context=context)


def _cut(sock: socket.socket) -> None:
    """End the conversation under the feet of whoever waits in it.

    The plain socket's own method: that of a TLS socket would first forget its state.
    """
    with suppress(OSError):  # it may just have ended by itself
        socket.socket.shutdown(sock, socket.SHUT_RDWR)


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
    return check_digest(Survey.from_json(reply.body), digest, url)


def check_digest(survey: Survey, digest: str | bytes | None, where: str) -> Survey:
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
