"""Every type of result has a view, and whatever has none is still shown."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from deniable.errors import InputError
from deniable.formatting import Columns
from deniable.render.view import View, view_of
from deniable.results import Result
from tests.results.samples import samples


@dataclass(frozen=True, eq=False)
class Counted(Result):
    """A result that nobody has written a view for."""

    def columns(self) -> Columns:
        return {"value": ["a"], "estimate": [0.5]}


@pytest.mark.parametrize("kind", ["Discovery", "Joint", "Marginal", "Plan", "Trend"])
def test_every_type_of_result_has_its_view(kind: str) -> None:
    assert type(view_of(samples()[kind])) is not View


def test_a_result_without_a_view_is_shown_as_a_table() -> None:
    view = view_of(Counted())
    assert type(view) is View and view.notes() == []
    assert view.table().rows == [["a", "50.0%"]]
    assert "0.5000" in view.section()
    with pytest.raises(InputError, match="a Counted has no plot"):
        Counted().plot()
