"""Files of every kind that a person may hand over, and random damage to them.

Reading a damaged file succeeds, or fails with an error of deniable that names the file.
"""

from __future__ import annotations

import gzip
import json
import random
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
from tools.rappor_files import write_map, write_params

from deniable import Survey, count, simulate
from deniable.analysis.counting import read_counts
from deniable.cli.inputs import read_result, read_strings, read_words
from deniable.cli.simulate_command import _simulate_values
from deniable.client import Ledger
from deniable.client.ledger import Charge
from deniable.columns import ReportBatch, scan, write
from deniable.errors import DeniableError
from deniable.rappor import files as rappor
from deniable.rappor.reports import read_reports
from deniable.simulation import from_csv, table_from_csv
from tests.results.samples import samples
from tests.surveys import EDITOR_AND_PAGE, make_survey, survey_toml

SURVEY = make_survey(EDITOR_AND_PAGE)
INTERESTING = (
    b"\0", b"\xff", b"\x7f", b'"', b",", b"\n", b"\r", b"-", b"9" * 20, b"1e999", b"\x80" * 9,
)  # fmt: skip
RAPPOR_REPORTS = "client,cohort,v\nu1,0,01100110\nu2,3,11100111\n"
OTHER_VALUES = (None, True, 0, -1, 1.5, 1e308, 10**400, "", "x", "NaN", [], [[1], 2], {}, {"x": 1})
PARAMS = rappor.Params(k=8, h=2, m=4, p=0.25, q=0.75, f=0.5)


@cache
def reports() -> ReportBatch:
    answers = {"editor": ["vim", "emacs"] * 100, "page": ["ab", "cdef"] * 100}
    return simulate(SURVEY, answers, rng=np.random.default_rng(1))


@dataclass(frozen=True)
class Kind:
    """A kind of file: its name, how a good one is written, and how one is read."""

    name: str
    write: Callable[[Path], object]
    read: Callable[[Path], object]


def _text(text: str) -> Callable[[Path], object]:
    return lambda path: path.write_text(text)


def _shown(path: Path) -> None:
    """Read a result, and print it as a command would."""
    with np.errstate(all="ignore"):
        str(read_result(path))


def _scan(path: Path) -> None:
    for _ in scan(path, survey=SURVEY):
        pass


