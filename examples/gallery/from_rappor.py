"""How do I move from google/rappor?

deniable has google/rappor's commands and reads its files. This example writes the reports of 50,000
simulated clients as a file of google/rappor, runs `deniable rappor sum-bits`, `hash-candidates` and
`decode-dist`, which replace its commands of these names, and plots `results.csv`.
"""

import csv
import subprocess
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from deniable import Survey, simulate
from deniable.rappor import files
from deniable.rappor.reports import Reports, write_reports
from deniable.simulation import Population, exponential

survey = Survey.from_toml("""
name = "legacy"
version = 1
owner = "example"
description = "Reports of deployed clients."
expires = 2999-12-31
collect = "once"
[questions.domain]
kind = "string"
scheme = "rappor-cpp"
bits = 64
hashes = 2
cohorts = 16
p = 0.25
q = 0.75
""")
domains = Population(tuple(f"site{i}.example" for i in range(40)), exponential(40, 8.0))
rng = np.random.default_rng(13)
batch = simulate(survey, {"domain": domains.draw(50_000, rng)}, rng=rng)

# Files of google/rappor: parameters, reports, and a list of candidates.
bits = batch.column("domain")
ids = np.arange(len(batch)).astype("S")
files.write_params("params.csv", files.Params(64, 2, 16, 0.25, 0.75, 0.0))
write_reports("reports.csv", Reports(ids, bits.cohort, {"irr": (bits.bits, 64)}))
Path("candidates.txt").write_text("\n".join(domains.values))

for command in (
    "sum-bits params.csv reports.csv -o counts.csv",
    "hash-candidates params.csv candidates.txt -o map.csv",
    "decode-dist --params params.csv --counts counts.csv --map map.csv --output-dir out",
):
    subprocess.run([sys.executable, "-m", "deniable", "rappor", *command.split()], check=True)

rows = list(csv.DictReader(Path("out", "results.csv").read_text().splitlines()))
figure, axes = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
share = [100 * float(row["proportion"]) for row in rows]
reach = [196 * float(row["prop_std_error"]) for row in rows]
axes.errorbar(share, [row["string"] for row in rows], xerr=reach, fmt="o")
axes.set(xlabel="share of clients, % (95% interval)", title="google/rappor's files, decoded")
axes.invert_yaxis()
axes.grid(alpha=0.3)
figure.savefig("from_rappor.png", dpi=110)
