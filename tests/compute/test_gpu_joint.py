"""Joint tables on a device agree with those of processors, as docs/how-to/gpu.md states."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from experiments.direct_rows import basic_rows, bloom_rows, dependent_table, draw_cells

from deniable import associate, simulate
from deniable.columns import ReportBatch
from deniable.compute.backend import MethodCall
from deniable.compute.cpu.array_kernels import CPU_KERNELS
from deniable.compute.named import executor_of
from deniable.compute.ratios import LikelihoodRatios
from deniable.compute.rows import LikelihoodRows
from deniable.errors import InputError, MissingPackage
from deniable.inference.association.independence import score_test
from deniable.inference.joint.evidence import gather
from deniable.inference.joint.quadratic import minimise_quadratic
from deniable.inference.joint.solver import maximise
from deniable.inference.joint.uncertainty import covariance
from deniable.inference.models.bit_likelihood import channel_rows
from deniable.inference.models.bloom import BloomModel
from deniable.inference.models.local_hash import HashModel
from tests.devices import DEVICES, needs_torch
from tests.surveys import make_survey

PRECISE = 1e-11
SINGLE = 2e-6
LIKELIHOOD = 3e-7


def gpu(name: str):
    from deniable.compute.gpu.backend import Gpu

    return Gpu(name)


def shards(count: int, shape: tuple[int, ...], seed: int, weights: bool = False):
    rng = np.random.default_rng(seed)
    table = dependent_table(shape[0], int(np.prod(shape[1:])), strength=0.3)
    values = draw_cells(table.reshape(shape), count, rng)
    rows = [basic_rows(v, size, rng=rng) for v, size in zip(values, shape, strict=True)]
    more = [rng.integers(0, 4, count).astype(np.float64)] if weights else []
    return [(*rows, *more)]


@pytest.mark.parametrize("name", DEVICES)
@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("shape", [(5,), (6, 9), (3, 4, 2)])
def test_a_pass_and_the_curvature_are_those_of_processors(name, shape, weights):
    given = shards(9_001, shape, 3, weights)
    here, there = gather(given, shape), gather(given, shape, executor=gpu(name))
    assert there.weight == here.weight
    table = np.random.default_rng(4).dirichlet(np.ones(int(np.prod(shape)))).reshape(here.folded)
    for precise, within in ((True, PRECISE), (False, SINGLE)):
        mine, its = (e.evaluate(table, precise=precise) for e in (here, there))
        assert its.log_likelihood == pytest.approx(mine.log_likelihood, rel=within)
        np.testing.assert_allclose(its.gradient, mine.gradient, rtol=within)
    mine, its = (next(iter(e.rows.map(lambda p, t=table: p.pair_sums(t)))) for e in (here, there))
    whole = sum(e for e in here.rows.map(lambda p, t=table: p.pair_sums(t)))
    np.testing.assert_allclose(its, whole, rtol=2e-6)
    assert mine.shape == its.shape
    group = np.random.default_rng(5).integers(0, 7, here.count)
    here, there = here.stratified(group), there.stratified(group)

    scores = MethodCall(LikelihoodRows.stratum_scores, table, 10)
    mine, its = (e.rows.sum(scores) for e in (here, there))
    np.testing.assert_allclose(its, mine, rtol=1e-5, atol=1e-6 * here.weight)
    np.testing.assert_allclose(
        its[:, :-1].sum(axis=0), here.weight * here.evaluate(table).gradient.ravel(), rtol=1e-5
    )
    assert not its[7:].any()


@pytest.mark.parametrize("name", DEVICES)
def test_an_impossible_report_makes_the_likelihood_nothing(name):
    a = np.array([[1, 0], [0, 1]], np.float32)
    there = gather([(a, a)], (2, 2), executor=gpu(name))
    assert there.evaluate(np.array([[1.0, 0.0], [0.0, 0.0]])).log_likelihood == -np.inf


@pytest.mark.parametrize("name", DEVICES)
def test_a_fit_and_its_standard_errors_are_those_of_processors(name):
    given, shape = shards(60_000, (8, 7), 5), (8, 7)
    here, there = gather(given, shape), gather(given, shape, executor=gpu(name))
    mine, its = maximise(here), maximise(there)
    assert its.converged and its.gap_nats <= 0.01
    # Both gaps are certified, so each likelihood is within 0.01 of the one maximum.
    assert abs(its.log_likelihood - mine.log_likelihood) <= 0.01
    errors = covariance(here, mine.table).standard_errors
    np.testing.assert_allclose(covariance(there, mine.table).standard_errors, errors, rtol=1e-4)
    assert np.all(np.abs(its.table - mine.table) <= 0.05 * errors + 1e-12)


@pytest.mark.parametrize("name", DEVICES)
def test_reports_drawn_chosen_and_collapsed_on_a_device(name):
    given, shape = shards(20_000, (4, 3), 6, weights=True), (4, 3)
    here, there = gather(given, shape), gather(given, shape, executor=gpu(name))
    drawn = there.sample(5_000, np.random.default_rng(1))
    assert drawn.count == 5_000
    piece = next(iter(drawn.rows.map(lambda p: p)))
    weights = given[0][2]
    share = (given[0][0] * weights[:, None]).sum(axis=0) / weights.sum()
    # A mean of 5,000 rows with entries in [0, 1]: false alarm below 1e-6.
    assert np.abs(piece.rows[0].cpu().numpy().mean(axis=0) - share).max() < 5 * 0.5 / np.sqrt(5_000)
    uniform = np.full((4, 1), 0.25)
    mine, its = (e.only(0).evaluate(uniform) for e in (here, there))
    np.testing.assert_allclose(its.gradient, mine.gradient, rtol=PRECISE)
    mixing = [np.eye(4, 2, dtype=np.float32) + 0.1, np.eye(3, 3, dtype=np.float32)]
    table = np.full((2, 3), 1 / 6)
    mine, its = (e.mixed(mixing).evaluate(table) for e in (here, there))
    np.testing.assert_allclose(its.gradient, mine.gradient, rtol=SINGLE)


@pytest.mark.parametrize("name", DEVICES)
@pytest.mark.parametrize("stratified", [False, True])
def test_the_score_test_on_a_device(name, stratified):
    given, shape = shards(12_000, (4, 3), 11, weights=True), (4, 3)
    strata = np.random.default_rng(12).integers(0, 5, 12_000) * 7 if stratified else None
    strata = None if strata is None else np.append(strata[:-1], 99)  # one report by itself
    mine, its = (
        score_test(gather(given, shape, executor=e), strata=strata) for e in (None, gpu(name))
    )
    assert (its.method, its.degrees_of_freedom) == ("score", 6)
    assert its.statistic == pytest.approx(mine.statistic, rel=1e-4)


@pytest.mark.parametrize("name", DEVICES)
def test_tests_of_three_variables_on_a_device(name):
    given, shape = shards(6_000, (4, 3, 2), 15), (4, 3, 2)
    found = []
    for executor in (None, gpu(name)):
        evidence = gather(given, shape, executor=executor)
        found.append(score_test(evidence))
    mine, its = found
    assert its.degrees_of_freedom == mine.degrees_of_freedom
    assert its.statistic == pytest.approx(mine.statistic, rel=0.05)


@pytest.mark.parametrize("name", DEVICES)
def test_shuffles_on_a_device_are_shuffles(name):
    rng = np.random.default_rng(13)
    x, y = (rng.normal(size=(400, size)).astype(np.float32) for size in (3, 2))
    kernels = gpu(name).arrays
    arrays = [kernels.to_device(array) for array in (x, y, np.full(400, 2.0))]
    ratios = LikelihoodRatios(*arrays, np.array([0, 1]), np.array([0, 150, 400]), kernels)
    scores = ratios.shuffled(400, 14)
    assert len(np.unique(scores[:, 0])) > 390
    # Means and variances over shuffles of 2n rows within strata; five standard errors of 400.
    wanted, spread = np.zeros((3, 2)), np.zeros((3, 2))
    for low, high in ((0, 150), (150, 400)):
        a, b = np.repeat(x[low:high], 2, axis=0), np.repeat(y[low:high], 2, axis=0)
        wanted += len(a) * np.outer(a.mean(axis=0), b.mean(axis=0))
        spread += np.outer(a.var(axis=0), b.var(axis=0)) * len(a) ** 2 / (len(a) - 1)
    error = 5 * np.sqrt(spread.ravel() / 400)
    assert np.all(np.abs(scores.mean(axis=0) - wanted.ravel()) < error)
    np.testing.assert_allclose(scores.var(axis=0), spread.ravel(), rtol=0.4)


@pytest.mark.parametrize("name", DEVICES)
def test_quadratic_programs_on_a_device(name):
    rng = np.random.default_rng(7)
    root = rng.normal(size=(60, 40))
    hessian, linear = root.T @ root / 60, rng.normal(size=40)
    mine = minimise_quadratic(hessian, linear, linear < 0)
    its = minimise_quadratic(hessian, linear, linear < 0, arrays=gpu(name).arrays)
    np.testing.assert_allclose(its, mine, atol=1e-10)
    singular = np.ones((3, 3))
    found = minimise_quadratic(singular, -np.ones(3), np.ones(3, bool), arrays=gpu(name).arrays)
    assert found.sum() == pytest.approx(1.0, abs=1e-6)


def models(rng: np.random.Generator):
    """Strings in Bloom filters, some without information, and local hashes; their reports."""
    positions = rng.integers(0, 30, (3, 7, 2)).astype(np.int32)
    positions[1, 2] = -1
    p, q = np.array([0.2, 0.3, 0.25]), np.array([0.7, 0.8, 0.75])
    bits = rng.integers(0, 256, (500, 4)).astype(np.uint8)
    yield BloomModel(positions, 30, p, q), bits, rng.integers(0, 3, 500)
    cells = rng.integers(-1, 49, (2, 6)).astype(np.int32)
    hashed = HashModel(cells[:, :, None], 7, 2, 0.6)
    yield hashed, rng.integers(0, 7, (500, 1)).astype(np.uint8), rng.integers(0, 14, 500)


@pytest.mark.parametrize("name", DEVICES)
def test_likelihood_rows_are_those_of_processors(name):
    rng = np.random.default_rng(8)
    kernels = (CPU_KERNELS, gpu(name).arrays)
    theta, bits = rng.uniform(0.1, 0.9, (3, 5, 30)), rng.integers(0, 256, (500, 4))
    stratum = rng.integers(0, 3, 500)
    mine, its = (channel_rows(theta, bits.astype(np.uint8), stratum, k) for k in kernels)
    np.testing.assert_allclose(its.rows.cpu(), mine.rows, rtol=LIKELIHOOD)
    np.testing.assert_allclose(its.log_scale.cpu(), mine.log_scale, rtol=1e-12)
    for model, bits, stratum in models(rng):
        mine, its = (model.likelihood(bits, stratum, k) for k in kernels)
        np.testing.assert_allclose(its.rows.cpu(), mine.rows, rtol=LIKELIHOOD)
        np.testing.assert_allclose(its.log_scale.cpu(), mine.log_scale, rtol=1e-12)
        share = rng.dirichlet(np.ones(model.candidates + 1))
        columns = [model.mixture_log_likelihood(bits, stratum, share, k) for k in kernels]
        np.testing.assert_allclose(columns[1].cpu(), columns[0], rtol=1e-12)
        mine, its = (
            k.append_column(rows, column + 0.5)
            for k, rows, column in zip(kernels, (mine, its), columns, strict=True)
        )
        np.testing.assert_allclose(its.rows.cpu(), mine.rows, rtol=LIKELIHOOD)
        np.testing.assert_allclose(its.log_scale.cpu(), mine.log_scale, rtol=1e-12)


SURVEY = make_survey(
    """
