"""Missing packages: every public name says which extra installs what it needs."""

from __future__ import annotations

import json
import os
import pickle
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from deniable.errors import DeniableError, MissingPackage
from deniable.extras import EXTRAS, needs_packages

ROOT = Path(__file__).parents[1]
IMPORT_NAMES = {"scikit-learn": "sklearn"}
BROUGHT_ALONG = {"dask", "llvmlite"}
"""Packages that we import, and that another package installs: distributed and numba."""

SURVEY = """name="s"
version=1
owner="o"
description="d"
expires=2099-12-31
collect="once"
[questions.a]
kind="boolean"
epsilon=1.0
"""


def bare(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a program where no package is installed: -S leaves site-packages out."""
    command = [sys.executable, "-S", "-W", "error", "-c", program, *arguments]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


def installed_by(extra: str) -> set[str]:
    """Return the import names of what an extra of pyproject.toml installs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names: set[str] = set()
    for requirement in project["optional-dependencies"][extra]:
        own = re.fullmatch(r"deniable\[(.+)\]", requirement)
        if own:
            names |= {name for each in own[1].split(",") for name in installed_by(each)}
        else:
            name = re.split(r"[\[<>=]", requirement)[0]
            names.add(IMPORT_NAMES.get(name, name))
    return names


def test_the_named_extra_installs_the_package() -> None:
    for extra, packages in EXTRAS.items():
        assert set(packages) - BROUGHT_ALONG <= installed_by(extra), extra
    everything = {package for extra in (*EXTRAS, "all") for package in installed_by(extra)}
    listed = {package for packages in EXTRAS.values() for package in packages}
    assert everything == listed - BROUGHT_ALONG


def test_every_public_name_works_or_names_its_extra_where_nothing_is_installed() -> None:
    reference = (ROOT / "docs" / "reference" / "python.md").read_text()
    names = re.findall(r"^::: (deniable\.\S+)\.(\w+)$|^::: (deniable)\.(\w+)$", reference, re.M)
    program = """
import json, sys
from importlib import import_module
from deniable.errors import MissingPackage
told = {}
for module, name in json.loads(sys.argv[1]):
    try:
        getattr(import_module(module), name)
    except MissingPackage as error:
        told[f"{module}.{name}"] = str(error)
print(json.dumps(told))
"""
    wanted = [(a or c, b or d) for a, b, c, d in names]
    done = bare(program, json.dumps(wanted))
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["deniable.decode"] == (
        "deniable.decode needs numpy: pip install 'deniable[analysis]'"
    )
    assert len(told) > 40
    assert not [name for name in told if ".client." in name or name.endswith(".Survey")]
    assert all(" needs numpy: pip install 'deniable[" in text for text in told.values())


@pytest.mark.parametrize(
    "program, text",
    [
        (
            "import deniable.collector.app",
            "the collector needs starlette: pip install 'deniable[collector]'",
        ),
        (
            "import deniable.collector.server",
            "the collector needs granian: pip install 'deniable[collector]'",
        ),
        (
            "from deniable.cli import main; main()",
            "the command line needs click: pip install 'deniable[cli]'",
        ),
    ],
)
def test_modules_name_the_extra(program: str, text: str) -> None:
    done = bare(program)
    assert done.returncode == 1
    assert done.stderr.rstrip().endswith(text)


@pytest.mark.parametrize(
    "blocked, command, extra",
    [
        ("numpy", ["serve", "--store", "reports.db"], "collector"),
        ("numpy", ["store", "status", "reports.db"], "collector"),
        ("numpy", ["plan", "--epsilon", "1", "--clients", "1000"], "analysis"),
        ("granian", ["serve", "--store", "reports.db"], "collector"),
        ("psycopg", ["store", "status", "postgresql://localhost/x"], "postgres"),
        ("rich", ["check", "survey.toml"], "cli"),
        # Said before reports are looked for:
        ("matplotlib", ["decode", "survey.toml", "none.parquet", "-o", "x.png"], "plots"),
        ("pyarrow", ["decode", "survey.toml", "none.dn", "-o", "x.parquet"], "analysis"),
        ("pyarrow", ["export", "reports.db", "s", "x.parquet"], "collector"),
    ],
)
def test_commands_name_the_extra(
    blocked: str, command: list[str], extra: str, tmp_path: Path
) -> None:
    (tmp_path / "survey.toml").write_text(SURVEY)
    program = f"import sys; sys.modules[{blocked!r}] = None; from deniable.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, *command], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 1
    assert done.stderr == (
        f"error: this command needs {blocked}: pip install 'deniable[{extra}]'\n"
    )


ONLY_ANALYSIS = ("scipy", "numba", "llvmlite", "sklearn", "threadpoolctl")


@pytest.mark.parametrize(
    "command",
    [
        ["simulate", "survey.toml", "--clients", "30", "-o", "x.parquet"],
        ["plan", "--kind", "boolean", "--epsilon", "1"],
        ["decode", "survey.toml", "reports.dn"],
        ["associate", "survey.toml", "reports.dn", "--question", "a"],
        ["discover", "survey.toml", "reports.dn", "--question", "a"],
        ["count", "survey.toml", "reports.dn", "-o", "x.npz"],
    ],
    ids=lambda command: command[0],
)
def test_analyses_name_their_extra_where_only_the_collector_is_installed(
    command: list[str], tmp_path: Path
) -> None:
    (tmp_path / "survey.toml").write_text(SURVEY)
    (tmp_path / "reports.dn").write_bytes(b"")
    program = f"import sys; sys.modules.update(dict.fromkeys({ONLY_ANALYSIS!r}))"
    program += "; from deniable.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, *command], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 1
    assert re.fullmatch(
        r"error: this command needs \w+: pip install 'deniable\[analysis\]'\n", done.stderr
    ), done.stderr


def test_the_error_is_an_import_error_and_pickles() -> None:
    with pytest.raises(MissingPackage) as caught, needs_packages("a plot"):
        raise ModuleNotFoundError(name="matplotlib.axes")
    assert isinstance(caught.value, ImportError)
    assert isinstance(caught.value, DeniableError)
    assert caught.value.name == "matplotlib"
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.name) == (str(caught.value), "matplotlib")


def test_other_missing_modules_are_not_explained() -> None:
    with pytest.raises(ModuleNotFoundError) as caught, needs_packages("a plot"):
        raise ModuleNotFoundError(name="elsewhere")
    assert not isinstance(caught.value, DeniableError)
