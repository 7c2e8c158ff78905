"""HTTP for clients: one request and its response on a new connection, and downloading a survey.

Nothing that is sent distinguishes one client from another: all send the same headers (no language,
versions or cookies), no connection carries two requests, and no TLS session is resumed. Redirects
are not followed, so data goes to the given address only.
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

from deniable.client.limits import DEFAULT_LIMITS, SurveyLimits, read_published
from deniable.errors import InputError, TransferError
from deniable.survey.survey import Survey

USER_AGENT = "deniable"
MAX_RESPONSE_BYTES = 1 << 20
"""Maximum size of a response; a published survey has a few thousand bytes."""


@dataclass(frozen=True)
class Reply:
    """Response of a server.

    Parameters
    ----------
    status : int
        HTTP status code.
    headers : Message
        Headers.
    body : bytes
        Body.
    """

    status: int
    headers: Message
    body: bytes

    @property
    def problem(self) -> bool:
        """Whether a collector refused the request, rather than a proxy or a captive portal."""
        return self.headers.get_content_type() == "application/problem+json"

    @property
    def retry_after(self) -> float | None:
        """Seconds to wait before a retry, from Retry-After (a number or a date); None if absent.

        A date is compared with the server's clock if the response has one.
        """
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
                problem = json.loads(self.body)
                text += f": {problem.get('detail') or problem.get('title') or ''!s:.300}"
        return printable(text)


def _timestamp(date: str) -> float | None:
    """Return the seconds since 1970 of an HTTP date; None if it is not one."""
    try:
        return parsedate_to_datetime(date).timestamp()
    except (ValueError, TypeError, OverflowError, OSError):
        return None


def printable(text: str) -> str:
    """Replace characters that could control a terminal by spaces."""
    return "".join(c if c.isprintable() else " " for c in text)


def parse_url(url: str) -> SplitResult:
    """Return the parts of an HTTP address; raise InputError if it is invalid."""
    try:
        parts = urlsplit(url if isinstance(url, str) else "")
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        (parts.hostname or "").encode("idna")  # raises an error if a part is empty or too long
    except ValueError:
        valid = False
    if not valid or not url.isascii() or any(c <= " " for c in url) or "@" in parts.netloc:
        raise InputError(
            f"the address must be one such as https://collector.example, not {url!r:.200}"
        )
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
    """Send one request, and return the response.

    Parameters
    ----------
    method : str
        HTTP method.
    url : str
        Address.
    headers : mapping
        Headers besides those that all requests have.
    body : bytes or None, default None
        Body of the request.
    timeout : float, default 30.0
        Maximum seconds of each step of connecting, and of the request and response together.
    tls : ssl.SSLContext or None, default None
        Which certificates to trust; None means those of the system.
    connected : callable
        Called once there is a connection and before anything is sent.

    Returns
    -------
    Reply
        The response, whatever its status.

    Raises
    ------
    TransferError
        If there is no response, or if it is too large.
    """
    parts = parse_url(url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    connection = _connection(parts, timeout, tls)
    timer = None
    try:
        connection.connect()
        connected()
        timer = threading.Timer(timeout, _abort, [connection.sock])
        timer.daemon = True
        timer.start()
        connection.putrequest(method, target, skip_accept_encoding=True)
        common = {"User-Agent": USER_AGENT, "Connection": "close"}
        if body is not None:
            common["Content-Length"] = str(len(body))
        for name, value in {**common, **headers}.items():
            connection.putheader(name, value)
        connection.endheaders(body)
        response = connection.getresponse()
        data = response.read(MAX_RESPONSE_BYTES + 1)
    except (OSError, http.client.HTTPException) as error:
        why = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise TransferError(f"no response from {parts.netloc}: {why}") from None
    finally:
        if timer is not None:
            timer.cancel()
        connection.close()
    if len(data) > MAX_RESPONSE_BYTES:
        raise TransferError(
            f"the response of {parts.netloc} has more than {MAX_RESPONSE_BYTES} bytes: is the "
            "address right?"
        )
    return Reply(response.status, response.headers, data)


def _connection(
    parts: SplitResult, timeout: float, tls: ssl.SSLContext | None
) -> http.client.HTTPConnection:
    """Return a connection to the host, not yet opened."""
    host = parts.hostname or ""
    if parts.scheme == "http":
        return http.client.HTTPConnection(host, parts.port, timeout=timeout)
    context = tls or ssl.create_default_context()
    return http.client.HTTPSConnection(host, parts.port, timeout=timeout, context=context)


def _abort(sock: socket.socket) -> None:
    """Shut down a connection that another thread is waiting for.

    It calls the method of the plain socket: that of a TLS socket would discard its state first.
    """
    with suppress(OSError):  # the connection may just have ended
        socket.socket.shutdown(sock, socket.SHUT_RDWR)


def fetch_survey(
    url: str,
    *,
    digest: str | bytes | None = None,
    timeout: float = 30.0,
    tls: ssl.SSLContext | None = None,
    limits: SurveyLimits = DEFAULT_LIMITS,
) -> Survey:
    """Download a published survey; its size and digest are compared before it is parsed.

    Parameters
    ----------
    url : str
        Address, such as https://collector.example/v1/surveys/pages.
    digest : str, bytes or None, default None
        Digest of the reviewed survey: 16 bytes, or 32 hexadecimal digits as `deniable check` prints
        them. Any other survey is refused. Without a digest, the server decides what is asked and
        with which ε.
    timeout : float, default 30.0
        Maximum duration of the request, in seconds.
    tls : ssl.SSLContext or None, default None
        Which certificates to trust; None means those of the system.
    limits : SurveyLimits, default DEFAULT_LIMITS
        Limits of the device; here only the maximum size matters.

    Returns
    -------
    Survey
        The survey.

    Raises
    ------
    TransferError
        If there is no response, or not a survey.
    InputError
        If the survey is invalid, or if it does not have the given digest.
    SurveyRefused
        If it has too many bytes.

    Examples
    --------
    >>> survey = fetch_survey(
    ...     "https://collector.example/v1/surveys/pages", digest="0f3a" * 8
    ... )  # doctest: +SKIP
    """
    reply = exchange("GET", url, headers={"Accept": "application/json"}, timeout=timeout, tls=tls)
    if reply.status != 200:
        raise TransferError(f"there is no published survey at {url}: the server replied {reply}")
    return read_published(reply.body, url, digest=digest, limits=limits)
