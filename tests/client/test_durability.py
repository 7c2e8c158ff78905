"""What the client promises is on disk is on disk: the system calls, and what locks are for."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from deniable.client import Client, Ledger, Outbox
from deniable.client.files import locked, replace_private, write_private
from deniable.client.ledger import Charge
from tests.surveys import make_survey

SURVEY = make_survey('[questions.dark]\nkind = "boolean"\nepsilon = 1\n', name="durable")


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of files at each fsync, and renames, in order."""
    seen: list[str] = []
    sync, rename = os.fsync, os.replace

    def fsync(descriptor: int) -> None:
        seen.append("sync " + Path(os.readlink(f"/proc/self/fd/{descriptor}")).name)
        sync(descriptor)

    def replace(source: Path, target: Path) -> None:
        seen.append(f"rename {Path(source).name} {Path(target).name}")
        rename(source, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", replace)
    return seen


needs_proc = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")


@needs_proc
def test_a_file_is_synced_before_its_rename_and_the_folder_after(
    tmp_path: Path, calls: list[str]
) -> None:
    replace_private(tmp_path / "x", b"data")
    assert calls == ["sync x.tmp", "rename x.tmp x", f"sync {tmp_path.name}"]


@needs_proc
def test_a_private_file_is_synced_with_all_its_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: sizes.append(os.fstat(descriptor).st_size))
    write_private(tmp_path / "x", b"four")
    assert sizes == [4]


@needs_proc
def test_an_answer_is_paid_on_disk_before_its_noise_is_drawn(
    tmp_path: Path, calls: list[str]
) -> None:
    client = Client.open(SURVEY, tmp_path)
    calls.clear()

    def entropy(size: int) -> bytes:
        calls.append("noise")
        return os.urandom(size)

    client._entropy = entropy
    client.answer({"dark": True})
    rename = "rename ledger.json.tmp ledger.json"
    assert calls == ["sync ledger.json.tmp", rename, f"sync {tmp_path.name}", "noise"]


ANSWER = """
import sys
from deniable import Client
Client.open(sys.argv[1], sys.argv[2]).answer_and_queue({"dark": True})
"""


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
def test_a_queued_report_survives_a_power_failure(tmp_path: Path) -> None:
    """With synchronous = EXTRA, SQLite syncs the folder after it deletes the journal."""
    SURVEY.publish(tmp_path / "survey.json")
    folder, trace = tmp_path / "device", tmp_path / "trace"
    command = [sys.executable, "-c", ANSWER, str(tmp_path / "survey.json"), str(folder)]
    strace = ["strace", "-f", "-y", "-o", str(trace), "-e", "trace=fsync,fdatasync,unlink"]
    done = subprocess.run([*strace, *command], capture_output=True, text=True, timeout=120)
    if done.returncode and "ptrace" in done.stderr.lower():
        pytest.skip("this system does not allow tracing")
    assert done.returncode == 0, done.stderr
    lines = trace.read_text().splitlines()
    deleted = [i for i, line in enumerate(lines) if re.search(r'unlink\(".*\.db-journal"', line)]
    synced = [
        i for i, line in enumerate(lines) if re.search(r"sync\(\d+<.*outbox-durable\.db>", line)
    ]
    folders = [i for i, line in enumerate(lines) if f"<{folder}>" in line and "sync(" in line]
    assert deleted and any(i < deleted[-1] for i in synced), "the database before its journal goes"
    assert any(i > deleted[-1] for i in folders), "the folder afterwards"


def test_the_outbox_asks_for_the_strictest_durability(tmp_path: Path) -> None:
    with Outbox(tmp_path / "outbox.db")._transaction() as db:
        assert db.execute("PRAGMA synchronous").fetchone() == (3,)  # EXTRA


# --- locks --------------------------------------------------------------------------------------


def test_a_lock_keeps_others_out(tmp_path: Path) -> None:
    entered, path = threading.Event(), tmp_path / "x"

    def other() -> None:
        with locked(path):
            entered.set()

    with locked(path):
        thread = threading.Thread(target=other)
        thread.start()
        assert not entered.wait(0.2)
    thread.join(10)
    assert entered.is_set()


def test_the_ledger_is_read_and_written_under_its_lock(tmp_path: Path) -> None:
    path, charged = tmp_path / "ledger.json", threading.Event()

    def charge() -> None:
        Ledger(path).charge("s", 10, [Charge("n", 1, None)])
        charged.set()

    with locked(path):
        thread = threading.Thread(target=charge)
        thread.start()
        assert not charged.wait(0.2)
        assert not path.exists()
    thread.join(10)
    assert charged.is_set()
