"""What unlisted strings add to the covariance of a table."""

import numpy as np
import pytest

from deniable.inference.joint.unlisted import DECODE_WEIGHT, Unlisted, add_unlisted
from deniable.results.covariance import Covariance

TABLE = np.array([[0.1, 0.2], [0.2, 0.1], [0.3, 0.1]])
NOISE = 1e-6 * (np.eye(6) - 1 / 6)


def margins(found: Covariance, axis: int) -> Covariance:
    sizes = found.table.shape
    return found.collapsed([np.arange(n) * (v == axis) for v, n in enumerate(sizes)])


def by_decode(variance: float, shared_bits: float) -> Unlisted:
    """Return what a marginal says that finds this variance beside the noise."""
    noise = np.diagonal(margins(Covariance(TABLE, NOISE), 0).matrix)[:-1]
    return Unlisted(noise + variance, shared_bits)


def test_clients_move_from_other_with_their_answers() -> None:
    none = np.zeros((64, 3, 2))
    found = add_unlisted(Covariance(TABLE, NOISE), none, [by_decode(4e-4, 100.0), None])
    added = (found.matrix - NOISE).reshape(3, 2, 3, 2)
    answers = TABLE[2] / TABLE[2].sum()
    np.testing.assert_allclose(added[0, :, 0], 4e-4 * np.outer(answers, answers), rtol=1e-3)
    np.testing.assert_allclose(added[0, :, 1], 0.0, atol=1e-12)
    np.testing.assert_allclose(added[0, :, 2], -added[0, :, 0], atol=1e-12)
    np.testing.assert_allclose(added[2, :, 2], 2 * added[0, :, 0], atol=1e-12)
    # The other question's shares do not change, and neither does the sum.
    np.testing.assert_allclose(added.sum(axis=(0, 2)), 0.0, atol=1e-12)


def test_strata_count_by_the_bits_they_share() -> None:
    rng = np.random.default_rng(1)
    moves = rng.normal(0, 0.02 / 8, (64, 2))  # 64 of these: a variance of 4e-4
    influence = np.zeros((64, 3, 2))
    influence[:, :2], influence[:, 2] = moves[:, :, None] / 2, -moves.sum(axis=1)[:, None] / 2
    between = (moves**2).sum(axis=0) * 64 / 63
    noise = np.diagonal(margins(Covariance(TABLE, NOISE), 0).matrix)
    by_strata = float((between - noise[:2]).mean())
    for bits in (0.0, 4.0, 1e6):
        known = by_decode(1e-4, bits)
        found = margins(add_unlisted(Covariance(TABLE, NOISE), influence, [known, None]), 0)
        expected = (bits * by_strata + DECODE_WEIGHT * 1e-4) / (bits + DECODE_WEIGHT)
        np.testing.assert_allclose(np.diagonal(found.matrix)[:2], noise[:2] + expected, rtol=1e-6)


def test_nothing_is_added_without_unlisted_strings_or_below_the_noise() -> None:
    given, none = Covariance(TABLE, NOISE), np.zeros((64, 3, 2))
    assert np.array_equal(add_unlisted(given, none, [None, None]).matrix, NOISE)
    assert np.array_equal(
        add_unlisted(given, none, [Unlisted(np.zeros(2), 9.0), None]).matrix, NOISE
    )


def test_what_other_lacks_is_an_error_of_all_strings_together() -> None:
    none = np.zeros((64, 3, 2))
    known = Unlisted(np.zeros(2), 9.0, other=0.5)  # the table has 0.4
    found = margins(add_unlisted(Covariance(TABLE, NOISE), none, [known, None]), 0)
    expected = 0.01 * np.outer([-0.5, -0.5, 1], [-0.5, -0.5, 1])
    np.testing.assert_allclose(found.matrix, expected, atol=1e-5)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_any_axis_of_three(axis: int) -> None:
    shape = (3, 4, 2)
    table = np.random.default_rng(2).dirichlet(np.ones(24)).reshape(shape)
    unlisted = [
        Unlisted(np.full(shape[axis] - 1, 0.01), 0.0) if v == axis else None for v in range(3)
    ]
    found = add_unlisted(Covariance(table, np.zeros((24, 24))), np.zeros((0, *shape)), unlisted)
    np.testing.assert_allclose(np.diagonal(margins(found, axis).matrix)[:-1], 0.01)
    other = (axis + 1) % 3
    np.testing.assert_allclose(margins(found, other).matrix, 0.0, atol=1e-12)
