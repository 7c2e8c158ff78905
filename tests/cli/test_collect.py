"""The commands about stores, as a person types them."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import deniable.store
from deniable.cli.app import app
from deniable.columns import read, write
from deniable.columns.batch import from_bodies
from deniable.store import clock
from deniable.store.clock import today
from tests.uploads import DAY, MARKS, NEXT, kept, survey, upload


def run(*args: object, code: int = 0) -> Result:
    got = CliRunner().invoke(app, [str(a) for a in args])
    assert got.exit_code == code, got.output
    assert "Traceback" not in got.output
    return got


def said(*args: object) -> dict[str, object]:
    found: dict[str, object] = json.loads(run(*args, "--json").output)
    return found


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "reports.db"


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """10,000 reports in each form."""
    found = [tmp_path / name for name in ("a.parquet", "b.parquet", "c.dn")]
    for file in found:
        write(file, from_bodies(os.urandom(16 * 10_000), MARKS))
    MARKS.publish(tmp_path / "marks.json")
    return found


def test_import_compact_export(path: Path, files: list[Path], tmp_path: Path) -> None:
    published = tmp_path / "marks.json"
    imported = said("import", path, *files, "--survey", published, "--day", DAY)
    assert imported == {"reports": 30_000, "new": 30_000, "store": f"sqlite:///{path}"}
    assert said("import", path, files[0], "--day", NEXT)["new"] == 0
    done = said("compact", path, "--keep-keys", 36500)
    bound = done.pop("smallest_batch")["marks@1"]
    assert (bound["reports"], bound["method"]) == (1001, "none")
    counts = {"segments": 1, "reports": 30_000, "waiting": 0}
    assert done == {**counts, "keys_forgotten": 0, "warnings": []}
    out = tmp_path / "out.parquet"
    run("export", path, "marks", out, "--since", DAY, "--until", DAY)
    batches = [read(file, survey=MARKS) for file in files]
    expected = sorted(row.tobytes() for b in batches for row in b.bits[0][0])
    assert sorted(row.tobytes() for row in read(out).bits[0][0]) == expected
    assert "no reports" in run("export", path, "marks", out, "--since", NEXT, code=1).output


def test_import_from_a_store(path: Path, files: list[Path], tmp_path: Path) -> None:
    other = tmp_path / "bulk.db"
    run("import", other, files[0], "--day", DAY)
    run("import", other, files[1], "--day", NEXT)
    assert said("import", path, other)["new"] == 20_000
    with deniable.store.open(path) as store, deniable.store.open(other) as bulk:
        assert store.days(MARKS) == {DAY: 10_000, NEXT: 10_000}
        assert kept(store) == kept(bulk)
    assert "perhaps the same ones" in run("import", path, other, code=1).output


def test_compact_forgets_old_keys(path: Path, files: list[Path]) -> None:
    run("import", path, files[0], "--day", DAY)
    assert said("compact", path)["keys_forgotten"] == 3
    assert said("import", path, files[0], "--day", DAY)["new"] == 10_000


def test_status_check_backup_delete(path: Path, tmp_path: Path) -> None:
    with deniable.store.open(path, create=True) as store:
        for version in (1, 2):
            store.add_survey(survey(version))
        store.append([upload(60), upload(60), upload(7, NEXT, survey(2))])
    run("compact", path, "--at-least", 50)
    found = said("store", "status", path)
    assert [(s["version"], s["days"]) for s in found["surveys"]] == [  # type: ignore[attr-defined]
        (1, {str(DAY): 120}), (2, {str(NEXT): 7}),
    ]  # fmt: skip
    assert "marks v1: 120 reports" in run("store", "status", path).output
    copy = tmp_path / "copy.db"
    run("store", "backup", path, copy)
    assert (
        "delete 120 reports of marks v1, received on"
        in run("store", "delete", path, "marks@1", code=1).output
    )
    assert said("store", "delete", path, "marks@1", "--older-than", 1, "--yes")["deleted"] == 120
    assert said("store", "delete", path, "marks", "--before", NEXT, "--yes")["deleted"] == 0
    assert "No problems found" in run("store", "check", copy).output
    (segment,) = tmp_path.glob("copy.segments/**/*.parquet")
    segment.unlink()
    assert segment.name in run("store", "check", copy, code=1).output


def test_a_clock_that_looks_wrong_deletes_nothing(
    path: Path, files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    run("import", path, files[0], "--day", now := today() - timedelta(days=60))
    with deniable.store.open(path) as store, monkeypatch.context() as earlier:
        earlier.setattr(clock, "today", lambda: now)
        store.move_day()
    done = said("compact", path)
    assert (done["keys_forgotten"], len(done["warnings"])) == (0, 1)  # type: ignore[arg-type]
    assert "60 days after" in run("store", "status", path).output
    for refused in (
        ("store", "delete", path, "marks", "--older-than", 30, "--yes"),
        ("import", path, files[1]),
    ):
        says = run(*refused, code=1).output
        assert "nothing was done: the clock shows" in says and "--clock-is-right" in says
    assert said("import", path, files[0], "--day", now)["new"] == 0, "its keys are kept"
    before = ("store", "delete", path, "marks", "--before", today())
    assert "Permanently delete 10,000 reports" in run(*before, code=1).output
    assert said(*before, "--yes")["deleted"] == 10_000


@pytest.mark.filterwarnings("always:staged upload")
def test_damage_is_named_until_it_is_dropped(path: Path) -> None:
    with deniable.store.open(path, create=True) as store:
        store.add_survey(MARKS)
        store.append([upload(60), upload(60), upload(60)])
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE staged SET reports = 59 WHERE id = 2")
    damaged = "staged upload 2 (59 reports of marks v1, 2025-03-09) is damaged"
    assert damaged in run("store", "check", path, code=1).output
    assert said("compact", path, "--at-least", 50)["reports"] == 120
    exported = run("export", path, "marks", path.with_name("out.dn")).output
    assert f"warning: {damaged}" in exported and "Wrote 120 reports" in exported
    for command in ("status", "check"):
        output = run("store", command, path, code=command == "check").output
        assert damaged in output and "store delete STORE --damaged" in output
    asked = run("store", "delete", path, "--damaged", code=1).output
    assert damaged in asked and "Delete damaged uploads" in asked
    run("store", "check", path, code=1)  # nobody has said yes
    for wrong in ((), ("marks", "--damaged"), ("--damaged", "--before", DAY)):
        run("store", "delete", path, *wrong, code=2)
    dropped = run("store", "delete", path, "--damaged", "--yes").output
    assert damaged in dropped and "Dropped 1 problem" in dropped
    assert said("store", "delete", path, "--damaged")["damage"] == []
    assert said("store", "check", path)["problems"] == []
    assert said("store", "status", path)["surveys"][0]["reports"] == 120  # type: ignore[index]


def test_mistakes_are_told(path: Path, tmp_path: Path, files: list[Path]) -> None:
    assert "there is no store" in run("compact", path, code=1).output
    assert "is not a store" in run("store", "status", tmp_path, code=1).output
    assert "give the survey" in run("import", path, files[2], code=1).output
    run("import", path, files[0])
    assert "marks@1" in run("export", path, "other", tmp_path / "x.dn", code=1).output
    run("store", "delete", path, "marks", "--before", DAY, "--older-than", 3, "--yes", code=2)
    new = tmp_path / "new.db"
    assert "is a store" in run("import", new, path, files[0], "--day", DAY, code=2).output
    assert not new.exists()
    assert "a retry that is not recognised" in run("compact", path, "--keep-keys", 6, code=1).output
    run("export", path, "marks", tmp_path / "x.dn", "--since", "yesterday", code=2)


COMMANDS = [["import"], ["export"], ["compact"]]
COMMANDS += [["store", name] for name in ("status", "check", "backup", "delete")]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_has_an_example(command: list[str]) -> None:
    assert f"Examples:\n    deniable {' '.join(command)} " in run(*command, "--help").output


def test_an_import_that_fails_creates_no_store(tmp_path: Path, files: list[Path]) -> None:
    (tmp_path / "broken.parquet").write_text("broken")
    before = set(tmp_path.iterdir())
    for wrong in ("missing.parquet", "broken.parquet", "c.dn", "missing.db"):
        run("import", tmp_path / "new.db", files[0], tmp_path / wrong, code=1)
        assert set(tmp_path.iterdir()) == before


def test_mistakes_with_keys_leave_nothing_behind(tmp_path: Path) -> None:
    missing = tmp_path / "keys.json"
    assert "no key file" in run("keys", "remove", "phones", "--keys", missing, code=1).output
    lost = tmp_path / "no" / "keys.json"
    got = run("keys", "add", "phones", "--role", "ingest", "--keys", lost, code=1)
    assert "no folder" in got.output
    assert not list(tmp_path.iterdir())
