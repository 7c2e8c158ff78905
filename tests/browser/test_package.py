"""The npm package: small, without imports, with the types that its comments promise."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from deniable.version import __version__
from tests.browser import tools

PACKAGE: dict[str, Any] = json.loads((tools.PACKAGE / "package.json").read_text())
CONSUMER = """import { openClient, openSender, readSurvey } from "./deniable.js";
import { memoryStore } from "./outside.js";

const survey = await readSurvey(new ArrayBuffer(0), "00");
const client = await openClient(survey, { store: memoryStore() });
const report: Uint8Array = await client.answer({ page: "a", dark: true, latency: 5, other: null });
const { sent, waiting, refused } = await openSender("https://example.com").send(report.slice());
const total: number = sent + waiting + refused.length + survey.questions[0].loss[0].once;
// @ts-expect-error
client.answer({ page: ["a"] });
// @ts-expect-error
openSender(5);
// @ts-expect-error
client.secret;
"""


def test_the_module_is_small_and_stands_alone() -> None:
    """It is served as it is written, so comments count; do not shorten them to fit."""
    source = tools.MODULE.read_text()
    assert len(source.encode()) < 29_000
    assert not re.search(r"\bimport\b|\brequire\b|\beval\b|Math\.random", source)
    assert "dependencies" not in PACKAGE


def test_the_package_names_what_is_there() -> None:
    assert PACKAGE["version"] == __version__
    named = {path for entry in PACKAGE["exports"].values() for path in entry.values()}
    assert {path.removeprefix("./") for path in named} == set(PACKAGE["files"])
    assert all((tools.PACKAGE / path).exists() for path in [*named, "README.md"])


def test_npm_packs_these_files_and_no_others() -> None:
    """Without a network; license and readme are added by npm itself."""
    npm = tools.program("npm", shutil.which("npm"))
    done = subprocess.run(
        [npm, "pack", "--dry-run", "--json", "--offline", "--no-update-notifier"],
        cwd=tools.PACKAGE, capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    (packed,) = json.loads(done.stdout)
    names = {file["path"] for file in packed["files"]}
    assert names == {*PACKAGE["files"], "package.json", "README.md", "LICENSE"}
    assert (packed["name"], packed["version"]) == ("deniable", __version__)


def test_the_package_says_what_a_registry_shows() -> None:
    assert {"description", "keywords", "license", "author", "engines", "types"} <= PACKAGE.keys()
    assert PACKAGE["publishConfig"] == {"access": "public", "provenance": True}
    license = (tools.PACKAGE / "LICENSE").read_text()
    assert license == (tools.ROOT / "LICENSE").read_text()


def compiled(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [tools.node(), tools.compiler(), *arguments]
    return subprocess.run(command, cwd=tools.PACKAGE, capture_output=True, text=True, timeout=120)


def test_declarations_are_those_of_the_source(tmp_path: Path) -> None:
    """`npm run types` in clients/js writes them again."""
    done = compiled("--outDir", tmp_path)
    assert done.returncode == 0, done.stdout
    for made in tmp_path.iterdir():
        assert made.read_text() == (tools.PACKAGE / made.name).read_text(), made.name


def test_declarations_serve_a_program(tmp_path: Path) -> None:
    """And refuse one that is wrong: an expected error that does not come is an error."""
    for name in PACKAGE["files"]:
        (tmp_path / name).write_text((tools.PACKAGE / name).read_text())
    (tmp_path / "consumer.ts").write_text(CONSUMER)
    options = "--noEmit --strict --target ES2022 --module ES2022 --moduleResolution bundler"
    done = compiled("--ignoreConfig", *options.split(), tmp_path / "consumer.ts")
    assert done.returncode == 0, done.stdout
