"""`deniable answer`: one person answers a survey from the shell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from deniable.cli import options
from deniable.cli.documented import command
from deniable.cli.output import say
from deniable.cli.values import typed
from deniable.errors import InputError

if TYPE_CHECKING:
    from deniable.survey import Survey

folder_option = options.option(
    "--folder",
    type=options.FOLDER,
    envvar="DENIABLE_FOLDER",
    default=Path("~/.local/share/deniable"),
    help="Where the secret, the ledger and the outbox are.",
)


@command(short_help="Answer a survey from the shell.")
@click.argument("survey_at", metavar="SURVEY")
@click.argument("answers", metavar="[QUESTION=VALUE]...", nargs=-1)
@options.option("--values", "file", type=click.File("rb"))
@options.option("--digest")
@folder_option
@options.json_option("what was done")
def answer(
    survey_at: str,
    answers: tuple[str, ...],
    file: IO[bytes] | None,
    digest: str | None,
    folder: Path,
    as_json: bool,
) -> None:
    """Answer the SURVEY (a file, or the address of a published one) and queue the report.

    A question left out is not answered, which looks like any other answer. Other users of this
    machine can read a command line while it runs: use --values for what they must not know.

    Parameters
    ----------
    file : A JSON object of answers, or - to read it from standard input.
    digest : Answer no other survey than the one with this digest.

    Examples
    --------
    deniable answer survey.json homepage=example.com dark_mode=yes
    deniable answer https://collector.example/v1/surveys/pages --digest 79cb… --values answers.json
    """
    from deniable.client import Client
    from deniable.privacy import NANO

    survey = _survey(survey_at, digest)
    client = Client.open(survey, folder)
    report = client.answer_and_queue(_values(survey, answers, file))
    assert client.outbox is not None  # Client.open gives one
    waiting = client.outbox.counts().waiting
    spent = client.ledger.spent(survey.name)
    budget = survey.budget / NANO
    data = {
        "survey": survey.name,
        "version": survey.version,
        "digest": survey.digest.hex(),
        "report": bytes(report).hex(),
        "spent": spent,
        "budget": budget,
        "waiting": waiting,
    }
    say(
        data,
        f"answered {survey.name} version {survey.version}: ε = {spent:.6g} of {budget:.6g} is "
        f"spent; {waiting} to send: deniable send ADDRESS",
        as_json,
    )


def _survey(where: str, digest: str | None) -> Survey:
    from deniable.client.exchange import checked_digest, fetch_survey
    from deniable.survey import Survey

    if where.startswith(("http://", "https://")):
        return fetch_survey(where, digest=digest)
    return checked_digest(Survey.load(where), digest, where)


def _values(survey: Survey, answers: tuple[str, ...], file: IO[bytes] | None) -> dict[str, object]:
    values: dict[str, object] = {}
    if file is not None:
        try:
            values = json.loads(file.read())
        except ValueError as error:
            raise InputError(f"--values is not JSON: {error}") from None
        if not isinstance(values, dict):
            raise InputError(f"expected a JSON object of answers, got {values!r:.80}")
    for item in answers:
        name, equals, text = item.partition("=")
        if not equals:
            raise InputError(f"expected QUESTION=VALUE, got {item!r:.80}")
        if name in values:
            raise InputError(f"expected one answer to {name!r}, got two")
        values[name] = typed(text, survey.question(name).kind, name)
    return values
