"""Candidates are screened on a device as processors screen them."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from deniable import Survey, discover, simulate
from deniable.compute.cpu.screening import CPU
from deniable.compute.screening import ScreeningKernels, StringRange
from deniable.kernels.hashing.lines import digits_of, line_numbers
from deniable.simulation import Population, exponential
from tests.devices import DEVICES
from tests.surveys import survey_toml

HEADER = bytes(range(32))


def loops(name: str):
    from deniable.compute.gpu.screening import TensorScreening

    return TensorScreening(name)


@pytest.mark.parametrize("name", DEVICES)
@pytest.mark.parametrize("length", [1, 23, 24, 40, 90])
def test_evidence_follows_the_hashes_of_the_standard_library(name, length):
    rng = np.random.default_rng(length)
    rows = rng.integers(0, 256, (9, 90)).astype(np.uint8)
    tables = rng.integers(0, 1 << 20, (3, 1000)).astype(np.float32)
    sums = loops(name).evidence(HEADER, rows, length, tables)
    for row, total in zip(rows, sums, strict=True):
        digest = hashlib.sha256(HEADER + row[:length].tobytes()).digest()
        x, y = (int.from_bytes(digest[at : at + 8], "little") for at in (0, 8))
        cells = [(mix64(x + (c + 1) * (y | 1)) >> 32) * 1000 >> 32 for c in range(3)]
        assert total == sum(tables[c, cell] for c, cell in enumerate(cells))


def mix64(z: int) -> int:
    """SplitMix64's finaliser."""
    z %= 2**64
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    return z ^ (z >> 31)


@pytest.mark.parametrize("name", DEVICES)
def test_sums_over_cells_are_the_same_bit_for_bit(name):
    rng = np.random.default_rng(1)
    rows = rng.integers(0, 40, (3_000, 12)).astype(np.uint8)
    tables = rng.normal(size=(9, 1_000)).astype(np.float32)
    mine = CPU.evidence(HEADER, rows, 7, tables)
    assert np.array_equal(loops(name).evidence(HEADER, rows, 7, tables), mine)
    assert not np.array_equal(loops(name).evidence(HEADER, rows, 8, tables), mine)


@pytest.mark.parametrize("name", DEVICES)
@pytest.mark.parametrize("kind", [np.int64, np.float64])
def test_sums_over_lines_are_the_same_bit_for_bit(name, kind):
    rng = np.random.default_rng(2)
    sent = rng.integers(0, 1_000, (2, 3, 49, 7)).astype(kind)
    lines, cells = digits_of(np.arange(49), 7, 2), digits_of(np.arange(343), 7, 3)
    mine, its = CPU.line_support(sent, lines), loops(name).line_support(sent, lines)
    number = line_numbers(cells[:, np.newaxis], lines, 7)
    assert np.array_equal(mine, sent[..., np.arange(49), number].sum(axis=-1))
    assert mine.shape == (2, 3, 343)
    assert its.dtype == mine.dtype
    assert np.array_equal(its, mine)


@pytest.mark.parametrize("name", DEVICES)
def test_odds_are_those_of_processors(name):
    rng = np.random.default_rng(3)
    weight = rng.dirichlet(np.ones(15), 40).astype(np.float32)
    parent, sums = rng.integers(0, 40, 5_000), rng.normal(0, 300, 5_000).astype(np.float32)
    masses = (1e-3 * 1.5 ** np.arange(15)).astype(np.float32)
    mine, its = (
        each.log_mixtures(weight, parent, sums, masses, 9e4) for each in (CPU, loops(name))
    )
    np.testing.assert_allclose(its, mine, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("name", DEVICES)
def test_distributions_of_sums_are_those_of_processors(name):
    rng = np.random.default_rng(6)
    lattice, size = rng.integers(-40, 40, (6, 300)), 512
    was, now = lattice[np.arange(6), 7], rng.integers(-40, 40, 6)
    changed = lattice.copy()
    changed[:, 7] = now
    for moved, of in ((None, lattice), ((was, now, 1 / 300), changed)):
        mine, its = (
            each.distribution(each.product(each.transforms(lattice, size), size, moved), size)
            for each in (CPU, loops(name))
        )
        np.testing.assert_allclose(its, mine, atol=1e-15)
        # Exactly the distribution of the sums: its mean and variance are sums of the rows'.
        at = (np.arange(size) + size // 2) % size - size // 2
        assert its @ at == pytest.approx(of.mean(axis=1).sum(), abs=1e-9)
        spread = its @ (at - its @ at) ** 2
        assert spread == pytest.approx(of.var(axis=1).sum(), rel=1e-9)


@pytest.mark.parametrize("name", DEVICES)
def test_a_stretch_of_a_domain_is_scanned_alike(name):
    rng = np.random.default_rng(4)
    tables = rng.normal(size=(5, 500)).astype(np.float32)
    stretch = StringRange(np.array([3, 1, 0, 0, 0, 255], np.uint8), 2, 5, 11)
    mine, its = (each.scan(HEADER, stretch, tables, 4.0) for each in (CPU, loops(name)))
    # The compiled loop leaves out strings with little evidence in the first half of the families.
    number = np.arange(11**3)
    rows = np.repeat(stretch.row[np.newaxis], len(number), axis=0)
    rows[:, 2:5] = digits_of(number, 11, 3)[:, ::-1]
    half, whole = (CPU.evidence(HEADER, rows, 6, tables[:count]) for count in (3, 5))
    assert np.array_equal(its, np.flatnonzero(whole >= 4.0))
    assert np.array_equal(mine, np.flatnonzero((whole >= 4.0) & (half >= 1.0)))
    assert 0 < len(mine) < len(its) < 11**3


QUESTION = survey_toml(
    """
[questions.word]
kind = "string"
mechanism = "localhash"
epsilon = 5.0
[questions.word.dictionary]
protocol = "prefixes"
alphabet = "a-f"
max_length = {length}
{levels}
""",
    name="found",
)


@pytest.mark.parametrize("name", DEVICES)
@pytest.mark.parametrize("question", [(5, "prefixes"), (4, "whole")])
def test_discover_on_a_device(name, question, monkeypatch):
    from deniable.compute.gpu.backend import Gpu

    length, reading = question
    levels = f"levels = [{length}]" if reading == "whole" else ""
    survey = Survey.from_toml(QUESTION.format(length=length, levels=levels))
    words = [w[:length] for w in ("added", "bead", "cafe", "fab", "deaf", "dad", "ebbed")]
    rng = np.random.default_rng(5)
    crowd = Population(tuple(words), exponential(len(words), 3.0)).draw(40_000, rng)
    reports = simulate(survey, crowd, rng=rng)
    mine = discover(survey, reports, "word")
    for loop in [name for name in vars(ScreeningKernels) if not name.startswith("_")]:
        monkeypatch.setattr(type(CPU), loop, None)  # on the device, or not at all
    its = discover(survey, reports, "word", executor=Gpu(name))
    assert len(mine.strings) >= 3
    assert its.strings == mine.strings
    np.testing.assert_allclose(its.estimate, mine.estimate, rtol=1e-6)
