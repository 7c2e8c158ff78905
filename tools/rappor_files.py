"""Write files in the formats of google/rappor, as if its C++ clients had reported.

    python -m tools.rappor_files examples/rappor      write the files of the example again

The files of reports are compressed; `deniable rappor import` reads them as they are.
"""

from __future__ import annotations

import csv
import gzip
import io
import sys
from collections.abc import Mapping, Sequence
from dataclasses import astuple
from pathlib import Path

import numpy as np
import numpy.typing as npt

from deniable.mechanisms.schemes import scheme_named
from deniable.rappor.files import PARAMS_HEADER, SCHEMA_HEADER, Params

SEED, CLIENTS = 1, 5000
PARAMS = Params(k=32, h=2, m=16, p=0.25, q=0.75, f=0.0)
BOOLEAN = Params(k=1, h=1, m=16, p=0.25, q=0.75, f=0.0)
DOMAINS = {
    "apple.example": 0.5,
    "banana.example": 0.3,
    "cherry.example": 0.15,
    "date.example": 0.05,
}
"""Domains of the clients, with the share of each."""
CANDIDATES = (
    "apple.example", "banana.example", "cherry.example", "elderberry.example", "fig.example",
)  # fmt: skip
"""Strings of the map: two that no client has, and not the rarest one."""
SCHEMA = (("visits", "domain", "string", "params"), ("visits", "https", "boolean", "https_params"))
Bits = npt.NDArray[np.uint8]
Codes = npt.NDArray[np.integer]


def write_rows(path: Path, rows: Sequence[Sequence[object]]) -> None:
    r"""Write rows as google/rappor's tools do; lines end with \r\n."""
    file = io.StringIO(newline="")
    csv.writer(file).writerows(rows)
    data = file.getvalue().encode()
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)


def write_params(path: Path, params: Params) -> None:
    """Write params.csv."""
    write_rows(path, [PARAMS_HEADER, astuple(params)])


def positions_of(strings: Sequence[str], params: Params, client: str) -> npt.NDArray[np.intp]:
    """Return the bits that each string sets, [m, strings, h]."""
    hashed = scheme_named(f"rappor-{client}").positions
    bits = [
        [hashed(string.encode(), cohort, params.k, params.h, b"") for string in strings]
        for cohort in range(params.m)
    ]
    return np.array(bits, np.intp).reshape(params.m, len(strings), params.h)


def write_map(path: Path, strings: Sequence[str], params: Params, client: str = "cpp") -> None:
    """Write map.csv: a string, then cohort·k + bit + 1 of each cohort and hash."""
    offsets = np.arange(params.m)[:, None, None] * params.k + 1
    places = (positions_of(strings, params, client) + offsets).transpose(1, 0, 2)
    rows = places.reshape(len(strings), -1).tolist()
    write_rows(path, [[string, *row] for string, row in zip(strings, rows, strict=True)])


def write_reports(
    path: Path, clients: Sequence[object], cohort: Codes, columns: Mapping[str, Bits]
) -> None:
    """Write lines client,cohort,bits,…; columns : uint8[N, width] of 0s and 1s, bit 0 first."""
    texts = [
        np.ascontiguousarray(bits[:, ::-1] + np.uint8(ord("0"))).view(f"S{bits.shape[1]}").ravel()
        for bits in columns.values()
    ]
    lines = zip(clients, cohort.tolist(), *(text.astype(str) for text in texts), strict=True)
    write_rows(path, [["client", "cohort", *columns], *lines])


def bloom_bits(
    strings: Sequence[str], value: Codes, cohort: Codes, params: Params, client: str = "cpp"
) -> Bits:
    """Return the Bloom filters of clients that hold strings[value]."""
    bits = np.zeros((len(value), params.k), np.uint8)
    np.put_along_axis(bits, positions_of(strings, params, client)[cohort, value], 1, axis=1)
    return bits


def sent(bits: Bits, params: Params, rng: np.random.Generator) -> Bits:
    """Return bits with fresh noise."""
    return (rng.random(bits.shape) < np.where(bits, params.q, params.p)).astype(np.uint8)


def write_example(folder: Path) -> None:
    """Write parameters, schema, map, and reports of simulated clients."""
    rng = np.random.default_rng(SEED)
    names = list(DOMAINS)
    value = rng.choice(len(names), CLIENTS, p=list(DOMAINS.values()))
    cohort = rng.integers(0, PARAMS.m, CLIENTS)
    secure = rng.random((CLIENTS, 1)) < np.where(value == 0, 0.8, 0.2)[:, None]
    bloom = bloom_bits(names, value, cohort, PARAMS)
    domain, https = sent(bloom, PARAMS, rng), sent(secure.astype(np.uint8), BOOLEAN, rng)
    clients = range(1, CLIENTS + 1)
    folder.mkdir(parents=True, exist_ok=True)
    write_params(folder / "params.csv", PARAMS)
    write_params(folder / "https_params.csv", BOOLEAN)
    write_rows(folder / "rappor-vars.csv", [SCHEMA_HEADER, *SCHEMA])
    write_map(folder / "map.csv", CANDIDATES, PARAMS)
    # Without permanent noise (f = 0), its result, prr, is the Bloom filter itself.
    single = {"bloom": bloom, "prr": bloom, "irr": domain}
    write_reports(folder / "reports.csv.gz", clients, cohort, single)
    both = {"domain": domain, "https": https}
    write_reports(folder / "assoc-reports.csv.gz", clients, cohort, both)


if __name__ == "__main__":
    write_example(Path(sys.argv[1]))
