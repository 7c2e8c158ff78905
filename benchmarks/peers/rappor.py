"""Compare with the decoders of google/rappor, in R and C++, on the same reports.

Both sides read the same files, which our code writes. The times are processor times of whole
processes, with their start. Our commands are `deniable rappor import` and then `decode` or
`associate`; decode_dist.R gets the sums of the reports. Only ours compute standard errors of joint
tables and a test of independence. Its command for associations takes only a string and a boolean,
so `joint_table.R` calls its functions. For the fit alone, our fit gets the likelihoods that its R
code wrote for fast_em.
The summed error is that of all estimated shares, against the shares among the simulated clients;
a string that was not detected has the estimate 0.
"""

from __future__ import annotations

import csv
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from experiments.paper.trials import bloom, pair, survey_of, truth_of
from tools.rappor_files import write_map, write_params, write_reports, write_rows

from benchmarks.peers.comparison import Comparison
from deniable import simulate
from deniable.inference.joint.evidence import gather
from deniable.inference.joint.solver import maximise
from deniable.kernels.counting.bit_sums import count_ones
from deniable.rappor.files import Params
from deniable.simulation import JointPopulation, exponential

PARAMS = Params(k=128, h=2, m=64, p=0.25, q=0.75, f=0.0)
MANY, FEW = 100_000, 10_000
"""Number of reports for the C++ program, and for the EM algorithm in R."""
SCHEMA = "metric,var,var_type,params\nm,x,string,params\nm,y,string,params\n"
JOINT_TABLE = Path(__file__).with_name("joint_table.R")
NEEDED = (
    "Rows of google/rappor are left out: {}. They need a checkout of github.com/google/rappor "
    "(--rappor DIR), g++, and Rscript with the R packages glmnet, limSolve, Matrix, optparse and "
    "RJSONIO."
)


class MissingError(Exception):
    """Raised if something is missing that the programs of google/rappor need."""


@dataclass(frozen=True)
class Programs:
    """The programs of a checkout of google/rappor, and a folder for files."""

    checkout: Path
    folder: Path

    def __post_init__(self) -> None:
        if not (self.checkout / "bin" / "decode_dist.R").exists():
            raise MissingError(f"{self.checkout} has no bin/decode_dist.R")
        for program in ("Rscript", "g++"):
            if shutil.which(program) is None:
                raise MissingError(f"there is no program {program}")
        source = self.checkout / "analysis" / "cpp" / "fast_em.cc"
        run(["g++", "-O3", "-w", "-o", str(self.em), str(source)])

    @property
    def em(self) -> Path:
        """The compiled EM algorithm."""
        return self.folder / "fast_em"

    def rscript(self, script: Path, *arguments: str) -> float:
        """Run a script in R and return its processor seconds."""
        repository = {"RAPPOR_REPO": f"{self.checkout.resolve()}/"}
        return run(["Rscript", str(script), *arguments], repository)


