"""Turn results, arrays and files into plain JSON data: numbers, labels and digests, no prose."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
from collections.abc import Iterable, Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from deniable import ReportBatch, Survey
from tests.single_reports import single_reports

WORDING = frozenset({"format", "evidence_name", "note", "paid", "seconds", "toml"})
"""Fields of a result that say something in words, or how long it took."""
KEPT_PROVENANCE = ("survey", "version", "digest", "questions", "epsilon", "reports")


def sha256(data: bytes) -> str:
    """Return the SHA-256 of some bytes in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def as_json(data: Any) -> Any:
    """Return data as JSON gives it back, with numbers that JSON lacks as text."""
    if isinstance(data, Mapping):
        return {str(key): as_json(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [as_json(value) for value in data]
    if isinstance(data, float) and not math.isfinite(data):
        return str(data)
    return data


def result(found: Any) -> dict[str, Any]:
    """Freeze a result through the JSON that it writes."""
    return plain(json.loads(found.to_json()))


def plain(data: Mapping[str, Any]) -> dict[str, Any]:
    """Freeze a result that was read from JSON: drop the wording, keep every number and label."""
    kept = {key: value for key, value in data.items() if key not in WORDING}
    if kept.get("provenance"):
        kept["provenance"] = {key: kept["provenance"][key] for key in KEPT_PROVENANCE}
    if "fit" in kept:
        several = isinstance(kept["fit"], list)  # one check per period
        kept["fit"] = [_fit(check) for check in kept["fit"]] if several else _fit(kept["fit"])
    if "stages" in kept:
        kept["stages"] = [[stage["kept"], stage["dropped"]] for stage in kept["stages"]]
    if "cut" in kept:
        kept["cut"] = bool(kept["cut"])
    if data.get("kind") == "Joint":
        kept["other"] = [bool(words) for words in data["other"]]
    if data.get("kind") == "Series":
        kept["parts"] = [plain(part) for part in data["parts"]]
        kept["skipped"] = sorted(data["skipped"])
    if data.get("kind") == "Plan":
        del kept["question"]
        kept["draft"] = questions(Survey.from_toml(data["draft"]))
        kept["designs"] = [
            {key: value for key, value in design.items() if key not in (*WORDING, "name")}
            for design in data["designs"]
        ]
    return kept


def _fit(check: Mapping[str, Any]) -> dict[str, Any]:
    """Freeze a check of reports without its wording."""
    verdict = {"problems": len(check["problems"]), "conclusive": check["conclusive"]}
    return {"p_value": check["p_value"], **verdict}


def questions(survey: Survey) -> Any:
    """Return what a survey asks as published, without its name and its last day."""
    return json.loads(survey.canonical)["questions"]


def association(found: Any) -> dict[str, Any]:
    """Freeze a test of association."""
    names = ("method", "statistic", "degrees_of_freedom", "p_value", "reference")
    return {name: getattr(found, name) for name in names}


def interval(found: Any) -> dict[str, Any]:
    """Freeze estimates with their standard errors and intervals."""
    names = ("estimate", "standard_error", "low", "high")
    return {name: getattr(found, name).tolist() for name in names}


def batch(found: ReportBatch) -> dict[str, Any]:
    """Freeze reports: digests of their bytes on the wire and of every column."""
    arrays = [found.cohort, *found.clear, *(bits for parts in found.bits for bits in parts)]
    return {
        "reports": len(found),
        "wire": sha256(b"".join(bytes(report) for report in single_reports(found))),
        "columns": [[str(a.dtype), list(a.shape), sha256(a.tobytes())] for a in arrays],
    }


def unordered(batches: Iterable[ReportBatch]) -> dict[str, Any]:
    """Freeze reports whose order is random, as those of a store are."""
    rows = sorted(bytes(report) for each in batches for report in single_reports(each))
    return {"reports": len(rows), "sorted": sha256(b"".join(rows))}


def table(text: str) -> dict[str, Any]:
    """Freeze a CSV file: the order of its columns, and their cells, as numbers where they are."""
    header, *rows = csv.reader(io.StringIO(text, newline=""))
    cells = [[number(row[i]) for row in rows] for i in range(len(header))]
    return {"header": header, "columns": dict(zip(header, cells, strict=True))}


def number(cell: str) -> Any:
    """Return a cell as a whole number, as a float, or as it is."""
    for kind in (int, float):
        try:
            return kind(cell)
        except ValueError:
            pass
    return cell


class _Page(HTMLParser):
    """Collect the cells of all tables, and count the shapes of all charts."""

    SHAPES = ("circle", "line", "polygon", "polyline", "rect", "svg")

    def __init__(self) -> None:
        super().__init__()
        self.cells: list[list[str]] = []
        self.keys: list[float] = []
        self.shapes = dict.fromkeys(self.SHAPES, 0)
        self._open = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "tr":
            self.cells.append([])
        elif tag in ("td", "th"):
            self.cells[-1].append("")
            self._open = True
            self.keys += [float(value) for name, value in attrs if name == "data-key" and value]
        elif tag in self.shapes:
            self.shapes[tag] += 1

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._open = False

    def handle_data(self, data: str) -> None:
        if self._open:
            self.cells[-1][-1] += data


def page(path: Path) -> dict[str, Any]:
    """Freeze an HTML report: the cells of its tables, the sort keys, and the shapes it draws."""
    parser = _Page()
    parser.feed(path.read_text(encoding="utf-8"))
    return {"cells": parser.cells, "keys": parser.keys, "shapes": parser.shapes}
