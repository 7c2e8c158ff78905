"""Cases of the command line's interface: commands, options and exit codes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import click

from tests.golden.commands import (
    DAYS,
    listed,
    output,
    run,
    write_reports,
)
from tests.golden.crowds import PAGES, survey_path
from tests.golden.imports import app
from tests.golden.registry import case


def kind_of(kind: Any) -> Any:
    """Describe the type of a parameter by what it accepts."""
    if isinstance(kind, click.Choice):
        return {"choice": list(kind.choices)}
    if isinstance(kind, click.IntRange | click.FloatRange):
        return {kind.name: [kind.min, kind.max, kind.min_open, kind.max_open]}
    if isinstance(kind, click.Path):
        return {"path": [kind.exists, kind.file_okay, kind.dir_okay]}
    if isinstance(kind, click.File):
        return {"file": kind.mode}
    if isinstance(kind, click.DateTime):
        return {"date": list(kind.formats)}
    if isinstance(kind, click.types.FuncParamType):
        return "function"
    return kind.name


def parameter(found: click.Parameter) -> dict[str, Any]:
    """Describe a parameter without its help text and its Python name."""
    default = found.default
    if default is None or "UNSET" in repr(default) or callable(default):
        default = None
    elif not isinstance(default, bool | int | float | str):
        default = str(default)
    data = {
        "type": kind_of(found.type),
        "required": found.required,
        "multiple": found.multiple,
        "nargs": found.nargs,
        "default": default,
        "envvar": found.envvar,
    }
    if isinstance(found, click.Option):
        flag = {"opts": found.opts, "secondary": found.secondary_opts, "flag": found.is_flag}
        return data | flag
    return data | {"argument": found.metavar or str(found.name).upper()}


def described(command: click.Command) -> dict[str, Any]:
    """Describe a command, its parameters and its subcommands."""
    context = click.Context(command)
    data: dict[str, Any] = {"parameters": [parameter(each) for each in command.params]}
    if isinstance(command, click.Group):
        inner = {name: command.get_command(context, name) for name in
                 command.list_commands(context)}  # fmt: skip
        data["commands"] = {name: described(each) for name, each in inner.items() if each}
    return data


@case
def commands(folder: Path) -> Any:
    """Names, options, arguments, types, choices and defaults of every command."""
    return described(app)


@case
def exit_codes(folder: Path) -> Any:
    """Exit codes of what works, and of common mistakes."""
    habits, whole = survey_path("habits"), survey_path("whole")
    reports = write_reports(folder / "habits.parquet", "habits", 1, 50)
    other = write_reports(folder / "filters.parquet", "filters", 1, 50)
    store = folder / "store.db"
    output("import", store, reports, "--day", DAYS[0])
    (folder / "broken.toml").write_text("name = 'x'\n")
    (folder / "broken.parquet").write_text("none")
    (folder / "broken.npz").write_text("none")
    (folder / "broken.json").write_text("{}")
    empty = listed(folder, [], "empty.txt")
    ended = survey_path("habits").read_text().replace("2999-12-31", "2020-12-31")
    (folder / "ended.toml").write_text(ended)
    client = ("--folder", folder / "client")
    pages = listed(folder, PAGES)
    tried: dict[str, tuple[object, ...]] = {
        "version": ("--version",),
        "help": ("--help",),
        "no such command": ("decod",),
        "no such option": ("decode", "--none"),
        "no arguments": ("decode",),
        "no such survey": ("decode", folder / "none.toml", reports, "--question", "dark"),
        "no such reports": ("decode", habits, folder / "none.parquet", "--question", "dark"),
        "broken reports": ("decode", habits, folder / "broken.parquet", "--question", "dark"),
        "no question named": ("decode", habits, reports),
        "no such question": ("decode", habits, reports, "--question", "none"),
        "no candidates": ("decode", habits, reports, "--question", "page"),
        "empty candidates": ("decode", habits, reports, "--question", "page", "--candidates",
                             empty),
        "candidates for options": ("decode", habits, reports, "--question", "dark",
                                   "--candidates", pages),
        "other survey": ("decode", habits, other, "--question", "page", "--candidates", pages),
        "wrong alpha": ("decode", habits, reports, "--question", "dark", "--alpha", "1.5"),
        "wrong ending": ("decode", habits, reports, "--question", "dark", "-o", folder / "x.txt"),
        "no such folder": ("decode", habits, reports, "--question", "dark", "-o",
                           folder / "none" / "x.csv"),
        "days of a file": ("decode", habits, reports, "--question", "dark", "--since", DAYS[0]),
        "trend of a file": ("decode", habits, reports, "--question", "dark", "--by", "day"),
        "no reports then": ("decode", habits, store, "--question", "dark", "--since",
                            "2030-01-01"),
        "no such store": ("decode", habits, folder / "none.db", "--question", "dark"),
        "by name": ("decode", "habits", store, "--question", "dark"),
        "no such name": ("decode", "none", store, "--question", "dark"),
        "wrong executor": ("decode", habits, reports, "--question", "dark", "--executor", "none"),
        "one thread": ("decode", habits, reports, "--question", "dark", "--executor", "threads:1"),
        "one question": ("associate", habits, reports, "--question", "dark"),
        "nothing detected": ("associate", habits, reports, "--question", "page", "--question",
                             "dark", "--candidates", f"page={empty}"),
        "malformed candidates": ("associate", habits, reports, "--candidates", "page"),
        "three for counts": ("count", habits, reports, "-o", folder / "x.npz"),
        "broken counts": ("associate", habits, folder / "broken.npz", "--from-counts",
                          "--question", "dark", "--question", "browser"),
        "no dictionary": ("discover", habits, reports, "--question", "page"),
        "which dictionary": ("discover", whole, reports),
        "wrong reading": ("discover", whole, reports, "--question", "word", "--reading", "paper"),
        "plan of one": ("plan", "--clients", "1000"),
        "plan of three": ("plan", "--clients", "1e3", "--epsilon", "1", "--detect", "0.1"),
        "impossible plan": ("plan", "--clients", "10", "--detect", "0.0001"),
        "check": ("check", habits),
        "check mistakes": ("check", folder / "broken.toml"),
        "check nothing": ("check", folder / "none.toml"),
        "simulate nothing": ("simulate", habits, "-o", folder / "x.parquet"),
        "simulate nobody": ("simulate", habits, "--population", "page=zipf:n=3", "-o",
                            folder / "x.parquet"),
        "no such shape": ("simulate", habits, "--population", "page=flat", "--clients", "9",
                          "-o", folder / "x.parquet"),
        "init": ("init", folder / "new.toml", "--boolean", "ads"),
        "init again": ("init", folder / "new.toml", "--boolean", "ads"),
        "answer": ("answer", habits, "dark=yes", *client),
        "answer again": ("answer", habits, "dark=yes", *client),
        "answer wrongly": ("answer", habits, "dark=perhaps", *client),
        "answer no question": ("answer", habits, "none=yes", *client),
        "answer too late": ("answer", folder / "ended.toml", "dark=yes", *client),
        "answer another digest": ("answer", habits, "dark=yes", "--digest", "00", *client),
        "send nothing": ("send", "http://127.0.0.1:9", "--folder", folder / "none"),
        "send to nobody": ("send", "http://127.0.0.1:9", *client),
        "store status": ("store", "status", store),
        "store check": ("store", "check", store),
        "no store status": ("store", "status", folder / "none.db"),
        "delete unconfirmed": ("store", "delete", store, "habits"),
        "export nothing": ("export", store, "habits", folder / "x.dn", "--since", "2030-01-01"),
        "compact nothing": ("compact", folder / "none"),
        "import nothing": ("import", store, folder / "none.parquet"),
        "no keys": ("keys", "list", "--keys", folder / "none.json"),
        "remove no key": ("keys", "remove", "x", "--keys", folder / "none.json"),
        "report nothing": ("report", "-o", folder / "x.html"),
        "report a broken result": ("report", folder / "broken.json", "-o", folder / "x.html"),
        "serve nothing": ("serve",),
        "no such shell": ("completion", "none"),
        "completion": ("completion", "bash"),
        "no such experiment": ("reproduce", "none"),
    }  # fmt: skip
    got = {name: run(*args) for name, args in tried.items()}
    assert not [name for name, each in got.items() if "Traceback" in each.output]
    module = subprocess.run(
        [sys.executable, "-m", "deniable", "--version"], check=True, capture_output=True
    )
    helped = {name: run(name, "--help").exit_code for name in app.list_commands(click.Context(app))}
    return {
        "codes": {name: each.exit_code for name, each in got.items()},
        "help": helped,
        "module": module.returncode,
    }
