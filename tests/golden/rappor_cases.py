"""A case of google/rappor's commands on files in its formats."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tests.golden import freezing
from tests.golden.commands import (
    said,
    without,
)
from tests.golden.compare import JOINT
from tests.golden.registry import case


def write_rows(path: Path, rows: Any) -> Path:
    """Write rows as google/rappor's tools do."""
    path.write_text("".join(",".join(map(str, row)) + "\r\n" for row in rows), newline="")
    return path


@case(tolerance=JOINT)
def command_rappor(folder: Path) -> Any:
    """google/rappor's commands on files in its formats."""
    rng = np.random.default_rng(50)
    bits, hashes, cohorts, clients = 16, 2, 4, 3000
    strings = [f"v{i}" for i in range(8)]
    places = np.array(
        [[rng.choice(bits, hashes, replace=False) for _ in range(cohorts)] for _ in strings]
    )
    offsets = np.arange(cohorts)[:, None] * bits + 1
    value = np.minimum(rng.geometric(0.4, clients) - 1, 4)
    cohort = rng.integers(0, cohorts, clients)
    true = np.zeros((clients, bits), bool)
    for j in range(hashes):
        true[np.arange(clients), places[value, cohort, j]] = True
    sent = rng.random(true.shape) < np.where(true, 0.8, 0.2)
    flag = rng.random(clients) < np.where(rng.random(clients) < 0.6, value == 0, 0.5)
    flag_sent = rng.random(clients) < np.where(flag, 0.8, 0.2)
    header = ["k", "h", "m", "p", "q", "f"]
    write_rows(folder / "word.csv", [header, [bits, hashes, cohorts, 0.2, 0.8, 0.0]])
    write_rows(folder / "flag.csv", [header, [1, 1, cohorts, 0.2, 0.8, 0.0]])
    write_rows(folder / "map.csv", [
        [name, *(row + offsets).ravel().tolist()] for name, row in zip(strings, places, strict=True)
    ])  # fmt: skip
    write_rows(folder / "counts.csv", [
        [int((cohort == c).sum()), *sent[cohort == c].sum(axis=0).tolist()] for c in range(cohorts)
    ])  # fmt: skip
    write_rows(folder / "schema.csv", [["metric", "var", "var_type", "params"],
                                       ["m", "word", "string", "word"],
                                       ["m", "flag", "boolean", "flag"]])  # fmt: skip
    write_rows(folder / "reports.csv", [["client", "cohort", "word", "flag"], *(
        [i, cohort[i], "".join("01"[bit] for bit in sent[i, ::-1].astype(int)), int(flag_sent[i])]
        for i in range(clients)
    )])  # fmt: skip
    (folder / "graph.txt").write_text(
        "num_partitions 3\nngram_size 2\nedge 0.ab 1.cd\nedge 1.cd 2.ef\nedge 0.ab 2.ef\n"
        "edge 0.ab 1.xy\nedge 0.zz 2.ef\nedge 1.xy 2.ef\n"
    )
    out = ("--output-dir", folder)
    files = ("--map", folder / "map.csv", "--counts", folder / "counts.csv", "--params",
             folder / "word.csv")  # fmt: skip
    metrics = said("rappor", "decode-dist", *files, *out)
    results = freezing.table((folder / "results.csv").read_text())
    fdr = said("rappor", "decode-dist", *files, *out, "--correction", "FDR", "--alpha", "0.2")
    joint = said("rappor", "decode-assoc", "--metric-name", "m", "--schema", folder / "schema.csv",
                 "--reports", folder / "reports.csv", "--params-dir", folder, "--var1", "word",
                 "--map1", folder / "map.csv", "--var2", "flag", "--top", 3, *out)  # fmt: skip
    return {
        "metrics": without(metrics, "total_elapsed_time"),
        "results": results,
        "fdr": without(fdr, "total_elapsed_time"),
        "joint": without(joint, "file"),
        "table": freezing.table((folder / "assoc-results.csv").read_text()),
        "cliques": said("rappor", "cliques", folder / "graph.txt"),
    }
