"""Cases of what an earlier version wrote: stores, report files, counts and results still load."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from deniable import PairCounts, Stored, associate, decode, pair_counts, trend
from tests.golden import freezing
from tests.golden.analysis_cases import joint
from tests.golden.commands import DAYS, output, said, write_reports
from tests.golden.crowds import PAGES, survey, survey_path
from tests.golden.imports import Result
from tests.golden.registry import case
from tests.golden.written import AT_LEAST, SAVED, STORES, import_upload, upload

QUESTIONS = (("page", PAGES), ("browser", None), ("dark", None))


def copied(name: str, folder: Path) -> Path:
    """Copy a store with all that belongs to it."""
    shutil.copytree(STORES, folder / "stores")
    return folder / "stores" / name


def looked_at(store: Path, folder: Path) -> dict[str, Any]:
    """Freeze what is in a store: days, reports, their bytes in order, and what they decode to."""
    status = said("store", "status", store)
    exported = folder / "exported.dn"
    output("export", store, "habits", exported)
    url = f"sqlite:///{store}" if store.suffix == ".db" else str(store)
    some = Stored(url, since=DAYS[1])
    return {
        "surveys": status["surveys"],
        "problems": said("store", "check", store)["problems"],
        "decoded": {
            question: freezing.result(decode(survey("habits"), url, question, candidates))
            for question, candidates in QUESTIONS
        },
        "some days": freezing.result(decode(survey("habits"), some, "browser")),
        "trend": {
            by: freezing.result(trend(survey("habits"), url, "dark", by=by))
            for by in ("day", "week")
        },
        "exported": reports_in(exported),
    }


def reports_in(file: Path) -> list[Any]:
    """Return how many reports a .dn file has, and the digest of their sorted bodies."""
    size = survey("habits").body_size
    rows: list[bytes] = []
    data = file.read_bytes()
    while data:
        count = int.from_bytes(data[20:24], "little")
        bodies, data = data[24 : 24 + count * size], data[24 + count * size :]
        rows += [bodies[i : i + size] for i in range(0, len(bodies), size)]
    return [len(rows), freezing.sha256(b"".join(sorted(rows)))]


def used(name: str, folder: Path) -> dict[str, Any]:
    """Look at a store, add to it what it knows and what is new, compact it, and look again."""
    store = copied(name, folder)
    before = looked_at(store, folder)
    said("store", "accept", store, "--clock")  # it was not used for long
    known = [json.loads(import_upload(store, upload(folder, day, 0), day)) for day in (0, 2)]
    more = write_reports(folder / "more.dn", "habits", 200, 20)
    new = json.loads(import_upload(store, more, 1))
    first = said("compact", store, "--at-least", AT_LEAST, "--keep-keys", 36500)
    between = said("store", "status", store)["surveys"]
    second = said("compact", store, "--at-least", AT_LEAST - 10, "--keep-keys", 36500)
    return {
        "before": before,
        "imported": [[each["reports"], each["new"]] for each in (*known, new)],
        "compacted": [first, second],
        "between": between,
        "after": looked_at(store, folder),
        "forgotten": said("compact", store, "--keep-keys", 7),
    }


@case
def read_sqlite_store(folder: Path) -> Any:
    """A SQLite store with segments and staged uploads is read, added to and compacted."""
    return used("habits.db", folder)


@case
def read_folder_store(folder: Path) -> Any:
    """A folder of Parquet files is read, added to and compacted."""
    return used("habits", folder)


@case
def read_report_files(folder: Path) -> Any:
    """Report files of every format are decoded, alone and together."""
    files = {suffix: SAVED / f"reports.{suffix}" for suffix in ("parquet", "arrow", "dn")}
    found = {
        suffix: freezing.result(decode(survey("habits"), path, "page", PAGES))
        for suffix, path in files.items()
    }
    together = decode(survey("habits"), list(files.values()), "browser")
    counts = pair_counts(survey("habits"), files["dn"], ["page", "dark"])
    return {
        "page": found,
        "together": freezing.result(together),
        "counts": freezing.sha256(counts.both.tobytes()),
        "exported": reports_in(files["dn"]),
    }


@case
def read_counts(folder: Path) -> Any:
    """Saved pair counts are loaded and associated."""
    counts = PairCounts.load(SAVED / "counts.npz")
    return {
        "reports": counts.reports,
        "questions": list(counts.questions),
        "both": freezing.sha256(counts.both.tobytes()),
        "joint": joint(associate(survey("habits"), counts, ["browser", "dark"])),
    }


@case
def read_results(folder: Path) -> Any:
    """A saved result of every kind is loaded, and writes itself as it was."""
    found = {}
    for path in sorted(SAVED.glob("*.json")):
        if path.stem == "survey":
            continue
        loaded = Result.from_json(path.read_text(encoding="utf-8"))
        assert json.loads(loaded.to_json()) == json.loads(path.read_text(encoding="utf-8"))
        found[path.stem] = {
            "kind": json.loads(loaded.to_json())["kind"],
            "result": freezing.result(loaded),
            "columns": {name: list(column)[:5] for name, column in _arrow(loaded).items()},
        }
    return found


def _arrow(loaded: Any) -> dict[str, Any]:
    columns = loaded.to_arrow().to_pydict()
    assert list(columns) == list(loaded.columns())
    return dict(columns)


@case
def read_joint(folder: Path) -> Any:
    """A saved joint table still answers what needs no reports."""
    loaded = Result.from_json((SAVED / "joint.json").read_text(encoding="utf-8"))
    effect = loaded.cramers_v()
    return {
        "test": freezing.association(loaded.test()),
        "effect": [effect.estimate, effect.low, effect.high],
        "margin": freezing.interval(loaded.margin("dark")),
        "conditional": freezing.interval(loaded.conditional("browser")),
        "cell": loaded.cell("Firefox", "yes"),
    }


@case
def report_page(folder: Path) -> Any:
    """The page that `deniable report` makes of saved results: its tables and its charts."""
    names = ("marginal", "joint", "joint-three", "joint-counts", "discovery", "discovery-graph",
             "trend", "series", "plan")  # fmt: skip
    found = {}
    for name in names:
        page = folder / f"{name}.html"
        data = said("report", SAVED / f"{name}.json", "--survey", survey_path("habits"), "-o", page)
        found[name] = {"results": data["results"], **freezing.page(page)}
    page = folder / "all.html"
    files = [SAVED / f"{name}.json" for name in names]
    found["all"] = said("report", *files, "--title", "x", "-o", page)["results"]
    return found
