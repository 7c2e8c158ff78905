"""Starting and stopping `deniable serve`: one clear line, the right exit code, no traceback.

Each case runs the real command. Nothing may print "listening" before all of it is known to work.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

import deniable.store
from tests import postgres
from tests.faults.crowd import SURVEY
from tests.faults.server import Server, free_port

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
PR_CAPBSET_DROP = 24
CAPABILITIES = (1, 2, 10)
"""CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH and CAP_NET_BIND_SERVICE: what sets root apart here."""
FIRST_FREE_PORT = Path("/proc/sys/net/ipv4/ip_unprivileged_port_start")
ERROR, USAGE, UNAVAILABLE = 1, 2, 4


def without_rights() -> None:
    """Take from root what ordinary users lack; it has effect on the program that is run next."""
    if os.getuid() == 0:
        for capability in CAPABILITIES:
            ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)


def serve(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a folder until it ends by itself."""
    variables = {"DENIABLE_PORT": str(free_port()), **variables}
    return subprocess.run(
        [sys.executable, "-m", "deniable", "serve", *arguments],
        cwd=folder,
        env=os.environ | variables,
        preexec_fn=None if "postgresql" in " ".join(arguments) else without_rights,
        capture_output=True,
        text=True,
        timeout=300,
    )


def assert_stops(done: subprocess.CompletedProcess[str], code: int, says: str) -> None:
    """Check that a start failed with one line on standard error that says why."""
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr and "listening" not in done.stderr
    assert done.stdout == ""
    *usage, line = done.stderr.strip().splitlines()
    assert says in line, done.stderr
    if code != USAGE:  # the usage of the command stands before a mistake on the command line
        assert not usage, done.stderr
        assert line.startswith("error: ")


