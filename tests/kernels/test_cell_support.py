"""Reports that support a cell, by the compiled kernel and by a Fourier transform."""

import numpy as np
import pytest

from deniable.kernels.counting import cell_support
from deniable.kernels.hashing.lines import digits_of, line_numbers


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(("base", "digits"), [(7, 1), (2, 5), (5, 2), (3, 4), (11, 3)])
def test_support_is_a_sum_over_lines(
    base: int, digits: int, compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cell_support, "pays_off", lambda _: compiled)
    monkeypatch.setattr(cell_support, "TERMS_PER_BLOCK", 5 * base)
    rng = np.random.default_rng([base, digits])
    sent = rng.integers(0, 10**9, (base ** (digits - 1), base))
    lines = digits_of(np.arange(len(sent)), base, digits - 1)
    cells = digits_of(rng.integers(0, base**digits, 23), base, digits)
    support = cell_support.cell_support(sent, lines, cells)
    expected = [
        sum(int(row[line_numbers(cell, line, base)]) for row, line in zip(sent, lines, strict=True))
        for cell in cells
    ]
    assert support.tolist() == expected
