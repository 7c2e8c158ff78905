"""The record of a full run, which docs/results/mutants.md shows."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence

from tools.mutants.catalogue import ROOT, Mutant
from tools.mutants.runner import Outcome

ALL = "all"
RECORD = ROOT / "docs" / "results" / "data" / "mutants.json"


def write_record(mutants: Sequence[Mutant], outcomes: Sequence[Outcome]) -> None:
    """Write the tables of a run of all mutants."""
    by_name = {outcome.mutant.name: outcome for outcome in outcomes}
    caught = {name for name, outcome in by_name.items() if outcome.caught}
    areas: dict[str, list[object]] = {}
    for area in dict.fromkeys([*(mutant.area for mutant in mutants), ALL]):
        chosen = [mutant for mutant in mutants if area in (mutant.area, ALL)]
        found = sum(mutant.name in caught for mutant in chosen)
        equivalent = sum(bool(mutant.equivalent) for mutant in chosen)
        survived = len(chosen) - found - equivalent
        areas[area] = [area, len(chosen), found, equivalent, survived]
    rows = {
        mutant.name: [
            _code(f"{mutant.file.removeprefix('src/deniable/')}, {mutant.function}"),
            f"{mutant.edit.operator}: {_code(mutant.edit.shown)}",
            _verdict(mutant, by_name),
        ]
        for mutant in mutants
    }
    common = {"command": "make mutants", "machine": "two-cores", "conditions": "one run"}
    heads = {"area": "Area", "mutants": "Mutants", "caught": "Caught", "equivalent": "Equivalent"}
    tables = {
        "areas": {**common, "columns": {**heads, "survived": "Survived"}, "rows": areas},
        "all": {
            **common,
            "columns": {"place": "Place", "bug": "Bug", "seen": "Noticed by"},
            "rows": rows,
        },
    }
    data = {"machines": {"two-cores": "two cores of a shared machine"}, "tables": tables}
    RECORD.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n")


def _verdict(mutant: Mutant, by_name: dict[str, Outcome]) -> str:
    """Return which test noticed a mutant, or why none can."""
    if mutant.equivalent:
        return f"equivalent: {mutant.equivalent}"
    outcome = by_name.get(mutant.name)
    return _code(outcome.by) if outcome is not None and outcome.caught else "nobody"


def _code(text: str) -> str:
    """Return code as HTML: neither Markdown nor `tools.facts` reads anything in it."""
    escaped = html.escape(text, quote=False)
    for character in "{}|[]*_`":
        escaped = escaped.replace(character, f"&#{ord(character)};")
    return f"<code>{escaped}</code>"
