"""Cases of the commands that ask, answer and collect: what they print as JSON and write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from deniable import Survey
from tests.golden import freezing
from tests.golden.commands import (
    DAYS,
    output,
    said,
    without,
    write_answers,
    write_reports,
)
from tests.golden.crowds import survey_path
from tests.golden.registry import case

# --- asking --------------------------------------------------------------------------------------


@case
def command_check(folder: Path) -> Any:
    """What check says of surveys, and what it publishes."""
    found = {}
    for name in ("habits", "repeated", "ngrams", "homepages", "whole", "rappor-cpp"):
        published = folder / f"{name}.json"
        data = said("check", survey_path(name), "-o", published, "--clients", "1e5", "--clients",
                    20_000)  # fmt: skip
        data["questions"] = [without(each, "levels") for each in data["questions"]]
        found[name] = without(data, "notes", "published")
        found[name]["file"] = freezing.sha256(published.read_bytes())
    found["defaults"] = sorted(said("check", survey_path("habits"))["questions"][0]["detectable"])
    return found


@case
def command_plan(folder: Path) -> Any:
    """What plan prints and writes: JSON, a table, and a survey."""
    file = folder / "asked.toml"
    args = ("plan", "--clients", "1e5", "--detect", "1%", "--unknown", "--max-length", "6")
    data = freezing.plain(said(*args, "--write", file, "-o", folder / "plan.csv"))
    survey = Survey.load(file)
    return {
        "json": data,
        "csv": freezing.table((folder / "plan.csv").read_text()),
        "survey": [survey.name, survey.collect, freezing.questions(survey)],
    }


@case
def command_init(folder: Path) -> Any:
    """The survey files that init writes."""
    once, often = folder / "first.toml", folder / "second.toml"
    data = [
        said("init", once, "--owner", "tests", "--description", "x", "--expires", "2999-12-31",
             "--string", "page", "--unknown", "word", "--choice", "colour=red,green",
             "--boolean", "dark", "--epsilon", "5"),
        said("init", often, "--collect", "repeatedly", "--name", "mine", "--unknown", "word"),
    ]  # fmt: skip
    surveys = [Survey.load(path) for path in (once, often)]
    return {
        "json": [without(each, "file") for each in data],
        "sha256": surveys[0].sha256.hex(),
        "questions": [freezing.questions(survey) for survey in surveys],
    }


@case
def command_simulate(folder: Path) -> Any:
    """Reports from answers, from populations of every shape, and from tables."""
    habits = survey_path("habits")
    values = write_answers(folder / "answers.csv", "habits", 1, 300)
    (folder / "pages.csv").write_text("value,weight\na.org,3\nb.org,1\n")
    (folder / "table.csv").write_text(",yes,no\nFirefox,3,1\nSafari,0,2\n")
    shapes = ("zipf:n=9,s=1.5,length=5", "power:n=9,exponent=3,floor=0.1", "geometric:n=9,p=0.2",
              "step:n=12", "uniform:n=9", "exponential:n=9,scale=4")  # fmt: skip
    found: dict[str, Any] = {}

    def simulated(name: str, *args: object) -> None:
        path = folder / "reports.dn"
        data = said("simulate", habits, *args, "--seed", 11, "-o", path)
        found[name] = [without(data, "file"), freezing.sha256(path.read_bytes())]

    simulated("values", "--values", values)
    for shape in shapes:
        simulated(shape, "--population", f"page={shape}", "--clients", 200)
    simulated("csv and table", "--population", f"page={folder / 'pages.csv'}", "--table",
              f"browser,dark={folder / 'table.csv'}", "--clients", 200)  # fmt: skip
    for suffix in ("parquet", "arrow"):
        path = folder / f"reports.{suffix}"
        data = said("simulate", habits, "--values", values, "--seed", 11, "-o", path)
        exported = folder / f"{suffix}.dn"
        output("import", folder / suffix, path, "--day", DAYS[0])
        output("export", folder / suffix, "habits", exported)
        found[suffix] = [data["reports"], len(exported.read_bytes())]
    return found


@case
def command_answer(folder: Path) -> Any:
    """What answer says; the report itself is random."""
    where = ("--folder", folder / "client")
    first = said("answer", survey_path("repeated"), "page=a.org", "dark=no", *where)
    (folder / "values.json").write_text(json.dumps({"browser": "Safari"}))
    second = said("answer", survey_path("repeated"), "--values", folder / "values.json", *where)
    return [
        without(each, "report") | {"report bytes": len(bytes.fromhex(each["report"]))}
        for each in (first, second)
    ]


# --- collecting ----------------------------------------------------------------------------------


@case
def command_stores(folder: Path) -> Any:
    """Import, compact, export, status, check, backup and delete, in both kinds of store."""
    habits = survey_path("habits")
    reports = [write_reports(folder / f"{i}.dn", "habits", 40 + i, 120) for i in range(3)]
    found: dict[str, Any] = {}
    for name in ("store.db", "store"):
        store, copy = folder / name, folder / f"copy-{name}"
        steps = [said("import", store, *reports[:2], "--survey", habits, "--day", DAYS[0])]
        steps.append(said("import", store, reports[0], "--survey", habits, "--day", DAYS[0]))
        steps.append(said("compact", store, "--at-least", 100, "--keep-keys", 36500))
        steps.append(said("import", store, reports[2], "--survey", habits, "--day", DAYS[2]))
        steps.append(said("store", "status", store))
        steps.append(said("store", "check", store))
        steps.append(said("export", store, "habits@1", folder / "out.dn", "--until", DAYS[1]))
        steps.append(said("store", "backup", store, copy))
        steps.append(said("store", "delete", store, "habits", "--before", DAYS[1], "--yes"))
        steps.append(said("store", "status", store))
        steps.append(said("import", folder / f"other-{name}", copy))
        steps.append(said("compact", copy, "--at-least", 1000))
        found[name] = [
            {
                key: value
                for key, value in step.items()
                if key not in ("file", "room", "store", "to")
            }
            for step in steps
        ]
        found[f"{name} bytes"] = len((folder / "out.dn").read_bytes())
    return found


@case
def command_keys(folder: Path) -> Any:
    """Keys are made, listed and removed; their ids and tokens are random."""
    keys = ("--keys", folder / "keys.json")
    added = [
        said("keys", "add", "phones", "--role", "ingest", "--quota", 50, *keys),
        said("keys", "add", "ann", "--role", "analyst", *keys),
    ]
    kept = said("keys", "list", *keys)
    removed = said("keys", "remove", "phones", *keys)
    return {
        "added": [without(each, "token") for each in added],
        "listed": [without(each, "id") for each in kept["keys"]],
        "removed": removed,
        "left": [each["name"] for each in said("keys", "list", *keys)["keys"]],
    }
