"""Basic RAPPOR, where the values are known: one bit per option, or one bit for yes and no.

No answer, and an answer that is not among the options, set no bit: the report is as long and as
noisy as any other, and an option's estimate is the share of clients that answered with it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from deniable.errors import InputError
from deniable.mechanisms.base import Mechanism

MAX_OPTIONS = 65536


@dataclass(frozen=True, kw_only=True)
class Choice(Mechanism):
    """One of the options, one bit each."""

    options: tuple[str, ...]

    kind = "choice"

    def __post_init__(self) -> None:
        if not 2 <= len(self.options) <= MAX_OPTIONS:
            raise InputError(f"expected 2 to {MAX_OPTIONS} options, got {len(self.options)}")
        if any(type(option) is not str for option in self.options):
            raise InputError(f"expected options that are texts, got {self.options!r:.100}")
        if len(set(self.options)) != len(self.options):
            twice = sorted(o for o, n in Counter(self.options).items() if n > 1)
            raise InputError(f"expected options that differ; given more than once: {twice}")

    @property
    def width(self) -> int:
        return len(self.options)

    @cached_property
    def index(self) -> dict[str, int]:
        return {option: i for i, option in enumerate(self.options)}

    def filter(self, value: str | None, cohort: int) -> int:
        i = None if value is None else self.index.get(value)
        return 0 if i is None else 1 << i

    @property
    def separations(self) -> tuple[tuple[int, int], ...]:
        return ((1, 1),)

    def encoding(self) -> dict[str, Any]:
        return {"kind": self.kind, "options": list(self.options)}


@dataclass(frozen=True, kw_only=True)
class Boolean(Mechanism):
    """Yes or no in one bit; no answer counts as no. Where the difference matters, ask a choice."""

    kind = "boolean"

    @property
    def width(self) -> int:
        return 1

    def filter(self, value: bool | None, cohort: int) -> int:
        return 1 if value else 0

    @property
    def separations(self) -> tuple[tuple[int, int], ...]:
        return ((1, 0), (0, 1))

    def encoding(self) -> dict[str, Any]:
        return {"kind": self.kind}
