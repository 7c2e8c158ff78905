"""A collector that cannot listen says why, before it opens its store or prints "listening"."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from deniable.cli.app import app
from deniable.collector.server import reserve_address
from deniable.errors import InputError
from tests.surveys import make_survey


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that another process would share, as granian's sockets allow."""
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        other.bind(("127.0.0.1", 0))
        other.listen()
        yield other.getsockname()[1]


def test_a_second_collector_does_not_share_the_port(taken: int, tmp_path: Path) -> None:
    survey = tmp_path / "survey.json"
    make_survey('[questions.q]\nkind = "boolean"\nepsilon = 1.0').publish(survey)
    store = f"sqlite:///{tmp_path / 'reports.db'}"
    arguments = ["serve", str(survey), "--store", store, "--port", str(taken)]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 1
    assert f"cannot listen on 127.0.0.1 port {taken}: the port is in use" in done.output
    assert "listening" not in done.output


@pytest.mark.parametrize(
    ("host", "port", "message"),
    [
        ("203.0.113.7", 8080, "this machine does not have that address"),
        ("no-such-host.invalid", 8080, "check --host and --port"),
    ],
)
def test_addresses_that_cannot_be(host: str, port: int, message: str) -> None:
    with pytest.raises(InputError, match=message), reserve_address(host, port):
        pass


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere 127.0.0.2 is no address")
def test_one_port_of_two_addresses_is_used_by_two_collectors() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with (
        reserve_address("127.0.0.1", port),
        reserve_address("127.0.0.2", port),
        pytest.raises(InputError, match="in use"),
        reserve_address("127.0.0.1", port),
    ):
        pass
