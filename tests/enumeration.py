"""Every output of the real client, with its exact probability.

The client's randomness has two sources: HMAC under its secret, and the operating system. Both are
replaced by a tape that is replayed until every branch was taken. A lane's uniform number matters
only through which thresholds it is below, so it branches once for each such class, with the class's
exact weight. Bits that the tape does not branch on are constant: code that took its noise from them
would be deterministic, and the bounds would fail. So a mistake here can only raise a false alarm.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from itertools import pairwise, product
from typing import Any

import pytest

from deniable.mechanisms import Mechanism, prf
from deniable.mechanisms.noise import DIGITS, ONE, Noise, digits_needed
from deniable.survey import Survey
from tests.replayed import replayed_client

SECRET = bytes(range(32))
Outcome = tuple[bytes, ...]
Distribution = dict[Outcome, Fraction]


@dataclass
class Tape:
    """Choices made so far; replayed with the last one that can still move, moved."""

    script: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    weight: Fraction = Fraction(1)

    def choose(self, options: Sequence[tuple[Any, Fraction]]) -> Any:
        at = len(self.sizes)
        self.sizes.append(len(options))
        if at == len(self.script):
            self.script.append(0)
        value, weight = options[self.script[at]]
        self.weight *= weight
        return value

    def next(self) -> Tape | None:
        script = list(self.script)
        while script and script[-1] + 1 == self.sizes[len(script) - 1]:
            script.pop()
        if not script:
            return None
        script[-1] += 1
        return Tape(script)


def enumerate_outcomes(run: Callable[[Tape], Outcome]) -> Distribution:
    found: Distribution = defaultdict(Fraction)
    tape: Tape | None = Tape()
    while tape is not None:
        outcome = run(tape)
        found[outcome] += tape.weight
        tape = tape.next()
    assert sum(found.values()) == 1
    return dict(found)


@cache
def lane_classes(if_zero: int, if_one: int) -> list[tuple[int, Fraction]]:
    """(a uniform number's digits as they will be read, weight), one for each way it can compare."""
    shift = DIGITS - digits_needed(if_zero, if_one)
    ends = sorted({0, if_zero, if_one, ONE})
    return [(low >> shift, Fraction(high - low, ONE)) for low, high in pairwise(ends)]


def lane_words(tape: Tape, width: int, if_zero: int, if_one: int) -> bytes:
    """Random words for `width` lanes, level after level, as the sampler reads them."""
    count = digits_needed(if_zero, if_one)
    chosen = [tape.choose(lane_classes(if_zero, if_one)) for _ in range(width)]
    size = (width + 7) // 8
    words = []
    for level in range(count):
        bits = sum(((digits >> (count - 1 - level)) & 1) << i for i, digits in enumerate(chosen))
        words.append(bits.to_bytes(size, "little"))
    return b"".join(words)


def number_word(tape: Tape, own: int, other: int, bound: int) -> bytes:
    """The four bytes that decide whether a number stays, or which one it becomes."""
    moved = [(own + i * other, Fraction(other, ONE)) for i in range(bound - 1)]
    return int(tape.choose([(0, Fraction(own, ONE)), *moved])).to_bytes(4, "little")


@dataclass
class World:
    """One client's randomness: a random function in place of HMAC, and the system's bytes."""

    survey: Survey
    tape: Tape
    draws: dict[str, list[tuple[int, Fraction]]]
    redraw: bool = False
    day: int = 0
    memory: dict[tuple[bytes, bytes], bytes] = field(default_factory=dict)
    streams: dict[bytes, Mechanism] = field(default_factory=dict)

    def hmac(self, key: bytes, message: bytes) -> bytes:
        known = (key, message)
        if self.redraw and b"deniable-1/clear" in message:
            known = (key + bytes([self.day]), message)
        if known not in self.memory:
            self.memory[known] = self._fresh(key, message)
        return self.memory[known]

    def _fresh(self, key: bytes, message: bytes) -> bytes:
        if b"deniable-1/clear" in message:
            what = next(w for w in self.draws if message.endswith(w.encode()))
            return int(self.tape.choose(self.draws[what])).to_bytes(32, "big")
        if key in self.streams:
            m = self.streams[key]
            assert message == bytes(4), "one block must be enough on these small parameters"
            if m.bound:
                word = number_word(self.tape, m.noise.kept, m.noise.flip, m.bound)
            else:
                word = lane_words(self.tape, m.width, m.noise.flip, m.noise.kept)
            return word.ljust(32, b"\0")
        if b"deniable-1/no-answer" in message:
            bound = self.survey.questions[0].protocol.mechanisms[0].bound or 1
            numbers = [(i, Fraction(1, bound)) for i in range(bound)]
            return int(self.tape.choose(numbers)).to_bytes(32, "big")
        answer = prf.digest(key + message)
        if b"deniable-1/prr" in message and not message.startswith(b"deniable-1/ledger"):
            for question in self.survey.questions:
                for draw, _ in question.protocol.draws:
                    for slot in question.protocol.slots(draw):
                        domain = prf.fields(b"deniable-1/prr", *slot.mechanism.domain.parts)
                        if message.startswith(domain):
                            self.streams[answer] = slot.mechanism
        return answer

    def entropy(self, size: int) -> bytes:
        # Widths, thresholds and their order are the same for every draw.
        words = [
            number_word(self.tape, m.noise.q, m.noise.p, m.bound)
            if m.bound
            else lane_words(self.tape, m.width, m.noise.p, m.noise.q)
            for question in self.survey.questions
            for m in question.protocol.mechanisms
        ]
        assert len(b"".join(words)) == size, "the client asks for other bytes than it should need"
        return b"".join(words)


def distribution(
    survey: Survey,
    value: dict[str, Any] | Sequence[dict[str, Any]],
    *,
    days: int = 1,
    draws: dict[str, list[tuple[int, Fraction]]] | None = None,
    redraw: bool = False,
) -> Distribution:
    """P(report of day 1, …, report of the last day) of a client that always has this value.

    A sequence of values has one per day.
    """
    values = [value] * days if isinstance(value, dict) else list(value)

    def run(tape: Tape) -> Outcome:
        world = World(survey, tape, draws or {"cohort": [(0, Fraction(1))]}, redraw)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(prf, "prf", world.hmac)
            reports = []
            for day in range(len(values)):
                world.day = day
                # A new object each day, as after a restart: nothing but the secret is kept.
                today = replayed_client(survey, secret=SECRET, entropy=world.entropy)
                reports.append(bytes(today.answer(values[day]))[20:])
        return tuple(reports)

    return enumerate_outcomes(run)


def worst_log_ratio(distributions: Sequence[Distribution]) -> float:
    """ln of the largest P(outcome | a)/P(outcome | b) over all pairs and outcomes."""
    worst = Fraction(1)
    for a, b in product(distributions, repeat=2):
        for outcome, probability in a.items():
            if outcome not in b:
                return math.inf
            worst = max(worst, probability / b[outcome])
    return math.log(worst)


def expected(bits: int, outputs: Sequence[int], width: int, noise: Noise) -> Fraction:
    """P(these outputs on successive days | true bits) of one slot, from the formula alone."""
    flip, kept, p, q = (Fraction(x, ONE) for x in (noise.flip, noise.kept, noise.p, noise.q))
    whole = Fraction(1)
    for i in range(width):
        true = bits >> i & 1
        sum_ = Fraction(0)
        for permanent in (0, 1):
            one = kept if true else flip
            path = one if permanent else 1 - one
            for output in outputs:
                one = q if permanent else p
                path *= one if output >> i & 1 else 1 - one
            sum_ += path
        whole *= sum_
    return whole