[questions.page]
kind = "string"
p = 0.25
q = 0.75
bits = 32
hashes = 2
cohorts = 8
[questions.blocks]
kind = "boolean"
p = 0.25
q = 0.75
""",
    name="devices",
)


def crowd() -> ReportBatch:
    rng = np.random.default_rng(9)
    page = rng.choice(["a", "b", "c", "d", "unlisted"], 30_000, p=[0.4, 0.25, 0.15, 0.1, 0.1])
    blocks = rng.random(30_000) < np.where(page == "a", 0.8, 0.3)
    return simulate(SURVEY, {"page": page.tolist(), "blocks": blocks.tolist()}, rng=rng)


@pytest.mark.parametrize("name", DEVICES)
def test_associate_on_a_device(name):
    reports, wanted = crowd(), {"page": ["a", "b", "c", "d", "e"]}
    mine, its = (
        associate(SURVEY, reports, ["page", "blocks"], candidates=wanted, executor=executor)
        for executor in (None, gpu(name))
    )
    assert its.labels == mine.labels
    assert np.all(np.abs(its.table - mine.table) <= 0.05 * mine.standard_error + 1e-12)
    np.testing.assert_allclose(its.standard_error, mine.standard_error, rtol=1e-3)
    assert its.log_likelihood == pytest.approx(mine.log_likelihood, abs=0.02)
    assert its.test().statistic == pytest.approx(mine.test().statistic, rel=1e-3)
    assert its.cramers_v().estimate == pytest.approx(mine.cramers_v().estimate, rel=1e-3)


@pytest.mark.parametrize("name", DEVICES)
def test_rows_that_are_not_scaled_are_refused(name):
    rows = np.full((10, 2), 0.5, np.float32)
    with pytest.raises(InputError, match="largest entry 1"):
        gather([(rows, rows)], (2, 2), executor=gpu(name))


@needs_torch
def test_a_machine_without_a_gpu_says_so(monkeypatch):
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(InputError, match=r"no CUDA device for 'cuda'.*finds 0.*--executor"):
        gpu("cuda")
    with pytest.raises(InputError, match='expected device "cuda"'):
        gpu("cpu:1")
    for name in ("gpu", "gpu:3"):
        with pytest.raises(InputError, match="no CUDA device"), executor_of(name):
            pass
    with executor_of("gpu:cpu") as executor:
        assert list(executor.map(sum, [(1, 2), (3, 4)])) == [3, 7]


def test_without_pytorch_the_extra_is_named(monkeypatch):
    from deniable.compute.gpu import tensors

    monkeypatch.setitem(sys.modules, "torch", None)
    tensors.torch.cache_clear()
    with pytest.raises(MissingPackage, match=r"pip install 'deniable\[gpu\]'"), executor_of("gpu"):
        pass
    tensors.torch.cache_clear()


def test_the_rows_of_two_hash_functions_differ():
    """The broken twin: were rows of another stratum taken for a report's, the tests would see."""
    rng = np.random.default_rng(10)
    values = rng.integers(0, 4, 200)
    cohorts = rng.integers(0, 2, 200)
    rows = bloom_rows(values, 4, rng=rng, cohorts=cohorts, k=16)
    assert not np.allclose(rows, rows[::-1], rtol=LIKELIHOOD)


def test_nobody_loads_pytorch_who_does_not_ask_for_a_device():
    code = (
        "import sys, deniable, deniable.discovery, deniable.analysis, deniable.compute.named;"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