def published(**changed: object) -> bytes:
    """Return the published survey with some of it changed."""
    content = json.loads(SURVEY.canonical) | changed
    return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with everything that the cases name."""
    SURVEY.publish(tmp_path / "survey.json")
    (tmp_path / "changed.json").write_bytes(published(description="Something else"))
    (tmp_path / "ended.json").write_bytes(published(expires="2020-01-31"))
    (tmp_path / "old.json").write_bytes(published(expires="2020-01-31", name="old"))
    (tmp_path / "spoilt.json").write_bytes(SURVEY.canonical[:-9])
    (tmp_path / "config.toml").write_text("max_bdy = 1000")
    (tmp_path / "notes.db").write_text("Buy milk.")
    with closing(sqlite3.connect(tmp_path / "theirs.db")) as other:
        other.execute("CREATE TABLE milk (litres)")
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").touch()
    (tmp_path / "locked").mkdir(mode=0o500)
    (tmp_path / "secret.json").touch(mode=0o000)
    return tmp_path


SURVEY_AND_STORE = ("survey.json", "--store", "sqlite:///reports.db")
CASES: dict[str, tuple[tuple[str, ...], dict[str, str], int, str]] = {
    "bad host": (("--host", "no such host"), {}, ERROR, "check --host and --port"),
    "foreign host": (("--host", "203.0.113.7"), {}, ERROR, "does not have that address"),
    "port out of range": (("--port", "80000"), {}, ERROR, "port to be at most 65535, got 80000"),
    "port as text": (("--port", "http"), {}, USAGE, "'http' is not a valid integer"),
    "port of a service": ((), {"DENIABLE_PORT": "tcp://10.0.0.1:80"}, ERROR, "a whole number"),
    "privileged port": (("--port", "80"), {}, ERROR, "ports below 1024 need special rights"),
    "misspelt option": (("--max-bdy", "1"), {}, USAGE, "--max-body"),
    "misspelt variable": ((), {"DENIABLE_MAX_BDY": "1"}, ERROR, 'mean "DENIABLE_MAX_BODY"'),
    "misspelt key": (("--config", "config.toml"), {}, ERROR, 'mean "max_body"'),
    "missing config": (("--config", "none.toml"), {}, USAGE, "'none.toml' does not exist"),
    "no number": (("--body-time", "nan"), {}, ERROR, "body_time to be 0.1 or more, got nan"),
    "huge number": (("--header-time", "1e30"), {}, ERROR, "header_time to be at most"),
    "too many days": (("--grace", "1000000000"), {}, ERROR, "grace to be at most 36500"),
    "unknown log format": (("--log-format", "xml"), {}, ERROR, "text or json; got 'xml'"),
    "missing key file": (("--keys", "none.json"), {}, ERROR, "there is no key file none.json"),
    "other key file": (("--keys", "survey.json"), {}, ERROR, "expected format 'deniable-keys/1'"),
    "unreadable key file": (("--keys", "secret.json"), {}, ERROR, "secret.json: Permission denied"),
    "keys required": (("--require-key",), {}, ERROR, "require_key needs keys"),
    "no memory for bodies": (("--max-memory", "100"), {}, ERROR, "at least two bodies"),
    "missing survey": (("none.json",), {}, USAGE, "'none.json' does not exist"),
    "spoilt survey": (("spoilt.json",), {}, ERROR, "spoilt.json"),
    "conflicting surveys": (("changed.json",), {}, ERROR, "a changed survey needs a new version"),
}
"""What is given besides a survey and a store, the environment, the exit code, and what is said."""


@pytest.mark.parametrize(("given", "variables", "code", "says"), CASES.values(), ids=CASES)
def test_a_start_that_cannot_work(
    given: tuple[str, ...], variables: dict[str, str], code: int, says: str, folder: Path
) -> None:
    if (
        "80" in given
        and int(Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").read_text()) < 81
    ):
        pytest.skip("everybody may use port 80 here")
    assert_stops(serve(folder, *SURVEY_AND_STORE, *given, **variables), code, says)
    assert not (folder / "reports.db").exists(), "a failed start leaves no store behind"


STORES = {
    "": "there is no store",
    "sqlite:///none/reports.db": "there is no folder none for the store reports.db: create it",
    "sqlite:///locked/reports.db": "locked/reports.db: Permission denied",
    "notes.db": "notes.db is not a store, or it is damaged",
    "theirs.db": "theirs.db is a database of another program, not a store",
    "photos": "photos is not a store: expected FILE.db, sqlite:///FILE.db or postgresql://…",
    "s3://bucket/reports": "s3://bucket/reports is not a store",
    "sqlite://reports.db": "expected sqlite:///FILE.db",
    "mysql://u:password@h/reports": "mysql://h/reports is not a store",
    "postgresql://u:pass%zzword@h/reports": "the URL of the store is not valid",
    "postgresql://[u:password@h/reports": "the URL of the store is not valid",
}


@pytest.mark.parametrize(("store", "says"), STORES.items())
def test_a_store_that_cannot_be_opened(store: str, says: str, folder: Path) -> None:
    done = serve(folder, "survey.json", "--store", store)
    assert_stops(done, ERROR, says)
    assert "password" not in done.stderr and "pass%zzword" not in done.stderr


def test_a_store_with_another_survey_of_this_version(folder: Path) -> None:
    with Server(folder) as server:
        server.stop()
    done = serve(folder, "changed.json", "--store", server.url, "--port", str(server.port))
    assert_stops(done, ERROR, "give the changed survey a new version")


def test_a_store_of_another_user(folder: Path) -> None:
    """It can be read, so only a write shows that uploads would fail."""
    with Server(folder) as server:
        server.stop()
    (folder / "reports.db").chmod(0o400)
    done = serve(folder, "survey.json", "--store", server.url, "--port", str(server.port))
    assert_stops(done, ERROR, "reports.db is not writable for this user")


def test_a_port_that_is_taken(folder: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = str(other.getsockname()[1])
        done = serve(folder, *SURVEY_AND_STORE, "--port", port)
    assert_stops(done, ERROR, f"cannot listen on 127.0.0.1 port {port}: the port is in use")


def test_of_two_collectors_that_start_together_one_gets_the_port(folder: Path) -> None:
    """Each would get some of the uploads otherwise."""
    command = [sys.executable, "-m", "deniable", "serve", "survey.json", "--port", str(free_port())]
    both = [
        subprocess.Popen([*command, "--store", f"{name}.db"], cwd=folder, stderr=subprocess.PIPE)
        for name in ("one", "two")
    ]
    try:
        loser = wait_for_one(both)
        assert loser.returncode == ERROR
        assert loser.stderr is not None and b"the port is in use" in loser.stderr.read()
    finally:
        for process in both:
            process.kill()
            process.communicate()


def wait_for_one(processes: list[subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
    """Return the first process that ends."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        for process in processes:
            if process.poll() is not None:
                return process
        time.sleep(0.05)
    pytest.fail("both serve the same port")


