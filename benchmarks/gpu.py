"""Measure one GPU: passes and their roofline, a joint table of 40 × 40, discovery, agreement.

    python -m benchmarks.gpu [--device cuda] [--reports 10000000] [--only NAME ...] [-o FILE.json]

About two minutes on an H200. `--device cpu --reports 20000` runs the same code without a GPU. Each
section prints its table and its seconds; if one fails, it prints why, and the others continue.

Counted work, for N reports and an m × n table:
  a pass        4N(m + n) bytes (every row read once), 4Nmn operations
  the curvature 2N·m(m+1)/2·n(n+1)/2 operations
The roofline is the larger of bytes over the measured copy rate and operations over the rate that a
large product of matrices reaches in the same precision.
"""

from __future__ import annotations

import argparse
import json
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from experiments.direct_rows import dependent_table

from deniable import Survey, associate, discover, simulate
from deniable.compute.cpu.threads import Threads
from deniable.compute.gpu import expectation as estep
from deniable.compute.gpu.backend import Gpu
from deniable.inference.joint.evidence import evidence_of, gather
from deniable.inference.joint.solver import maximise
from deniable.inference.joint.uncertainty import covariance
from deniable.inference.models import model_of
from deniable.simulation import Population, exponential, top_domains
from deniable.simulation.populations import JointPopulation

CATEGORIES = 40
HEAD = """
name = "bench"
version = 1
owner = "benchmarks"
description = "speed"
expires = 2999-12-31
collect = "once"
"""
BLOOM = """[questions.{name}]
kind = "string"
p = 0.25
q = 0.75
bits = 128
hashes = 2
cohorts = 64
"""
URLS = """[questions.url]
kind = "string"
mechanism = "localhash"
epsilon = 4.394449
[questions.url.dictionary]
protocol = "prefixes"
max_length = 20
alphabet = "a-z0-9._-"
"""
WHOLE = """[questions.code]
kind = "string"
mechanism = "localhash"
epsilon = 4.394449
[questions.code.dictionary]
protocol = "prefixes"
levels = [{length}]
max_length = {length}
alphabet = "a-z"
"""


class Bench:
    """The device, the size, and what was measured so far."""

    def __init__(self, device: str, reports: int) -> None:
        self.executor, self.reports = Gpu(device), reports
        self.device = self.executor.arrays.device
        self.cuda = self.device.type == "cuda"
        self.found: dict[str, Any] = {}
        self.rates: dict[str, float] = {}

    def seconds(self, work: Callable[[], Any], repeats: int = 20) -> float:
        """Return the median time of several calls, after two that warm up."""
        for _ in range(2):
            work()
        times = []
        for _ in range(repeats if self.cuda else 3):
            self.wait()
            start = time.perf_counter()
            work()
            self.wait()
            times.append(time.perf_counter() - start)
        return float(np.median(times))

    def wait(self) -> None:
        """Wait until the device has finished."""
        if self.cuda:
            torch.cuda.synchronize()

    def timed(self, work: Callable[[], Any]) -> tuple[Any, float]:
        """Return the result of one call, and its seconds."""
        self.wait()
        start = time.perf_counter()
        out = work()
        self.wait()
        return out, time.perf_counter() - start

    def note(self, section: str, name: str, **values: Any) -> None:
        """Print one line and keep it."""
        self.found.setdefault(section, {})[name] = values
        told = "  ".join(
            f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}"
            for key, value in values.items()
        )
        print(f"  {name:<34} {told}", flush=True)


def machine(bench: Bench) -> None:
    """Measure the two limits of the device: bytes copied, and products of large matrices."""
    size = 1 << 29 if bench.cuda else 1 << 22
    source = torch.rand(size, device=bench.device)
    target = torch.empty_like(source)
    took = bench.seconds(lambda: target.copy_(source))
    bench.rates["bytes"] = 2 * source.nbytes / took
    name = torch.cuda.get_device_name() if bench.cuda else "cpu"
    bench.note("machine", name, copy_TB_s=bench.rates["bytes"] / 1e12, torch=torch.__version__)
    side = 8192 if bench.cuda else 512
    for kind in (torch.float32, torch.float64):
        a = torch.rand((side, side), dtype=kind, device=bench.device)
        took = bench.seconds(partial(torch.matmul, a, a), 5)
        bench.rates[str(kind)] = 2 * side**3 / took
        bench.note("machine", f"product, {kind}", TFLOP_s=2 * side**3 / took / 1e12)


