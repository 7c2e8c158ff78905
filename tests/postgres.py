"""A throwaway PostgreSQL server in a temporary folder, reached by a socket in it."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import psycopg

GUARD = '"$@" & cat; kill -INT $!; wait'
"""Runs the server until our end of the pipe is closed: were the tests killed, it goes with them."""
MISSING = "PostgreSQL is not installed: bash .ci/setup"


def programs() -> Path | None:
    """The folder of initdb and pg_ctl."""
    found = shutil.which("initdb")
    folders = [Path(found).resolve().parent] if found else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((f for f in folders if (f / "initdb").exists() and (f / "pg_ctl").exists()), None)


class Server:
    """Started on construction; `stop` leaves nothing behind."""

    def __init__(self) -> None:
        programs_in = programs()
        assert programs_in is not None, MISSING
        self._programs = programs_in
        self.folder = Path(tempfile.mkdtemp(prefix="deniable-postgres-"))
        self._user: dict[str, object] = {}
        if os.getuid() == 0:  # PostgreSQL refuses to run as root
            user = pwd.getpwnam("postgres" if _exists("postgres") else "nobody")
            os.chown(self.folder, user.pw_uid, user.pw_gid)
            self._user = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        self._run("initdb", "-A", "trust", "-U", "postgres", "-N", "-E", "UTF8", "--locale=C")
        with (self.folder / "data" / "postgresql.conf").open("a") as settings:
            settings.write(
                f"listen_addresses = ''\nunix_socket_directories = '{self.folder}'\n"
                "shared_buffers = 32MB\nmax_connections = 40\n"
            )
        self.start()

    @property
    def url(self) -> str:
        return f"postgresql://postgres@/postgres?host={self.folder}"

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [self._programs / program, "-D", self.folder / "data", *arguments],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            cwd=self.folder, timeout=120, **self._user,  # type: ignore[call-overload]
        )  # fmt: skip
        assert done.returncode == 0, f"{program}: {done.stdout}"

    def start(self) -> None:
        with (self.folder / "log").open("ab") as log:
            self._guard = subprocess.Popen(
                ["sh", "-c", GUARD, "sh", self._programs / "postgres", "-D", self.folder / "data"],
                stdin=subprocess.PIPE, stdout=log, stderr=log, cwd=self.folder,
                start_new_session=True, **self._user,  # type: ignore[call-overload]
            )  # fmt: skip
        deadline = time.monotonic() + 60
        while True:
            try:
                psycopg.connect(self.url).close()
                return
            except psycopg.OperationalError:
                assert time.monotonic() < deadline, (self.folder / "log").read_text()
                time.sleep(0.05)

    def stop(self, how: str = "fast") -> None:
        """`immediate` is a crash: nothing is written but what was synced."""
        self._run("pg_ctl", "stop", "-w", "-m", how)
        self._guard.communicate()

    def kill_connections(self) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE pid <> pg_backend_pid() AND application_name = 'deniable'"
            )

    def wipe(self) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("DROP SCHEMA IF EXISTS deniable CASCADE")

    def make_database(self, name: str) -> None:
        """Create a database, or replace it by an empty one."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
            connection.execute(f"CREATE DATABASE {name}")

    def remove(self) -> None:
        self.stop("immediate")
        shutil.rmtree(self.folder)


def _exists(user: str) -> bool:
    try:
        pwd.getpwnam(user)
    except KeyError:
        return False
    return True
