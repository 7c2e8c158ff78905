"""The client: values in, a report out, paid for before it exists."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from deniable.client.encoder import Encoder, Values
from deniable.client.ledger import Ledger
from deniable.client.secret import SECRET_SIZE, load_or_create_secret
from deniable.errors import InputError, SecretError, SurveyExpired
from deniable.survey import Report, Survey

if TYPE_CHECKING:
    from pathlib import Path

    from deniable.client.outbox import Outbox
    from deniable.client.sender import Sent

Entropy = Callable[[int], bytes]


class Client:
    """Answers one survey for one person.

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
        survey: Survey,
        *,
        secret: bytes,
        ledger: Ledger | None = None,
        outbox: Outbox | None = None,
        entropy: Entropy = os.urandom,
    ) -> None:
        if not isinstance(secret, bytes) or len(secret) != SECRET_SIZE:
            got = f"{len(secret)}" if isinstance(secret, bytes) else type(secret).__name__
            raise SecretError(
                f"expected a secret of {SECRET_SIZE} bytes, got {got}; "
                "deniable.client.new_secret() makes one"
            )
        self.survey = survey
        self.ledger = Ledger() if ledger is None else ledger
        self.outbox = outbox
        self._encoder = Encoder(survey, secret)
        self._entropy = entropy
        self.cohort, self.draws = self._encoder.cohort, self._encoder.draws

    @classmethod
    def open(cls, survey: Survey, folder: str | Path) -> Client:
        """A client whose secret, ledger and outbox live in this folder, made on first use."""
        from pathlib import Path

        from deniable.client.outbox import Outbox

        folder = Path(folder).expanduser()
        secret = load_or_create_secret(folder / "secret")
        # All versions of a survey share an outbox; surveys may have different collectors.
        outbox = Outbox(folder / f"outbox-{survey.name}.db")
        return cls(survey, secret=secret, ledger=Ledger(folder / "ledger.json"), outbox=outbox)

    def answer(self, values: Values, *, today: dt.date | None = None) -> Report:
        """One report of all the survey's questions; a question left out is not answered, which
        looks like any other answer. Raises BudgetExceeded, with nothing spent, past the budget."""
        survey = self.survey
        if (today or dt.date.today()) > survey.expires:
            raise SurveyExpired(f"survey {survey.name!r} ended on {survey.expires}")
        tokens = self._encoder.tokens(values)
        self.ledger.charge(survey.name, survey.budget, self._encoder.charges(tokens))
        return self._encoder.report(tokens, self._entropy(self._encoder.rand_size))

    def answer_and_queue(self, values: Values) -> Report:
        """Answer, and keep the report until it is sent: it is on disk when this returns."""
        with self._kept().adding() as add:
            report = self.answer(values)
            add(report)
        return report

    def send(self, url: str, *, token: str | None = None, spread: float = 0.0) -> Sent:
        """Send the queued reports that are due to the collector at this address, each by itself.

        Call it again later, or keep a `Sender` running, for what is left; see docs/how-to/send.md.
        """
        from deniable.client.sender import Sender

        return Sender(self._kept(), url, token=token, spread=spread).send()

    def _kept(self) -> Outbox:
        if self.outbox is None:
            raise InputError(
                "this client keeps no reports: open it in a folder (Client.open), or give an outbox"
            )
        return self.outbox
