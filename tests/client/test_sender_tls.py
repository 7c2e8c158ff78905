"""Sending over HTTPS: only to the certified host, and no TLS session links two uploads."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from deniable.client import Outbox, Sender
from tests.certificates import make_certificate
from tests.client.test_sender import reports
from tests.faults.cutting_server import Server


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file with key and self-signed certificate of 127.0.0.1."""
    folder = tmp_path_factory.mktemp("tls")
    both = folder / "both.pem"
    both.write_text("".join(file.read_text() for file in make_certificate(folder)))
    return both


def listening(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


def test_uploads_by_tls_are_not_linked_by_a_session(certificate: Path, tmp_path: Path) -> None:
    outbox = Outbox(tmp_path / "o.db")
    outbox.put(*reports(4))
    trusted = ssl.create_default_context(cafile=str(certificate))
    context = listening(certificate)
    with Server(tls=context) as server:
        sent = Sender(outbox, server.url, tls=trusted).send()
    assert (sent.accepted, len(server.stored), sent.problem) == (4, 4, None)
    assert context.session_stats()["accept_good"] == 4
    assert context.session_stats()["hits"] == 0


def test_nothing_is_sent_to_a_stranger(certificate: Path, tmp_path: Path) -> None:
    outbox = Outbox(tmp_path / "o.db")
    outbox.put(*reports(1))
    with Server(tls=listening(certificate)) as server:
        sent = Sender(outbox, server.url).send()
    assert sent.waiting == 1
    assert sent.problem is not None
    assert "certificate" in sent.problem
    assert not server.requests