def run(command: Sequence[str], environment: dict[str, str] | None = None) -> float:
    """Run a command and return its processor seconds; raise MissingError if it fails."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ended = subprocess.run(
        command, env={**os.environ, **(environment or {})}, capture_output=True, text=True
    )
    if ended.returncode:
        lines = (ended.stderr or ended.stdout).strip().splitlines()[-3:]
        raise MissingError(f"{command[0]} failed: {' '.join(lines)}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def deniable(*arguments: str) -> float:
    """Run one of our commands and return its processor seconds."""
    return run([sys.executable, "-m", "deniable", *arguments])


# --- files -----------------------------------------------------------------------------------


def write_files(folder: Path) -> dict[int, JointPopulation]:
    """Write the files of both sides; return the simulated clients by the number of reports."""
    survey = survey_of(x=bloom(scheme="rappor-cpp"), y=bloom(scheme="rappor-cpp"))
    rng = np.random.default_rng(1)
    weights = exponential(100, 8.0)
    population = pair(weights, weights, strength=0.3)
    drawn = population.draw(MANY, rng)
    batch = simulate(survey, drawn, rng=rng)
    bits = {name: batch.bits[place][0] for place, name in enumerate("xy")}
    write_params(folder / "params.csv", PARAMS)
    (folder / "schema.csv").write_text(SCHEMA)
    for name, values in population.values.items():
        write_map(folder / f"map_{name}.csv", [str(value) for value in values], PARAMS)
    ones, total = count_ones(bits["x"], PARAMS.k, batch.cohort, PARAMS.m)
    write_rows(folder / "counts.csv", np.column_stack([total, ones]).tolist())
    unpacked = {
        name: np.unpackbits(packed, axis=1, bitorder="little") for name, packed in bits.items()
    }
    for count in (MANY, FEW):
        columns = {name: each[:count] for name, each in unpacked.items()}
        write_reports(folder / f"{count}.csv", range(count), batch.cohort[:count], columns)
    write_reports(folder / "x.csv", range(MANY), batch.cohort, {"irr": unpacked["x"]})
    codes = [drawn[name].codes for name in "xy"]
    return {
        count: JointPopulation(population.values, _shares([c[:count] for c in codes]))
        for count in (MANY, FEW)
    }


def _shares(codes: Sequence[npt.NDArray[np.int32]]) -> npt.NDArray[np.float64]:
    """Return the share of every pair of values among the clients."""
    table = np.zeros((100, 100))
    np.add.at(table, tuple(codes), 1 / len(codes[0]))
    return table


def read_results(path: Path) -> list[list[str]]:
    """Return the rows of a CSV file without its header."""
    with path.open(newline="") as file:
        return list(csv.reader(file))[1:]


def marginal_error(found: Mapping[str, float], crowd: JointPopulation) -> float:
    """Return the summed absolute error of the shares of detected strings."""
    truth = dict(zip(crowd.values["x"], crowd.table.sum(axis=1), strict=True))
    return float(sum(abs(found.get(str(name), 0.0) - share) for name, share in truth.items()))


def joint_errors(path: Path, crowd: JointPopulation) -> tuple[float, float]:
    """Return the summed absolute error of a table of x, y and proportion, and without Other."""
    rows = read_results(path)
    labels = [list(dict.fromkeys(row[axis] for row in rows)) for axis in (0, 1)]
    table = np.zeros((len(labels[0]), len(labels[1])))
    for x, y, share, *_ in rows:
        table[labels[0].index(x), labels[1].index(y)] = float(share)
    errors = np.abs(table - truth_of(crowd, labels))
    known = (
        [label in values for label in names]
        for names, values in zip(labels, crowd.values.values(), strict=True)
    )
    return float(errors.sum()), float(errors[np.ix_(*known)].sum())


# --- rows -------------------------------------------------------------------------------------


def marginal(programs: Programs, crowd: JointPopulation) -> Iterator[Comparison]:
    """Yield the marginal estimates of 100 candidates."""
    folder = programs.folder
    files = [f"--{name}={folder / file}.csv" for name, file in
             (("map", "map_x"), ("params", "params"))]  # fmt: skip

    def ours(output: Path) -> float:
        """Import and decode; return the processor seconds."""
        source = [str(output / name) for name in ("survey.toml", "reports.parquet")]
        candidates = f"--candidates={output / 'candidates-value.txt'}"
        result = f"--output={output / 'results.csv'}"
        return deniable(
            "rappor", "import", "--client=cpp", *files, str(folder / "x.csv"), f"-o{output}"
        ) + deniable("decode", *source, candidates, result)

    ours(folder / "first")  # loads compiled code
    mine = ours(folder / "second")
    script = programs.checkout / "bin" / "decode_dist.R"
    counts = f"--counts={folder / 'counts.csv'}"
    theirs = programs.rscript(script, *files, counts, f"--output-dir={folder}")
    rows = read_results(folder / "second" / "results.csv")
    detected = {row[0]: float(row[1]) for row in rows if row[-1] == "True"}
    listed = {row[0]: float(row[3]) for row in read_results(folder / "results.csv")}
    errors = (marginal_error(found, crowd) for found in (detected, listed))
    work = f"marginal, N = {MANY:,}, 100 candidates (google/rappor: decode_dist.R)"
    yield Comparison(work, "time to decode", mine, theirs)
    yield Comparison("", "summed error", *errors)


def joint(
    programs: Programs, crowd: JointPopulation, count: int, side: int, *, compiled: bool
) -> Iterator[Comparison]:
    """Yield a joint table of side × side cells, by EM in R or in C++."""
    folder = programs.folder
    maps = [f"--maps={name}={folder / f'map_{name}.csv'}" for name in "xy"]
    files = [f"--schema={folder / 'schema.csv'}", *maps, str(folder / f"{count}.csv")]

    def ours(output: Path) -> float:
        """Import and associate; return the processor seconds."""
        source = [str(output / name) for name in ("survey.toml", "reports.parquet")]
        lists = [f"--candidates={name}={output / f'candidates-{name}.txt'}" for name in "xy"]
        options = [*lists, f"--top={side - 1}", f"--output={output / 'results.csv'}"]
        return deniable("rappor", "import", "--client=cpp", *files, f"-o{output}") + deniable(
            "associate", *source, *options
        )

    ours(folder / f"first-{count}-{side}")  # loads compiled code
    mine = ours(folder / f"second-{count}-{side}")
    program = [str(programs.em)] if compiled else []
    theirs = programs.rscript(JOINT_TABLE, str(folder), f"{count}.csv", str(side - 1), *program)
    found = (folder / f"second-{count}-{side}" / "results.csv", folder / "joint-results.csv")
    errors, known = zip(*(joint_errors(path, crowd) for path in found), strict=True)
    where = "C++ EM" if compiled else "R EM"
    work = f"joint table, N = {count:,}, {side} × {side} (google/rappor: {where})"
    yield Comparison(work, "time to decode", mine, theirs)
    yield Comparison("", "summed error", *errors)
    yield Comparison("", "summed error without Other", *known)


def fit(programs: Programs, side: int) -> Iterator[Comparison]:
    """Yield the fit alone, on the likelihoods of the last joint table."""
    source, result = programs.folder / "list_of_matrices.bin", programs.folder / "pij.bin"
    theirs = run([str(programs.em), str(source), str(result), "1000"])
    cells = np.fromfile(source, np.float64, offset=20).reshape(-1, side, side)
    # R writes column by column. Cells are products, so their sums are both factors up to scale.
    sums = (cells.sum(axis=axis) for axis in (1, 2))
    x_rows, y_rows = ((s / s.max(axis=1, keepdims=True)).astype(np.float32) for s in sums)
    maximise(gather([(x_rows, y_rows)], (side, side)))  # loads compiled code
    start = time.process_time()
    evidence = gather([(x_rows, y_rows)], (side, side))
    fitted = maximise(evidence)
    mine = time.process_time() - start
    table = np.fromfile(result, np.float64, offset=12).reshape(side, side).T
    gaps = (evidence.evaluate(t / t.sum()).gap for t in (fitted.table, table))
    work = f"fit alone, N = {len(x_rows):,}, {side} × {side} (google/rappor: fast_em.cc)"
    yield Comparison(work, "time to fit", mine, theirs)
    yield Comparison("", "nats below maximum, at most", *gaps)


def rows(checkout: Path) -> Iterator[Comparison]:
    """Yield all comparisons with google/rappor; raise MissingError if its programs cannot run."""
    with tempfile.TemporaryDirectory() as name:
        programs = Programs(checkout, Path(name))
        crowds = write_files(programs.folder)
        yield from marginal(programs, crowds[MANY])
        yield from joint(programs, crowds[FEW], FEW, 6, compiled=False)
        for side in (6, 20):
            yield from joint(programs, crowds[MANY], MANY, side, compiled=True)
            yield from fit(programs, side)
