"""A whole report as a pure function of values, secret and random bytes.

docs/reference/wire.md describes it.
Nothing here reads a clock, a file or the operating system's randomness, so any language can replay
it against the vectors. `Client` adds what is not pure: the ledger, which is charged before a report
exists, and fresh random bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise, starmap

from deniable.client.ledger import Charge
from deniable.errors import InputError
from deniable.mechanisms.base import Token
from deniable.survey import Answer, Report, Survey

Values = Mapping[str, Token]
"""Answers by the question's name; a question left out is not answered."""


class Encoder:
    """What one secret makes of a survey: its cohort, its slots, and a report from random bytes."""

    def __init__(self, survey: Survey, secret: bytes) -> None:
        self.survey = survey
        self._secret = secret
        self.cohort, self.draws = survey.draw(secret)
        drawn = zip(survey.questions, self.draws, strict=True)
        self._parts = [
            (slot.mechanism, slot.mechanism.own_cohort(self.cohort), once, forever)
            for question, draw in drawn
            for slot, (once, forever) in zip(
                question.protocol.slots(draw), question.charges, strict=True
            )
        ]
        ends = [0, *accumulate(len(question.protocol.parts) for question in survey.questions)]
        self._answers = list(zip(self.draws, starmap(slice, pairwise(ends)), strict=True))
        self.rand_size = sum(mechanism.rand_size for mechanism, *_ in self._parts)

    def tokens(self, values: Values) -> list[Token]:
        """What each slot of the report is about, in the order of the report."""
        questions = self.survey.questions
        if unknown := values.keys() - {q.name for q in questions}:
            known = ", ".join(q.name for q in questions)
            raise InputError(
                f"expected answers to {known}; got {', '.join(sorted(map(str, unknown)))} too"
            )
        return [
            token
            for question, draw in zip(questions, self.draws, strict=True)
            for token in question.protocol.tokens(question.checked(values.get(question.name)), draw)
        ]

    def charges(self, tokens: Sequence[Token]) -> list[Charge]:
        """What a report of these tokens costs."""
        return [
            Charge(mechanism.noise_id(token, cohort, self._secret), once, forever)
            for (mechanism, cohort, once, forever), token in zip(self._parts, tokens, strict=True)
        ]

    def report(self, tokens: Sequence[Token], rand: bytes) -> Report:
        """The report of these tokens; `rand` is `rand_size` bytes, never used again."""
        if len(rand) != self.rand_size:
            raise InputError(f"expected {self.rand_size} random bytes, got {len(rand)}")
        packed, at = [], 0
        for (mechanism, cohort, *_), token in zip(self._parts, tokens, strict=True):
            end = at + mechanism.rand_size
            packed.append(
                mechanism.encode(token, cohort=cohort, secret=self._secret, rand=rand[at:end])
            )
            at = end
        answers = [Answer(draw, tuple(packed[where])) for draw, where in self._answers]
        return Report(self.survey, self.cohort, tuple(answers))


def encode_report(survey: Survey, values: Values, *, secret: bytes, rand: bytes) -> Report:
    """One report of all the survey's questions, a pure function of its arguments."""
    encoder = Encoder(survey, secret)
    return encoder.report(encoder.tokens(values), rand)
