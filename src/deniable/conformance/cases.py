"""The vectors as questions to a program: what it is given, and what it must give back."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

FILES: dict[str, tuple[str, ...]] = {
    "surveys": ("sha256",),
    "hashing": ("header", "positions"),
    "permanent": ("message", "permanent"),
    "instantaneous": ("output",),
    "slots": ("cohort", "clear", "slots", "tokens"),
    "reports": ("report",),
    "batches": ("batch",),
    "ledger": ("accepted", "spent"),
}
"""What a program must give back for each file of vectors, in the order in which they are asked."""

REQUIRED = ("reports", "ledger")
"""The files that a client cannot leave out: the others are steps on the way to these."""

DERIVED = ("digest",)
"""Neither given nor asked for: it follows from the survey."""


@dataclass(frozen=True)
class Case:
    """One vector."""

    file: str
    number: int
    """Its place in the file, from 0."""
    given: dict[str, Any]
    expected: dict[str, Any]

    @property
    def name(self) -> str:
        return f"{self.file}[{self.number}]"

    @property
    def well_formed(self) -> bool:
        """Is all its text Unicode? Some languages' strings cannot hold a lone surrogate."""
        try:
            json.dumps(self.given, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            return False
        return True


def cases() -> list[Case]:
    """Every vector, each with the published survey that it names."""
    folder = files("deniable.conformance") / "vectors"
    rows = {file: json.loads((folder / f"{file}.json").read_bytes()) for file in FILES}
    published = {row["name"]: row["canonical"] for row in rows["surveys"]}
    found = []
    for file, outputs in FILES.items():
        for number, row in enumerate(rows[file]):
            given = {k: v for k, v in row.items() if k not in (*outputs, *DERIVED)}
            if given.get("survey") in published:
                given["canonical"] = published[given["survey"]]
            found.append(Case(file, number, given, {k: row[k] for k in outputs}))
    return found