# --- surveys that have ended ----------------------------------------------------------------------


def test_no_start_for_surveys_that_have_all_ended(folder: Path) -> None:
    done = serve(folder, "ended.json", "--store", "reports.db")
    assert_stops(done, ERROR, "every survey has ended")
    assert "faults v1 on 2020-01-31" in done.stderr
    with deniable.store.open(folder / "reports.db") as store:
        assert store.surveys() == [], "the name is free for a version that expires later"


def test_a_survey_that_has_ended_is_named(folder: Path) -> None:
    with Server(folder, str(folder / "old.json")) as server:
        server.stop()
    assert "WARNING survey old v1 ended on 2020-01-31" in server.log.read_text()


# --- PostgreSQL -----------------------------------------------------------------------------------


def test_postgresql_is_down(folder: Path) -> None:
    port = free_port()
    for store in (f"postgresql://127.0.0.1:{port}/reports", f"postgresql:///reports?host={folder}"):
        done = serve(folder, "survey.json", "--store", store)
        assert_stops(done, UNAVAILABLE, "cannot connect to postgresql://")


@pytest.fixture
def guarded(postgres_server: postgres.Server) -> Iterator[Any]:
    """A server with a user who needs a password."""
    rules = postgres_server.folder / "data" / "pg_hba.conf"
    before = rules.read_text()
    rules.write_text(f"local all guarded scram-sha-256\n{before}")
    with psycopg.connect(postgres_server.url, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS guarded")
        connection.execute("CREATE ROLE guarded LOGIN PASSWORD 'right'")
        connection.execute("SELECT pg_reload_conf()")
        yield postgres_server
        connection.execute("DROP OWNED BY guarded")
        connection.execute("DROP ROLE guarded")
    rules.write_text(before)


@pytest.mark.parametrize(
    ("user", "database", "says"),
    [
        ("guarded:wrong", "postgres", 'password authentication failed for user "guarded"'),
        ("guarded", "postgres", "no password supplied"),
        ("postgres", "none", 'database "none" does not exist'),
        ("nobody_here", "postgres", 'role "nobody_here" does not exist'),
        ("guarded:right", "postgres", "permission denied for database"),
    ],
)
def test_postgresql_refuses(
    user: str, database: str, says: str, guarded: postgres.Server, folder: Path
) -> None:
    """Trying again does not help, so the exit code is not that of a server that is down."""
    store = f"postgresql://{user}@/{database}?host={guarded.folder}"
    done = serve(folder, "survey.json", "--store", store)
    assert_stops(done, ERROR, says)
    assert "wrong" not in done.stderr and "right" not in done.stderr


# --- stopping -------------------------------------------------------------------------------------


def test_a_signal_during_the_start_ends_it(folder: Path) -> None:
    """A database that does not answer would hold it up, as the first process of a container."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        silent.settimeout(300)
        store = f"postgresql://127.0.0.1:{silent.getsockname()[1]}/reports"
        command = [sys.executable, "-m", "deniable", "serve", "survey.json", "--store", store]
        command += ["--port", str(free_port())]
        with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE) as process:
            with silent.accept()[0] as connection:
                connection.recv(1)  # it has got as far as the store
                process.terminate()
                assert process.wait(120) == 0
            assert process.stderr is not None and process.stderr.read() == b""


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_cleanly(stop: signal.Signals, tmp_path: Path) -> None:
    with Server(tmp_path) as server:
        assert server.process is not None
        server.process.send_signal(stop)
        assert server.process.wait(120) == 0
    log = server.log.read_text()
    assert "Traceback" not in log
    assert log.splitlines()[0].startswith("INFO listening on ")
    assert log.splitlines()[-1].startswith("INFO stopped: ")
    assert not list(tmp_path.glob("reports.db-*")), "the log of the database was not written back"
