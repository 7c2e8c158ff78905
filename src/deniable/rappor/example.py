"""Write example files in the formats of google/rappor, as if its C++ clients had reported."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from deniable.kernels.array_types import Bytes
from deniable.rappor.files import Params, hash_map, write_params
from deniable.rappor.reports import Reports, write_reports

PARAMS = Params(k=32, h=2, m=16, p=0.25, q=0.75, f=0.0)
BOOLEAN_PARAMS = Params(k=1, h=1, m=16, p=0.25, q=0.75, f=0.0)
DOMAINS = {
    "apple.example": 0.5,
    "banana.example": 0.3,
    "cherry.example": 0.15,
    "date.example": 0.05,
}
"""Domains of the clients, with the share of each."""
ABSENT = ("elderberry.example", "fig.example")
"""Candidates that no client has."""
SCHEMA = """\
metric,var,var_type,params
visits,domain,string,params
visits,https,boolean,https_params
"""
FILES = {
    "params.csv": "parameters of the strings",
    "https_params.csv": "parameters of the booleans",
    "schema.csv": "variables of the association reports",
    "candidates.txt": "strings that clients may have",
    "reports.csv": "reports of one string per client",
    "assoc-reports.csv": "reports of a string and a boolean per client",
}
"""Files of the example, with what is in them."""


def write_example(folder: Path, clients: int, seed: int) -> None:
    """Write reports of simulated clients, and the files that describe them, to a folder."""
    rng = np.random.default_rng(seed)
    names, shares = list(DOMAINS), np.array(list(DOMAINS.values()))
    value = rng.choice(len(names), clients, p=shares)
    cohort = rng.integers(0, PARAMS.m, clients).astype(np.uint16)
    bloom = np.zeros((clients, PARAMS.k), np.uint8)
    places = hash_map(names, PARAMS).positions[cohort, value]
    np.put_along_axis(bloom, places.astype(np.intp), 1, axis=1)
    secure = rng.random((clients, 1)) < np.where(value == 0, 0.8, 0.2)[:, np.newaxis]
    ids = np.arange(1, clients + 1).astype(np.bytes_)
    noisy, noisy_secure = _sent(bloom, rng), _sent(secure.astype(np.uint8), rng)
    # Without permanent noise (f = 0), its result, prr, is the Bloom filter itself.
    columns = {"bloom": bloom, "prr": bloom, "irr": noisy}
    both = {"domain": noisy, "https": noisy_secure}
    folder.mkdir(parents=True, exist_ok=True)
    write_params(folder / "params.csv", PARAMS)
    write_params(folder / "https_params.csv", BOOLEAN_PARAMS)
    (folder / "schema.csv").write_bytes(SCHEMA.replace("\n", "\r\n").encode())
    (folder / "candidates.txt").write_text("".join(f"{name}\n" for name in (*names, *ABSENT)))
    write_reports(folder / "reports.csv", Reports(ids, cohort, _packed(columns)))
    write_reports(folder / "assoc-reports.csv", Reports(ids, cohort, _packed(both)))


def _sent(bits: Bytes, rng: np.random.Generator) -> Bytes:
    """Return bits uint8[N, width] with the fresh noise of both parameter files."""
    noisy = rng.random(bits.shape) < np.where(bits, PARAMS.q, PARAMS.p)
    return noisy.astype(np.uint8)


def _packed(columns: dict[str, Bytes]) -> dict[str, tuple[Bytes, int]]:
    """Return the packed bits and the width of each column."""
    return {
        name: (np.packbits(bits, axis=1, bitorder="little"), bits.shape[1])
        for name, bits in columns.items()
    }
