"""A whole report as a pure function of values, secret and random bytes; see docs/reference/wire.md.

Nothing here reads a clock, a file or the operating system's randomness, so clients in any language
can replay it against the test vectors. `Client` adds what is not pure: it charges the ledger before
a report exists, and draws fresh random bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise, starmap

from deniable.client.ledger import Charge
from deniable.errors import InputError, did_you_mean
from deniable.mechanisms.base import Token
from deniable.survey import Answer, Report, Survey

Values = Mapping[str, Token]
"""Answers by name of the question; a question that is left out is not answered."""


class Encoder:
    """Encodes the answers of the client with one secret to one survey.

    Parameters
    ----------
    survey : Survey
        Survey to answer.
    secret : bytes
        Secret of the client.
    """

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
        """Return the token of each slot, in the order of the report; check the values."""
        questions = self.survey.questions
        if unknown := values.keys() - {q.name for q in questions}:
            known = [q.name for q in questions]
            wrong = min(map(str, unknown))
            raise InputError(
                f"survey {self.survey.name!r} has no question {wrong!r:.200}; its questions are "
                f"{', '.join(known)}.{did_you_mean(wrong, known)}"
            )
        return [
            token
            for question, draw in zip(questions, self.draws, strict=True)
            for token in question.protocol.tokens(question.checked(values.get(question.name)), draw)
        ]

    def charges(self, tokens: Sequence[Token]) -> list[Charge]:
        """Return the charges of a report with these tokens, one per slot."""
        return [
            Charge(mechanism.noise_id(token, cohort, self._secret), once, forever)
            for (mechanism, cohort, once, forever), token in zip(self._parts, tokens, strict=True)
        ]

    def report(self, tokens: Sequence[Token], rand: bytes) -> Report:
        """Return the report with these tokens; `rand` has `rand_size` fresh random bytes."""
        if len(rand) != self.rand_size:
            raise InputError(f"rand must have {self.rand_size} random bytes, not {len(rand)}")
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
    """Return one report about all questions of a survey, as a pure function.

    It neither charges a ledger nor checks the date; `Client.answer` does.

    Parameters
    ----------
    survey : Survey
        Survey to answer.
    values : mapping
        Answers by name of the question; a question that is left out is not answered.
    secret : bytes
        Secret of the client, 32 bytes.
    rand : bytes
        Random bytes that are used for nothing else; an InputError says how many are needed.

    Returns
    -------
    Report
        The report.

    Raises
    ------
    InputError
        If a name, the type of a value or the number of random bytes is wrong.

    Examples
    --------
    >>> from deniable import Survey
    >>> survey = Survey.from_toml('''
    ... name = "example"
    ... version = 1
    ... owner = "docs"
    ... description = "an example"
    ... expires = 2099-12-31
    ... collect = "once"
    ... [questions.dark_mode]
    ... kind = "boolean"
    ... epsilon = 1.0
    ... ''')
    >>> report = encode_report(survey, {"dark_mode": True}, secret=bytes(32), rand=bytes(31))
    >>> report["dark_mode"].slots[0][0]
    1
    """
    encoder = Encoder(survey, secret)
    return encoder.report(encoder.tokens(values), rand)
