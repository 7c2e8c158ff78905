"""A client for tests and development: seeded, without a ledger, for surveys for testing only."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

from deniable.client.client import Client
from deniable.errors import InputError, NotPrivateWarning, check_integer
from deniable.survey.lossy_answers import LossyAnswers

if TYPE_CHECKING:
    import datetime as dt

    from deniable.arguments import Day
    from deniable.client.encoder import Values
    from deniable.client.limits import SurveyLimits
    from deniable.client.outbox import Outbox
    from deniable.mechanisms.base import Token
    from deniable.survey import Report, Survey, SurveyOrPath

MAX_SEED = 2**53 - 1
"""Largest integer that the browser client represents exactly."""


class ClientForTesting(Client):
    """Answers a survey for testing any number of times; `Client.for_testing` makes one.

    Secret and noise are derived from the seed, as in the browser client.

    Parameters
    ----------
    survey : Survey, str or Path
        Survey for testing, or the path of its file.
    seed : int, default 0
        Stands for one person.
    strict : bool, default False
        Raise for an answer that cannot be reported in full, instead of a warning.
    outbox : Outbox or None, default None
        Queue of reports.
    """

    def __init__(
        self,
        survey: SurveyOrPath,
        *,
        seed: int = 0,
        strict: bool = False,
        outbox: Outbox | None = None,
    ) -> None:
        check_integer("seed", seed, 0, MAX_SEED)
        super().__init__(survey, secret=_stream(f"{seed}/secret", 32), outbox=outbox)
        self._seed = seed
        self._strict = strict
        self._reports = 0
        self._entropy = self._next_bytes
        warnings.warn(
            f"this client of survey {self.survey.name!r} is for testing: anyone can compute its "
            "noise, so its reports protect nobody",
            NotPrivateWarning,
            stacklevel=3,  # the caller of Client.for_testing
        )

    def __repr__(self) -> str:
        survey = f"{self.survey.name} v{self.survey.version}"
        return f"<Client FOR TESTING of survey {survey}, seed {self._seed}: not private>"

    def answer(self, values: Values, *, today: Day | None = None) -> Report:
        """Return one report, after checking that the answers can be reported in full.

        Parameters
        ----------
        values : mapping
            Answers by name of the question.
        today : datetime.date, str or None, default None
            Current day; None means the system's date.

        Returns
        -------
        Report
            The report.

        Raises
        ------
        InputError
            If `strict` and an answer cannot be reported in full, or as for every client.
        SurveyExpired
            If the survey's last day has passed.

        Warns
        -----
        LossyAnswerWarning
            If an answer cannot be reported in full and not `strict`.
        """
        report = super().answer(values, today=today)
        lossy = LossyAnswers(self._strict)
        lossy.add_report(self.survey, values)
        lossy.warn(stacklevel=2)
        return report

    @staticmethod
    def _check_survey(survey: Survey, limits: SurveyLimits) -> None:
        """Refuse a real survey: its collector would take predictable reports for private ones."""
        if not survey.testing:
            raise InputError(
                f"survey {survey.name!r} is not for testing; publish it for testing with: deniable "
                "check survey.toml --testing -o testing.json (in Python: survey.for_testing())"
            )

    def _charge(self, tokens: Sequence[Token], day: dt.date) -> None:
        """Charge nothing: there is no ledger."""

    def _next_bytes(self, size: int) -> bytes:
        """Return the random bytes of the next report."""
        self._reports += 1
        return _stream(f"{self._seed}/{self._reports}", size)


def _stream(name: str, size: int) -> bytes:
    """Return the first bytes of a stream of hashes, which depends on nothing but its name."""
    blocks = (
        hashlib.sha256(f"deniable/testing/{name}/{i}".encode()).digest()
        for i in range(-(-size // 32))
    )
    return b"".join(blocks)[:size]
