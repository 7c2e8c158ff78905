"""Test vectors: this release reproduces them, as does an encoder written from the specification."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import pytest

from deniable.survey import Survey, from_batch, from_bytes
from tests import page_encoder
from tests.vectors import make

VECTORS = make.VECTORS


def rows(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((VECTORS / name).read_text())
    return found


SURVEYS = {row["name"]: row["canonical"].encode() for row in rows("surveys.json")}


@pytest.mark.slow
@pytest.mark.parametrize("name", make.FILES)
def test_this_release_writes_the_committed_vectors(name: str) -> None:
    assert make.text(make.FILES[name]()) == (VECTORS / name).read_text()


@pytest.mark.slow
def test_encoder_from_the_page_alone_agrees_bit_for_bit() -> None:
    for row in rows("reports.json"):
        got = page_encoder.report(
            SURVEYS[row["survey"]], bytes.fromhex(row["secret"]), row["values"],
            bytes.fromhex(row["rand"]),
        )  # fmt: skip
        assert got.hex() == row["report"], row["values"]
        assert bytes(from_bytes(got, Survey.from_json(SURVEYS[row["survey"]]))) == got


def test_ledger_from_the_page_alone_agrees() -> None:
    for row in rows("ledger.json"):
        book: dict[str, Any] = {}
        accepted, spent = [], []
        for answer in row["answers"]:
            survey = row["surveys"][answer["survey"]].encode()
            secret = bytes.fromhex(answer["secret"])
            accepted.append(page_encoder.pay(book, survey, secret, answer["values"]))
            spent.append(page_encoder.spent(book[json.loads(survey)["name"]]))
        assert (accepted, spent) == (row["accepted"], row["spent"])
    assert {x for row in rows("ledger.json") for x in row["accepted"]} == {True, False}


def test_encoder_from_the_page_imports_nothing_of_ours() -> None:
    assert "deniable" not in {
        line.split()[1].split(".")[0]
        for line in inspect.getsource(page_encoder).splitlines()
        if line.startswith(("import ", "from "))
    }


def test_batches_parse_back_to_their_reports() -> None:
    for row in rows("batches.json"):
        parsed = from_batch(bytes.fromhex(row["batch"]), Survey.from_json(SURVEYS[row["survey"]]))
        assert [bytes(report).hex() for report in parsed] == row["reports"]


def test_vectors_are_documented() -> None:
    page = Path("docs/how-to/other-languages.md").read_text()
    assert all(f"| `{name.removesuffix('.json')}` |" in page for name in make.FILES)
