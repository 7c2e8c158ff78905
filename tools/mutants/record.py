"""The record of a full run."""

from __future__ import annotations

import json
from collections.abc import Sequence

from tools.mutants.catalogue import ROOT, Mutant
from tools.mutants.runner import Outcome

RECORD = ROOT / "docs" / "results" / "data" / "mutants.json"


def write_record(mutants: Sequence[Mutant], outcomes: Sequence[Outcome]) -> None:
    """Write the numbers of a run of all mutants, and every mutant with what noticed it."""
    by_name = {outcome.mutant.name: outcome for outcome in outcomes}
    caught = sum(outcome.caught for outcome in outcomes)
    equivalent = sum(bool(mutant.equivalent) for mutant in mutants)
    summary = {
        "command": "make mutants",
        "machine": "two-cores",
        "conditions": "one run",
        "columns": {
            "mutants": "Mutants",
            "caught": "Caught",
            "equivalent": "Equivalent",
            "survived": "Survived",
        },
        "rows": {"all": [len(mutants), caught, equivalent, len(mutants) - caught - equivalent]},
    }
    listed = [
        {
            "place": f"{mutant.file.removeprefix('src/deniable/')}, {mutant.function}",
            "bug": f"{mutant.edit.operator}: {mutant.edit.shown}",
            "noticed by": _verdict(mutant, by_name),
        }
        for mutant in mutants
    ]
    machines = {"two-cores": "two cores of a shared machine"}
    data = {"machines": machines, "tables": {"summary": summary}, "mutants": listed}
    RECORD.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n")


def _verdict(mutant: Mutant, by_name: dict[str, Outcome]) -> str:
    """Return which test noticed a mutant, or why none can."""
    if mutant.equivalent:
        return f"equivalent: {mutant.equivalent}"
    outcome = by_name.get(mutant.name)
    return outcome.by if outcome is not None and outcome.caught else "nobody"
