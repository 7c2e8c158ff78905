"""Test vectors: the input of a program, and the output that it must return."""

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
"""Fields that a program must return for the vectors of each file, in the order of the files."""

REQUIRED = ("reports", "ledger")
"""Files that every client must support; the others test intermediate steps."""

DERIVED = ("digest",)
"""Fields that are neither input nor output, because they follow from the survey."""


@dataclass(frozen=True)
class Case:
    """One test vector.

    Parameters
    ----------
    file : str
        File of vectors, without its extension.
    number : int
        Position in the file, from 0.
    given : dict
        Input.
    expected : dict
        Output.
    """

    file: str
    number: int
    given: dict[str, Any]
    expected: dict[str, Any]

    @property
    def name(self) -> str:
        """Name of the vector: file and position."""
        return f"{self.file}[{self.number}]"

    @property
    def well_formed(self) -> bool:
        """Whether all texts are valid Unicode; some languages allow no lone surrogates."""
        try:
            json.dumps(self.given, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            return False
        return True


def cases() -> list[Case]:
    """Return all test vectors, each with the published survey that it refers to."""
    folder = files("deniable.conformance") / "vectors"
    rows = {file: json.loads((folder / f"{file}.json").read_bytes()) for file in FILES}
    published = {row["name"]: row["canonical"] for row in rows["surveys"]}
    vectors = []
    for file, outputs in FILES.items():
        for number, row in enumerate(rows[file]):
            given = {k: v for k, v in row.items() if k not in (*outputs, *DERIVED)}
            if given.get("survey") in published:
                given["canonical"] = published[given["survey"]]
            vectors.append(Case(file, number, given, {k: row[k] for k in outputs}))
    return vectors