def likelihoods(bench: Bench, count: int) -> tuple[Any, Any]:
    """Rows that look like those of Bloom filters, float32[N, 40] twice, made on the device."""
    generator = torch.Generator(bench.device).manual_seed(1)
    made = []
    for _ in range(2):
        shape = (count, CATEGORIES)
        ones = sum(
            torch.randint(0, 2, shape, generator=generator, device=bench.device, dtype=torch.int8)
            for _ in range(2)
        )
        rows = torch.exp((ones.float() - 2) * 2.1972246)
        made.append((rows / rows.amax(dim=1, keepdim=True)).contiguous())
    return made[0], made[1]


def passes(bench: Bench) -> None:
    """Measure the E-step in both precisions, plain and fused, against its roofline."""
    m = n = CATEGORIES
    rows = likelihoods(bench, bench.reports)
    few = tuple(r[:200_000].double() for r in rows)
    table = torch.from_numpy(dependent_table(m, n, strength=0.3)).to(bench.device)
    table = (0.9 * table / table.sum() + 0.1 / (m * n)).double()
    d = ((few[0] @ table) * few[1]).sum(dim=1)
    truth = (few[0] / d[:, None]).T @ few[1]
    for kind in (torch.float32, torch.float64):
        used = table.to(kind)
        bytes_s = 4.0 * bench.reports * (m + n) / bench.rates["bytes"]
        work_s = 4.0 * bench.reports * m * n / bench.rates[str(kind)]
        floor = max(bytes_s, work_s)
        bench.note("passes", f"roofline, {kind}", bytes_ms=1e3 * bytes_s, products_ms=1e3 * work_s)
        for name, expect in _ways(bench):
            try:
                took = bench.seconds(partial(expect, rows, used))
                got = expect(tuple(r[:200_000].contiguous() for r in rows), used)[1]
            except Exception as error:
                bench.note("passes", f"{name}, {kind}", failed=repr(error)[:200])
                continue
            bench.note(
                "passes", f"{name}, {kind}", ms=1e3 * took, of_roofline=took / floor,
                of_bytes=took / bytes_s, GB_s=4e-9 * bench.reports * (m + n) / took,
                error=float(((got - truth).abs() / truth).max()),
            )  # fmt: skip


def _ways(bench: Bench) -> list[tuple[str, Callable[..., Any]]]:
    """Return passes by whole-array operations, and by one kernel."""
    ways: list[tuple[str, Callable[..., Any]]] = [
        ("plain", lambda rows, table: estep.expect(rows, None, table))
    ]
    if bench.cuda:
        from deniable.compute.gpu import fused_expectation as fused

        ways.append(("fused", lambda rows, table: fused.expect(rows[0], rows[1], None, table)))
    return ways


