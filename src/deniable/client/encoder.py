"""A whole report as a pure function of values, secret and random bytes; see docs/reference/wire.md.

Nothing here reads a clock, a file or the operating system's randomness, so clients in any language
can replay it against the test vectors. `Client` adds what is not pure: it charges the ledger before
a report exists, and draws fresh random bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice

from deniable.client.ledger import Charge
from deniable.errors import InputError, SurveyRefused
from deniable.mechanisms.base import Token
from deniable.mechanisms.schemes import DENIABLE_1
from deniable.survey import Answer, Report, Survey, SurveyOrPath

Values = Mapping[str, Token]
"""Answers by name of the question; a question that is left out is not answered."""


def check_schemes(survey: Survey) -> None:
    """Raise SurveyRefused if a question hashes strings as clients of google/rappor do."""
    for question in survey.questions:
        for mechanism in question.protocol.mechanisms:
            if mechanism.scheme is not DENIABLE_1:
                raise SurveyRefused(
                    f"question {question.name!r} of survey {survey.name!r} has the scheme "
                    f"{mechanism.scheme.name}, which is only for analysing reports of "
                    "google/rappor's clients: nobody can answer this survey"
                )


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
        check_schemes(survey)
        self.survey = survey
        self._secret = secret
        self.cohort, self.draws = survey.draw(secret)
        self._drawn = list(zip(survey.questions, self.draws, strict=True))
        mechanisms = [
            slot.mechanism
            for question, draw in self._drawn
            for slot in question.protocol.slots(draw)
        ]
        self._slots = [(m, m.own_cohort(self.cohort)) for m in mechanisms]
        self._losses = [loss for question in survey.questions for loss in question.charges]
        self.rand_size = sum(m.rand_size for m in mechanisms)

    def tokens(self, values: Values) -> list[Token]:
        """Return the token of each slot, in the order of the report; check the values."""
        if not isinstance(values, Mapping):
            name = self.survey.questions[0].name
            raise InputError(
                f"answers must be given by question, such as {{{name!r}: …}}, not as "
                f"{type(values).__name__}"
            )
        if unknown := values.keys() - {question.name for question, _ in self._drawn}:
            self.survey.question(min(unknown, key=str))  # raises InputError
        return [
            token
            for question, draw in self._drawn
            for token in question.protocol.tokens(question.checked(values.get(question.name)), draw)
        ]

    def charges(self, tokens: Sequence[Token]) -> list[Charge]:
        """Return the charges of a report with these tokens, one per slot."""
        return [
            Charge(mechanism.noise_id(token, cohort, self._secret), per_report, in_total)
            for (mechanism, cohort), (per_report, in_total), token in zip(
                self._slots, self._losses, tokens, strict=True
            )
        ]

    def report(self, tokens: Sequence[Token], rand: bytes) -> Report:
        """Return the report with these tokens; `rand` has `rand_size` fresh random bytes."""
        if len(rand) != self.rand_size:
            raise InputError(f"rand must have {self.rand_size} random bytes, not {len(rand)}")
        encoded, at = [], 0
        for (mechanism, cohort), token in zip(self._slots, tokens, strict=True):
            own = rand[at : at + mechanism.rand_size]
            encoded.append(mechanism.encode(token, cohort=cohort, secret=self._secret, rand=own))
            at += mechanism.rand_size
        slots = iter(encoded)
        answers = [
            Answer(draw, tuple(islice(slots, len(question.protocol.parts))))
            for question, draw in self._drawn
        ]
        return Report(self.survey, self.cohort, tuple(answers))


def encode_report(survey: SurveyOrPath, values: Values, *, secret: bytes, rand: bytes) -> Report:
    """Return one report about all questions of a survey, as a pure function.

    It neither charges a ledger nor checks the date; `Client.answer` does.

    Parameters
    ----------
    survey : Survey, str or Path
        Survey to answer, or the path of its file.
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
    >>> from deniable.survey import example_survey
    >>> survey = example_survey()
    >>> report = encode_report(survey, {"dark_mode": True}, secret=bytes(32), rand=bytes(31))
    >>> report["dark_mode"].slots[0][0]
    1
    """
    encoder = Encoder(Survey.of(survey), secret)
    return encoder.report(encoder.tokens(values), rand)
