"""A server that stores uploads like a collector, and cuts connections at chosen points.

Like a collector, it counts a key once. It remembers every complete request.
"""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from email.message import Message
from typing import Any

LINES = 1 << 16


@dataclass(frozen=True)
class Request:
    line: str
    headers: Message
    body: bytes

    @property
    def key(self) -> str:
        return str(self.headers["Idempotency-Key"])


@dataclass(frozen=True)
class Act:
    """What the server does with one connection.

    read : whether to read the request at all; keep : whether to count it;
    answer : bytes to send, then the connection is closed (None: an answer is never sent, the
    connection stays open until the client leaves). reset : close with a TCP reset.
    """

    read: bool = True
    keep: bool = True
    answer: bytes | None = b""
    reset: bool = False


def reply(status: int, body: Any = None, **headers: str) -> bytes:
    """Return an answer as a collector writes it."""
    data = json.dumps(body or {}).encode()
    kind = "application/json" if status < 300 else "application/problem+json"
    lines = [f"HTTP/1.1 {status} {http.client.responses.get(status, '')}"]
    given = {"Content-Type": kind, "Content-Length": str(len(data))}
    given.update({name.replace("_", "-"): value for name, value in headers.items()})
    lines += [f"{name}: {value}" for name, value in given.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


ACCEPT = Act(answer=reply(202, {"accepted": 1}))
CUT_AT_ONCE = Act(read=False, keep=False, reset=True)
CUT_BEFORE = Act(keep=False)
CUT_AFTER = Act(reset=True)
HALF_AN_ANSWER = Act(answer=b"HTTP/1.1 2")
SILENT = Act(keep=False, answer=None)


def refuse(status: int, detail: str = "", **headers: str) -> Act:
    return Act(keep=False, answer=reply(status, {"title": "no", "detail": detail}, **headers))


@dataclass
class Server:
    """`with Server() as server:` listens on a free port of the loopback interface.

    choose : the act for the n-th connection, n from 0.
    """

    choose: Callable[[int], Act] = lambda n: ACCEPT
    tls: ssl.SSLContext | None = None
    requests: list[Request] = field(default_factory=list)
    stored: dict[str, bytes] = field(default_factory=dict)
    conflicts: list[str] = field(default_factory=list)
    connections: int = 0

    def __enter__(self) -> Server:
        self._lock = threading.Lock()
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.url = f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()

    def _listen(self) -> None:
        while True:
            try:
                client, _ = self._socket.accept()
            except OSError:
                return
            with self._lock:
                act = self.choose(self.connections)
                self.connections += 1
            threading.Thread(target=self._serve, args=(client, act), daemon=True).start()

    def _serve(self, client: socket.socket, act: Act) -> None:
        try:
            if self.tls:
                client = self.tls.wrap_socket(client, server_side=True)
            with client:
                client.settimeout(30)
                self._talk(client, act)
        except OSError:
            pass  # the other side was killed, or left: that is what we are here for

    def _talk(self, client: socket.socket, act: Act) -> None:
        if act.read:
            request = _read(client)
            if request is None:
                return
            with self._lock:
                self.requests.append(request)
                if act.keep:
                    kept = self.stored.setdefault(request.key, request.body)
                    if kept != request.body:
                        self.conflicts.append(request.key)
        if act.answer is None:
            client.recv(1)
        elif act.answer:
            client.sendall(act.answer)
        if act.reset:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def _read(client: socket.socket) -> Request | None:
    """Return the whole request, or None if it ended early."""
    file = client.makefile("rb")
    line = file.readline(LINES).decode("latin-1").rstrip("\r\n")
    headers = http.client.parse_headers(file)
    size = int(headers.get("Content-Length", "0"))
    body = file.read(size)
    whole = bool(line) and len(body) == size
    return Request(line, headers, body) if whole else None