def curvature(bench: Bench) -> None:
    """Measure the sums of the information matrix over all reports, in double precision."""
    m = n = CATEGORIES
    rows = likelihoods(bench, bench.reports)
    table = torch.full((m, n), 1 / (m * n), dtype=torch.float64, device=bench.device)
    _, first = bench.timed(lambda: estep.pair_sums(rows, None, table))
    _, took = bench.timed(lambda: estep.pair_sums(rows, None, table))
    work = 2.0 * bench.reports * (m * (m + 1) // 2) * (n * (n + 1) // 2)
    bench.note(
        "curvature", "all reports", seconds=took, first=first, TFLOP_s=work / took / 1e12,
        of_roofline=took * bench.rates["torch.float64"] / work,
    )  # fmt: skip


def crowd(bench: Bench, reports: int) -> tuple[Survey, Any, dict[str, list[str]]]:
    """Two questions of 40 strings each, associated."""
    survey = Survey.from_toml(HEAD + BLOOM.format(name="a") + BLOOM.format(name="b"))
    names = {q: [f"{q}{i}" for i in range(CATEGORIES)] for q in ("a", "b")}
    table = dependent_table(CATEGORIES, CATEGORIES, strength=0.3, exponent=0.7)
    population = JointPopulation({q: tuple(v) for q, v in names.items()}, table)
    rng = np.random.default_rng(3)
    batch, took = bench.timed(lambda: simulate(survey, population.draw(reports, rng), rng=rng))
    bench.note("joint", f"simulated, N = {reports:,}", seconds=took)
    return survey, batch, names


def joint(bench: Bench) -> None:
    """Measure the way from reports in memory to a converged 40 × 40 table with errors."""
    from deniable.analysis.categories import candidates_of
    from deniable.analysis.source import Source

    survey, batch, names = crowd(bench, bench.reports)
    models = {q: model_of(candidates_of(survey.question(q), v)) for q, v in names.items()}
    small = batch.select(slice(0, 20_000))
    for some, name in ((small, "warm-up"), (batch, "all reports")):
        whole = time.perf_counter()
        source, task = Source(some, survey), partial(_piece, bench.executor, models)
        made, rows_s = bench.timed(partial(source.hold, bench.executor, task))
        evidence = evidence_of(made, (CATEGORIES, CATEGORIES), bench.executor.arrays)
        fit, fit_s = bench.timed(partial(maximise, evidence))
        found, errors_s = bench.timed(partial(covariance, evidence, fit.table))
        bench.note(
            "joint", name, rows_s=rows_s, fit_s=fit_s, errors_s=errors_s,
            whole_s=time.perf_counter() - whole, passes=fit.passes, gap=fit.gap_nats,
            converged=fit.converged, median_se=float(np.median(found.standard_errors)),
        )  # fmt: skip
    for precise in (False, True):
        took = bench.seconds(partial(evidence.evaluate, fit.table, precise=precise), 10)
        bench.note("joint", f"a pass, {'double' if precise else 'single'}", ms=1e3 * took)


def _piece(executor: Gpu, models: dict[str, Any], batch: Any) -> Any:
    sent = {name: batch.column(name) for name in models}
    rows = [
        model.likelihood(sent[name].bits, sent[name].stratum, executor.arrays).rows
        for name, model in models.items()
    ]
    return executor.arrays.lay_out(rows)


def verb(bench: Bench) -> None:
    """Measure `associate`: marginals, Other, table and errors; then the test of association."""
    survey, batch, names = crowd(bench, bench.reports)
    settings: dict[str, Any] = {"candidates": names, "top": CATEGORIES, "fitted": CATEGORIES}
    found, took = bench.timed(
        lambda: associate(
            survey, batch, ["a", "b"], other=False, executor=bench.executor, **settings
        )
    )
    bench.note("verb", f"associate {found.table.shape}", seconds=took, passes=found.passes,
               gap=found.gap_nats, converged=found.converged)  # fmt: skip
    test, took = bench.timed(found.test)
    bench.note("verb", "score test", seconds=took, statistic=test.statistic, p=test.p_value)


def agreement(bench: Bench) -> None:
    """Compare the numbers of the device with those of the processor, on a smaller crowd."""
    count = min(bench.reports, 200_000)
    rows = [r.cpu().numpy() for r in likelihoods(bench, count)]
    shape = (CATEGORIES, CATEGORIES)
    here = gather([tuple(rows)], shape, executor=Threads())
    there = gather([tuple(rows)], shape, executor=bench.executor)
    table = np.random.default_rng(1).dirichlet(np.ones(1600)).reshape(shape)
    for precise in (False, True):
        mine, its = (e.evaluate(table, precise=precise) for e in (here, there))
        off = np.abs(its.gradient / mine.gradient - 1).max()
        bench.note("agreement", f"gradient, {'double' if precise else 'single'}", relative=off)
    mine_i, its_i = here.information(table), there.information(table)
    bench.note("agreement", "information", relative=float(np.abs(its_i / mine_i - 1).max()))
    fits = [bench.timed(partial(maximise, e)) for e in (here, there)]
    (mine_f, mine_s), (its_f, its_s) = fits
    bench.note(
        "agreement", "fit", nats=abs(mine_f.log_likelihood - its_f.log_likelihood),
        gaps=f"{mine_f.gap_nats:.2g} {its_f.gap_nats:.2g}", passes=its_f.passes,
        processors_s=mine_s, device_s=its_s,
    )  # fmt: skip
    errors = [covariance(e, mine_f.table).standard_errors for e in (here, there)]
    bench.note("agreement", "standard errors",
               relative=float(np.abs(errors[1] / errors[0] - 1).max()))  # fmt: skip


def discovery(bench: Bench) -> None:
    """Measure the URL experiment: 100 domains, weights ∝ exp(−rank/25), M = 20, ε = 4.39."""
    text, names = HEAD + URLS, top_domains()
    if not bench.cuda:  # hashing tens of millions of strings is a GPU's work
        text = text.replace("a-z0-9._-", "a-d").replace("20", "4")
        names = tuple("".join(c if c in "abcd" else "a" for c in name[:4]) for name in names[:9])
        names = tuple(dict.fromkeys(names))
    population = Population(names, exponential(len(names), 25.0))
    _discover(bench, "discovery", text, "url", population, bench.reports)


def whole(bench: Bench) -> None:
    """Every string of a domain: 5 letters on a GPU, 12 million of them; 3 without."""
    length = 5 if bench.cuda else 3
    rng = np.random.default_rng(6)
    letters = rng.integers(0, 26, (50, length)) + ord("a")
    words = tuple(sorted({"".join(map(chr, row)) for row in letters}))
    _discover(bench, "whole", HEAD + WHOLE.format(length=length), "code",
              Population(words, exponential(len(words), 12.0)),
              min(bench.reports, 1_000_000))  # fmt: skip


def _discover(
    bench: Bench, section: str, text: str, question: str, population: Population, reports: int
) -> None:
    survey, rng = Survey.from_toml(text), np.random.default_rng([1, 0])
    batch, took = bench.timed(lambda: simulate(survey, population.draw(reports, rng), rng=rng))
    bench.note(section, f"simulated, N = {reports:,}", seconds=took)
    executors: list[tuple[str, Any]] = [("device", bench.executor)]
    if bench.cuda:  # compiled code, and the kernels of the device
        discover(survey, batch.select(slice(0, 20_000)), question, executor=bench.executor)
        executors.append(("processors", Threads()))
    for name, executor in executors:
        found, took = bench.timed(partial(discover, survey, batch, question, executor=executor))
        true = sum(string in population.values for string in found.strings)
        bench.note(section, name, seconds=took, found=true, false=len(found.strings) - true,
                   looked_at=found.candidates)  # fmt: skip
        for stage in found.stages:
            bench.note(section, f"{name}: {stage.name}", seconds=stage.seconds)


SECTIONS = {
    each.__name__: each
    for each in (machine, passes, curvature, agreement, joint, discovery, verb, whole)
}


def main() -> None:
    """Run the sections asked for, and write what they found."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--reports", type=int, default=10_000_000)
    parser.add_argument("--only", nargs="+", choices=list(SECTIONS), default=list(SECTIONS))
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    bench = Bench(options.device, options.reports)
    for name in dict.fromkeys(("machine", *options.only)):
        print(f"{name}: {(SECTIONS[name].__doc__ or '').strip()}", flush=True)
        start = time.perf_counter()
        try:
            SECTIONS[name](bench)
        except Exception:
            traceback.print_exc()
            bench.found.setdefault(name, {})["failed"] = traceback.format_exc()
        if bench.cuda:
            torch.cuda.empty_cache()
        print(f"  {name} took {time.perf_counter() - start:.1f} s\n", flush=True)
        if options.output:
            options.output.write_text(json.dumps(bench.found, indent=1, default=str))


if __name__ == "__main__":
    main()
