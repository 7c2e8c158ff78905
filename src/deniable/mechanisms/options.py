"""Basic RAPPOR, where the values are known: one bit per option, or one bit for yes and no.

No answer, and an answer that is not among the options, set no bit: the report is as long and as
noisy as any other, and an option's estimate is the share of clients that answered with it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Self

from deniable.errors import InputError
from deniable.mechanisms.base import Settings, register
from deniable.mechanisms.bit_mechanism import BitMechanism
from deniable.mechanisms.noise import Noise

MAX_OPTIONS = 65536


@register
@dataclass(frozen=True, kw_only=True)
class Choice(BitMechanism):
    """One of the options, one bit each."""

    options: tuple[str, ...]

    kind = question_kind = "choice"

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

    @property
    def labels(self) -> tuple[str, ...]:
        return self.options

    @cached_property
    def index(self) -> dict[str, int]:
        return {option: i for i, option in enumerate(self.options)}

    def filter(self, token: str | None, cohort: int) -> int:
        i = None if token is None else self.index.get(token)
        return 0 if i is None else 1 << i

    @property
    def separations(self) -> tuple[tuple[int, int], ...]:
        return ((1, 1),)

    def encoding(self) -> Settings:
        return {"kind": self.kind, "options": list(self.options)}

    @classmethod
    def from_settings(cls, noise: Noise, settings: Settings) -> Self:
        return cls(noise=noise, options=tuple(settings.pop("options")), **settings)


@register
@dataclass(frozen=True, kw_only=True)
class Boolean(BitMechanism):
    """Yes or no in one bit; no answer counts as no. Where the difference matters, ask a choice."""

    kind = question_kind = "boolean"

    @property
    def width(self) -> int:
        return 1

    @property
    def labels(self) -> tuple[str, ...]:
        return ("yes",)

    def filter(self, token: bool | None, cohort: int) -> int:
        return 1 if token else 0

    @property
    def separations(self) -> tuple[tuple[int, int], ...]:
        return ((1, 0), (0, 1))

    def encoding(self) -> Settings:
        return {"kind": self.kind}
