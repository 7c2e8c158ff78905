"""Basic RAPPOR for known values: one bit per option, or one bit for yes and no.

No answer, or an answer that is not an option, sets no bit. Such a report is as long and as noisy as
any other; the estimate of an option is the share of clients that chose it. `subset` has the other
mechanism for options.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Self

from deniable.errors import InputError
from deniable.mechanisms.base import Mechanism, Settings, register
from deniable.mechanisms.bit_mechanism import BitMechanism
from deniable.mechanisms.noise import Noise

MAX_OPTIONS = 65536


@dataclass(frozen=True, kw_only=True)
class OptionMechanism(Mechanism):
    """Base class of mechanisms that report one of several options.

    Parameters
    ----------
    options : tuple of str
        The options, in the order of their bits.
    """

    options: tuple[str, ...]

    question_kind = "choice"
    protocols = frozenset({"single"})

    def __post_init__(self) -> None:
        if not 2 <= len(self.options) <= MAX_OPTIONS:
            raise InputError(f"options must be 2 to {MAX_OPTIONS} texts, not {len(self.options)}")
        if any(type(option) is not str for option in self.options):
            raise InputError(f"options must be texts, not {self.options!r:.100}")
        if len(set(self.options)) != len(self.options):
            twice = sorted(o for o, n in Counter(self.options).items() if n > 1)
            raise InputError(
                f"options repeats {', '.join(map(repr, twice))[:200]}: list each option once"
            )

    @property
    def labels(self) -> tuple[str, ...]:
        """The options."""
        return self.options

    @cached_property
    def index(self) -> dict[str, int]:
        """From an option to its bit."""
        return {option: i for i, option in enumerate(self.options)}

    def lost(self, token: str) -> str | None:
        """Say what is lost of an answer that is not an option."""
        return None if token in self.index else "answers that are not options count as no answer"

    def encoding(self) -> Settings:
        """Return the options, which decide the bits."""
        return {"kind": self.kind, "options": list(self.options)}

    @classmethod
    def from_settings(cls, noise: Noise, settings: Settings) -> Self:
        """Return the mechanism with this noise and these published settings."""
        return cls(noise=noise, options=tuple(settings.pop("options")), **settings)


@register
@dataclass(frozen=True, kw_only=True)
class Choice(OptionMechanism, BitMechanism):
    """Reports one of several options, one bit per option."""

    kind = "choice"

    def __post_init__(self) -> None:
        OptionMechanism.__post_init__(self)
        BitMechanism.__post_init__(self)

    @property
    def width(self) -> int:
        """Number of options."""
        return len(self.options)

    def true_bits(self, token: str | None, cohort: int) -> int:
        """Return the bit of the option; no bit for anything else."""
        i = None if token is None else self.index.get(token)
        return 0 if i is None else 1 << i

    @property
    def separations(self) -> tuple[tuple[int, int], ...]:
        """Two options differ in one bit each."""
        return ((1, 1),)


@register
class AsymmetricChoice(Choice):
    """The same with asymmetric permanent noise, for repeated collection."""

    kind = "choice-asymmetric"
    asymmetric = True


@register
@dataclass(frozen=True, kw_only=True)
class Boolean(BitMechanism):
    """Reports yes or no in one bit.

    No answer counts as no. If the difference matters, ask a choice question.
    """

    kind = question_kind = "boolean"
    protocols = frozenset({"single"})

    @property
    def width(self) -> int:
        """One bit."""
        return 1

    @property
    def labels(self) -> tuple[str, ...]:
        """The one answer that is counted."""
        return ("yes",)

    def true_bits(self, token: bool | None, cohort: int) -> int:
        """Return 1 for yes, 0 for no or no answer."""
        return 1 if token else 0

    @property
    def separations(self) -> tuple[tuple[int, int], ...]:
        """Yes and no differ in one bit."""
        return ((1, 0), (0, 1))

    def encoding(self) -> Settings:
        """Return the kind only: there is nothing to choose."""
        return {"kind": self.kind}
