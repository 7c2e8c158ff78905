"""Client: turn answers into a report, after charging the ledger for it."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from deniable.arguments import Day, as_optional_day
from deniable.client.encoder import Encoder, Values, check_schemes
from deniable.client.files import expanded
from deniable.client.ledger import Ledger
from deniable.client.limits import DEFAULT_LIMITS, SurveyLimits
from deniable.client.secret import SECRET_SIZE, load_or_create_secret
from deniable.errors import (
    BudgetExceeded,
    DeviceBudgetExceeded,
    InputError,
    SecretError,
    SurveyExpired,
)
from deniable.mechanisms.base import Token
from deniable.survey import Report, Survey, SurveyOrPath

if TYPE_CHECKING:
    from pathlib import Path

    from deniable.client.outbox import Outbox
    from deniable.client.sender import Sent
    from deniable.client.testing import ClientForTesting

DEVELOP = "Client.for_testing makes a client that you can answer with again and again."
"""Advice for a developer whose client has answered already."""


class Client:
    """Answers one survey on behalf of one person.

    Parameters
    ----------
    survey : Survey, str or Path
        Survey to answer, or the path of its file.
    secret : bytes
        32 random bytes that only this client knows; see `deniable.client.new_secret`.
    ledger : Ledger or None, default None
        Record of the spent privacy budget; None keeps it in memory only.
    outbox : Outbox or None, default None
        Queue of reports that wait to be sent; None if reports are sent in another way.
    limits : SurveyLimits, default DEFAULT_LIMITS
        The most that the client accepts of a survey, whatever its author wants.
    accept_owner_change : bool, default False
        Whether to answer a survey although one of the same name and another owner was answered.
        Both share budget and permanent noise, so that their reports could be linked.

    Attributes
    ----------
    cohort : int
        Cohort of the client, sent in the clear.
    draws : tuple of tuple of int
        Clear fields of each question: numbers derived from the secret and sent without noise, which
        say what part of the answer the client reports (such as the positions of its n-grams).

    Raises
    ------
    SecretError
        If the secret does not have 32 bytes.
    InputError
        If the survey was published for testing; see `for_testing`.
    SurveyRefused
        If the survey exceeds the limits, or describes reports of google/rappor's clients.

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
    >>> client = Client(survey, secret=bytes(32))
    >>> len(bytes(client.answer({"dark_mode": True})))
    21
    """

    def __init__(
        self,
        survey: SurveyOrPath,
        *,
        secret: bytes,
        ledger: Ledger | None = None,
        outbox: Outbox | None = None,
        limits: SurveyLimits = DEFAULT_LIMITS,
        accept_owner_change: bool = False,
    ) -> None:
        survey = Survey.of(survey)
        self._check_survey(survey, limits)
        if not isinstance(secret, bytes) or len(secret) != SECRET_SIZE:
            got = f"{len(secret)}" if isinstance(secret, bytes) else type(secret).__name__
            raise SecretError(
                f"the secret must have {SECRET_SIZE} bytes, not {got}; "
                "deniable.client.new_secret() makes one"
            )
        self.survey = survey
        self.ledger = Ledger() if ledger is None else ledger
        self.outbox = outbox
        self._accept_owner_change = accept_owner_change
        self._encoder = Encoder(survey, secret)
        self._entropy: Callable[[int], bytes] = os.urandom
        self.cohort, self.draws = self._encoder.cohort, self._encoder.draws

    def __repr__(self) -> str:
        ledger = "memory" if self.ledger.path is None else self.ledger.path
        return f"<Client of survey {self.survey.name} v{self.survey.version}, ledger in {ledger}>"

    @staticmethod
    def for_testing(
        survey: SurveyOrPath, *, seed: int = 0, strict: bool = False, outbox: Outbox | None = None
    ) -> ClientForTesting:
        """Make a client for tests and development: seeded, without a ledger and without files.

        It may answer any number of times. Its noise can be predicted, so its reports protect
        nobody; a warning says so. It answers only surveys that were published with
        `deniable check --testing`; no collector of the real survey accepts its reports.

        Parameters
        ----------
        survey : Survey, str or Path
            Survey for testing, or the path of its file; see `Survey.for_testing`.
        seed : int, default 0
            Stands for one person. Clients with the same survey and seed make the same reports.
        strict : bool, default False
            Raise InputError for an answer that cannot be reported in full, such as a choice that is
            not an option. By default, warn.
        outbox : Outbox or None, default None
            Queue for `answer_and_queue` and `send`.

        Returns
        -------
        Client
            The client.

        Raises
        ------
        InputError
            If the survey is a real one.

        Warns
        -----
        NotPrivateWarning
            Always.

        Examples
        --------
        >>> import warnings
        >>> from deniable.survey import example_survey
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     client = Client.for_testing(example_survey().for_testing(), seed=7)
        >>> client
        <Client FOR TESTING of survey example v1, seed 7: not private>
        >>> [bytes(client.answer({"dark_mode": True}))[-1] for _ in range(5)]
        [1, 0, 1, 1, 1]
        """
        from deniable.client.testing import ClientForTesting

        return ClientForTesting(survey, seed=seed, strict=strict, outbox=outbox)

    @classmethod
    def open(
        cls,
        survey: SurveyOrPath,
        folder: str | Path,
        *,
        device_budget: float | None = None,
        per_days: Mapping[int, float] | None = None,
        limits: SurveyLimits = DEFAULT_LIMITS,
        accept_owner_change: bool = False,
    ) -> Client:
        """Open a client whose secret, ledger and outbox are files in a folder.

        Parameters
        ----------
        survey : Survey, str or Path
            Survey to answer, or the path of its file.
        folder : str or Path
            Folder of this person; it is created on first use. Never delete it: with a new
            secret or an empty ledger, the privacy loss may exceed the survey's budget.
        device_budget : float or None, default None
            Maximum ε in nats of all surveys that are answered through this folder. Each reserves
            its whole budget at its first answer, whatever the answer is. None means no limit.
        per_days : mapping of int to float, optional
            Further limits for periods, besides the device budget: {30: 4.0} allows at most ε = 4
            for surveys that are answered for the first time within 30 days.
        limits : SurveyLimits, default DEFAULT_LIMITS
            The most that the client accepts of a survey, whatever its author wants.
        accept_owner_change : bool, default False
            Whether to answer a survey although one of the same name and another owner was
            answered through this folder.

        Returns
        -------
        Client
            The client.

        Raises
        ------
        SecretError
            If the secret cannot be read or created, or if other users can read it.
        InputError
            If the survey was published for testing, or if a limit is invalid.
        SurveyRefused
            If the survey exceeds the limits.
        """
        from deniable.client.outbox import Outbox

        survey, folder = Survey.of(survey), expanded(folder)
        cls._check_survey(survey, limits)  # before any file exists
        path = folder / "ledger.json"
        ledger = Ledger(path, device_budget=device_budget, per_days=per_days)
        secret = load_or_create_secret(folder / "secret")
        # All versions of a survey share an outbox; surveys may have different collectors.
        outbox = Outbox(folder / f"outbox-{survey.name}.db")
        return cls(
            survey,
            secret=secret,
            ledger=ledger,
            outbox=outbox,
            limits=limits,
            accept_owner_change=accept_owner_change,
        )

    def answer(self, values: Values, *, today: Day | None = None) -> Report:
        """Charge the ledger, and return one report about all questions of the survey.

        Parameters
        ----------
        values : mapping
            Answers by name of the question: strings, or booleans for boolean questions. A question
            that is left out, or None, is not answered, which the report does not reveal.
        today : datetime.date, str or None, default None
            Current day; None means the system's date.

        Returns
        -------
        Report
            The report; `bytes(report)` is what to send.

        Raises
        ------
        BudgetExceeded
            If the answer would exceed the survey's budget; nothing is spent.
        DeviceBudgetExceeded
            If the survey's budget would exceed that of the device; nothing is spent.
        SurveyRefused
            If a survey of this name and another owner was answered before; nothing is spent.
        LedgerError
            If the ledger cannot be read or written; no report was made.
        SurveyExpired
            If the survey's last day has passed.
        InputError
            If a name or the type of a value is wrong.
        """
        survey = self.survey
        day = as_optional_day("today", today) or dt.date.today()
        if day > survey.expires:
            raise SurveyExpired(
                f"survey {survey.name!r} expired on {survey.expires}: no report was made"
            )
        encoded = self._encoder.tokens(values)
        self._charge(encoded, day)
        return self._encoder.report(encoded, self._entropy(self._encoder.rand_size))

    def answer_and_queue(self, values: Values) -> Report:
        """Answer, and add the report to the outbox; it is on disk when this returns.

        Parameters
        ----------
        values : mapping
            Answers by name of the question, as for `answer`.

        Returns
        -------
        Report
            The report, which the outbox keeps until `send` has delivered it.

        Raises
        ------
        OutboxError
            If the outbox cannot be written; nothing is spent.
        """
        with self._require_outbox().adding() as add:
            report = self.answer(values)
            add(report)
        return report

    def send(self, url: str, *, token: str | None = None, spread: float = 0.0) -> Sent:
        """Send the reports that wait in the outbox, each in a separate request.

        To send reports that are still waiting, call it again later or keep a `Sender` running; see
        docs/how-to/send.md.

        Parameters
        ----------
        url : str
            Address of the collector, such as https://collector.example.
        token : str or None, default None
            Ingest key of the collector, if it requires one.
        spread : float, default 0.0
            Maximum random pause after each accepted report, in seconds.

        Returns
        -------
        Sent
            Numbers of accepted, refused and waiting reports.
        """
        from deniable.client.sender import Sender

        return Sender(self._require_outbox(), url, token=token, spread=spread).send()

    @staticmethod
    def _check_survey(survey: Survey, limits: SurveyLimits) -> None:
        """Refuse a survey beyond the limits, and one for testing, whose reports nobody wants."""
        if survey.testing:
            raise InputError(
                f"survey {survey.name!r} was published for testing, so people cannot answer it: "
                "use Client.for_testing, or publish it with deniable check, without --testing"
            )
        check_schemes(survey)
        limits.check(survey)

    def _charge(self, tokens: Sequence[Token], day: dt.date) -> None:
        """Charge the ledger for a report, or raise BudgetExceeded."""
        survey = self.survey
        try:
            self.ledger.charge(
                survey.name,
                survey.budget,
                self._encoder.charges(tokens),
                owner=survey.owner,
                accept_owner_change=self._accept_owner_change,
                today=day,
            )
        except DeviceBudgetExceeded:
            raise
        except BudgetExceeded:
            if survey.collect == "repeatedly":
                raise
            # One answer fits the budget, so there was an answer before, whatever the value is. The
            # ledger's message is not kept: what this answer needs may depend on the value.
            raise BudgetExceeded(
                f"this person has already answered survey {survey.name!r}, which is collected "
                f"once: no report was made. {DEVELOP}"
            ) from None

    def _require_outbox(self) -> Outbox:
        """Return the outbox, or raise InputError if there is none."""
        if self.outbox is None:
            raise InputError(
                "this client has no outbox: open it in a folder with Client.open, or pass outbox="
            )
        return self.outbox
