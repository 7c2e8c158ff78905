"""How do I move from google/rappor?

deniable reads the counts, map and parameters that google/rappor's tools wrote. This example writes
such files for 50,000 simulated clients, runs `deniable rappor decode-dist`, which replaces
google/rappor's command of that name, and plots `results.csv`.
"""

import csv
import subprocess
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from deniable import Survey, simulate
from deniable.rappor import files
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

# What google/rappor's sum_bits.py and hash_candidates.py write:
cohort, _, packed = batch.arrays()
bits = np.unpackbits(packed, axis=1, bitorder="little").astype(np.int64)
ones = np.array([bits[cohort == c].sum(axis=0) for c in range(16)])
params = files.Params(64, 2, 16, 0.25, 0.75, 0.0)
files.write_params("params.csv", params)
files.write_counts("counts.csv", ones, np.bincount(cohort, minlength=16))
files.write_map("map.csv", files.hash_map(domains.values, params), params)

Path("out").mkdir(exist_ok=True)
command = (
    "rappor decode-dist --params params.csv --counts counts.csv --map map.csv --output-dir out"
)
subprocess.run([sys.executable, "-m", "deniable", *command.split()], check=True)

rows = list(csv.DictReader(Path("out", "results.csv").read_text().splitlines()))
figure, axes = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
share = [100 * float(row["proportion"]) for row in rows]
reach = [196 * float(row["prop_std_error"]) for row in rows]
axes.errorbar(share, [row["string"] for row in rows], xerr=reach, fmt="o")
axes.set(xlabel="share of clients, % (95% interval)", title="google/rappor's files, decoded")
axes.invert_yaxis()
axes.grid(alpha=0.3)
figure.savefig("from_rappor.png", dpi=110)