def _answers(path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # answers that cannot be reported in full
        for _ in _simulate_values(SURVEY, path, (), np.random.default_rng(1), False):
            pass


def _counted(path: Path) -> None:
    count(SURVEY, reports(), ["editor", "page"]).save(path)


def _read_table(path: Path) -> object:
    return table_from_csv(path, "x", "y")


def _compressed(path: Path) -> None:
    path.write_bytes(gzip.compress(RAPPOR_REPORTS.encode()))


_read_map = partial(rappor.read_map, params=PARAMS, client="cpp")
_read_schema = partial(rappor.read_schema, metric=None)
_read_reports = partial(read_reports, widths={"v": 8}, cohorts=4)


def _charged(path: Path) -> None:
    Ledger(path).charge("tests", 9, [Charge("noise", 2, None)], owner="me")


KINDS = [
    *(
        Kind(f"reports{ending}", lambda path: write(path, reports()), _scan)
        for ending in (".parquet", ".dn")
    ),
    Kind("counts.npz", _counted, read_counts),
    Kind("survey.json", SURVEY.publish, Survey.load),
    Kind("survey.toml", _text(survey_toml(EDITOR_AND_PAGE)), Survey.load),
    *(Kind(f"{name}.json", result.save, _shown) for name, result in samples().items()),
    Kind("ledger.json", _charged, lambda path: Ledger(path).spending()),
    Kind("population.csv", _text('value,weight\nred,3\n\'=1+1,2.5e3\n"a,b",1\n'), from_csv),
    Kind("table.csv", _text(",yes,no\nvim,3,1\nemacs,0,4\n"), _read_table),
    Kind("answers.csv", _text("editor,page\nvim,ab\nemacs,\n,cdef\n"), _answers),
    Kind("strings.csv", _text("value,weight\nred,3\n'=1+1,2.5e3\n"), read_strings),
    Kind("words.csv", _text("value,weight\nred,3\n'=1+1,2.5e3\n"), read_words),
    Kind("params.csv", lambda path: write_params(path, PARAMS), rappor.read_params),
    Kind("map.csv", lambda path: write_map(path, ["red"], PARAMS), _read_map),
    Kind("reports.csv", _text(RAPPOR_REPORTS), _read_reports),
    Kind("reports.csv.gz", _compressed, _read_reports),
    Kind("schema.csv", _text("metric,var,var_type,params\nm,v,string,p\n"), _read_schema),
]


def spoilt(data: bytes, rng: random.Random) -> bytes:
    """Return the data with some bytes changed, deleted, inserted, copied or cut off.

    Half of the places are near the end, where several formats describe their columns.
    """
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        last = max(1, len(changed))
        at = rng.randrange(last) if rng.random() < 0.5 else max(0, last - 1 - rng.randrange(1500))
        match rng.randrange(8):
            case 0 | 1 if changed:
                changed[at] ^= 1 << rng.randrange(8)
            case 2 if changed:
                changed[at] = rng.randrange(256)
            case 3:
                del changed[at : at + rng.randrange(1, 16)]
            case 4:
                changed[at:at] = rng.randbytes(rng.randrange(1, 16))
            case 5:
                changed[at : at + rng.randrange(3)] = rng.choice(INTERESTING)
            case 6:
                start, size = rng.randrange(last), rng.randrange(64)
                changed[at : at + size] = changed[start : start + size]
            case 7 if rng.random() < 0.3:
                del changed[at:]
    return bytes(changed)


def spoilt_json(data: bytes, rng: random.Random) -> bytes:
    """Return JSON in which one value is missing, repeated, elsewhere, or of another type."""
    tree = json.loads(data)
    node = tree
    while True:
        keys = list(node) if isinstance(node, dict) else range(len(node))
        if not keys:
            break
        key = rng.choice(keys)
        if isinstance(node[key], dict | list) and rng.random() < 0.8:
            node = node[key]
            continue
        match rng.randrange(4):
            case 0:
                del node[key]
            case 1 if isinstance(node, list):
                node.append(node[key])
            case 2 if isinstance(node, dict):
                node[rng.choice(("x", *keys))] = node.pop(key)
            case _:
                node[key] = rng.choice(OTHER_VALUES)
        break
    return json.dumps(tree).encode()


def damage(kind: Kind, folder: Path, times: int, seed: int = 1) -> Counter[str]:
    """Damage a file many times; return how often it was read, or refused with which error.

    Raise an ExceptionGroup of all other errors, and of those that do not name the file.
    """
    rng = random.Random(f"{kind.name} {seed}")
    path = folder / kind.name
    kind.write(path)
    good, outcomes = path.read_bytes(), Counter[str]()
    kind.read(path)
    wrong: dict[str, Exception] = {}
    for number in range(times):
        structured = path.suffix == ".json" and rng.random() < 0.5
        path.write_bytes((spoilt_json if structured else spoilt)(good, rng))
        try:
            kind.read(path)
            outcomes["read"] += 1
        except Exception as error:
            outcomes[type(error).__name__] += 1
            if not isinstance(error, DeniableError) or kind.name not in str(error):
                error.add_note(f"number {number} of {kind.name}, seed {seed}")
                wrong.setdefault(f"{type(error)} {error}"[:60], error)
    if wrong:
        raise ExceptionGroup(f"{kind.name}: {len(wrong)} wrong errors", list(wrong.values()))
    return outcomes


def inflict(folder: Path, times: int) -> str:
    """Damage a file of every kind."""
    outcomes = sum((damage(kind, folder, times) for kind in KINDS), Counter[str]())
    read = outcomes.pop("read")
    refused = f"{outcomes.total():,} refused with an error that names the file"
    return f"{len(KINDS)} kinds of files: {read:,} still readable, {refused}"
