"""`deniable answer`, `send` and `ledger`: one device answers, sends, and shows what it spent."""

from __future__ import annotations

import os
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, TextIO

import click

from deniable.cli import options
from deniable.cli.exit_codes import ERROR, UNAVAILABLE
from deniable.cli.inputs import parse_answer
from deniable.cli.options import command
from deniable.cli.output import console, echo, print_outcome, print_table
from deniable.client import Client, Ledger, Spending, SurveyLimits
from deniable.client.files import expanded
from deniable.errors import InputError
from deniable.formatting import TextTable
from deniable.privacy import NANO
from deniable.survey import Survey
from deniable.survey.lossy_answers import LossyAnswers
from deniable.text_files import decode_text, parse_json

if TYPE_CHECKING:
    from deniable.client import Sender, Sent

MIN_PAUSE = 0.01
"""Least number of seconds between two attempts to send."""

DEFAULT_FOLDER = Path("~/.local/share/deniable")

folder_option = options.option(
    "--folder",
    type=options.FOLDER,
    envvar="DENIABLE_FOLDER",
    default=DEFAULT_FOLDER,
    metavar="FOLDER",
    help="Folder of the client's secret, ledger of spent ε, and outbox.",
)


@command()
@click.argument("survey_at", metavar="SURVEY")
@click.argument("answers", metavar="[QUESTION=VALUE]...", nargs=-1)
@options.option("--values", "file", type=click.File("rb"), metavar="FILE")
@options.option("--digest", metavar="HEX")
@folder_option
@options.option("--device-budget", type=options.Number(min=0), metavar="EPSILON")
@options.option("--per-days", multiple=True, metavar="DAYS=EPSILON")
@options.option(
    "--max-epsilon", type=options.Number(min=0), default=SurveyLimits.epsilon, metavar="EPSILON"
)
@options.flag("--accept-owner-change")
@options.json_option("the outcome")
def answer(
    survey_at: str,
    answers: tuple[str, ...],
    file: IO[bytes] | None,
    digest: str | None,
    folder: Path,
    device_budget: float | None,
    per_days: tuple[str, ...],
    max_epsilon: float,
    accept_owner_change: bool,
    as_json: bool,
) -> None:
    """Answer SURVEY, a survey file or the address of a published survey, and queue the report.

    You may leave out questions: nobody can tell whether a report answers a question. A choice that
    is not among the options is reported as no answer; a warning on this terminal says so after the
    report was made. Other users of this machine can read a command line while it runs; pass
    sensitive answers with --values.

    Parameters
    ----------
    file
        Read the answers from FILE, a JSON object, or from standard input if FILE is "-".
    digest
        Refuse to answer unless the survey has this digest, which deniable check shows.
    device_budget
        Maximum ε of all surveys that are answered through the folder. Each reserves its whole
        budget at its first answer.
    per_days
        Also limit the ε of surveys that are answered for the first time within so many days, such
        as 30=4. May be repeated.
    max_epsilon
        Refuse a survey whose budget is larger.
    accept_owner_change
        Answer although a survey of this name and another owner was answered through the folder.
        Their reports could be linked.

    Examples
    --------
    deniable answer survey.json homepage=example.com dark_mode=yes
    deniable answer https://collector.example/v1/surveys/pages --digest 79cb… --values answers.json
    """
    limits = SurveyLimits(epsilon=max_epsilon)
    survey = _read_survey(survey_at, digest, limits)
    values = _read_answers(survey, answers, file)
    client = Client.open(
        survey,
        folder,
        device_budget=device_budget,
        per_days=dict(map(_parse_period, per_days)),
        limits=limits,
        accept_owner_change=accept_owner_change,
    )
    report = client.answer_and_queue(values)
    assert client.outbox is not None  # Client.open makes one
    waiting = client.outbox.counts().waiting
    spent, budget = client.ledger.spent(survey.name), survey.budget / NANO
    data = {
        "survey": survey.name,
        "version": survey.version,
        "digest": survey.digest.hex(),
        "report": bytes(report).hex(),
        "spent": spent,
        "budget": budget,
        "waiting": waiting,
    }
    text = (
        f"Answered {survey.name} version {survey.version}. ε spent: {spent:.6g} of {budget:.6g}. "
        f"Reports that wait to be sent: {waiting}. Next: deniable send ADDRESS"
    )
    print_outcome(data, text, as_json)
    lossy = LossyAnswers()
    lossy.add_report(survey, values)
    if message := lossy.message():  # printed, so that no filter of warnings makes it an error
        echo(f"warning: {message}", err=True)


def _read_survey(survey_at: str, digest: str | None, limits: SurveyLimits) -> Survey:
    """Return the survey in a file or at an address, if it has the digest."""
    from deniable.client.exchange import fetch_survey
    from deniable.client.limits import check_digest, read_published

    if "://" in survey_at:
        return fetch_survey(survey_at, digest=digest, limits=limits)
    if survey_at.endswith(".json"):
        return read_published(Path(survey_at).read_bytes(), survey_at, digest=digest, limits=limits)
    survey = Survey.load(survey_at)
    if digest is not None:
        check_digest(survey.digest, digest, survey_at)
    return survey


def _parse_period(text: str) -> tuple[int, float]:
    """Return the days and the ε of a limit such as 30=4."""
    days, _, epsilon = text.partition("=")
    try:
        return int(days), float(epsilon)
    except ValueError:
        raise InputError(
            f"expected DAYS=EPSILON in --per-days, such as 30=4, not {text!r:.80}"
        ) from None


def _read_answers(
    survey: Survey, answers: tuple[str, ...], file: IO[bytes] | None
) -> dict[str, object]:
    """Return the answers by question, from the file and from the command line."""
    values: dict[str, object] = {}
    if file is not None:
        values = parse_json(file.read(), "the file of --values")
        if not isinstance(values, dict):
            name = survey.questions[0].name
            raise InputError(
                f'expected a JSON object of answers in --values, such as {{"{name}": …}}'
            )
    for name, value in values.items():
        survey.question(name).checked(value)
    for item in answers:
        name, equals, text = item.partition("=")
        if not equals:
            names = ", ".join(question.name for question in survey.questions)
            raise InputError(
                f"expected QUESTION=VALUE, got {item!r:.80}; the questions are {names}"
            )
        if name in values:
            raise InputError(f"question {name!r} is answered twice; give one answer")
        values[name] = parse_answer(text, survey.question(name).kind, name)
    return values


@command()
@click.argument("address")
@folder_option
@options.option("--survey", "surveys", multiple=True, metavar="NAME")
@options.option("--token-file", type=click.File("r"), metavar="FILE")
@options.option("--batch", type=options.POSITIVE_INT, default=1, metavar="COUNT")
@options.option("--wait", type=options.Number(min=0), default=0.0, metavar="SECONDS")
@options.flag("--now")
@options.flag("--again")
@options.json_option("the outcome")
def send(
    address: str,
    folder: Path,
    surveys: tuple[str, ...],
    token_file: TextIO | None,
    batch: int,
    wait: float,
    now: bool,
    again: bool,
    as_json: bool,
) -> None:
    """Send the reports in the outbox to the collector at ADDRESS.

    The exit code is 4 if reports are left to send, and 1 if the collector refused any.

    Parameters
    ----------
    surveys
        Send only the reports of this survey. May be repeated.
    token_file
        File that holds the collector's ingest key, or with --batch a gateway key. By default the
        key is read from the environment variable DENIABLE_TOKEN.
    batch
        Maximum number of reports per upload. Use more than 1 only on a gateway that mixes the
        reports of many people; this needs a gateway key.
    wait
        Keep retrying for this long if the collector cannot be reached.
    now
        Send immediately, even if the next attempt is not due yet.
    again
        Also send reports that were refused before; fix the cause first.

    Examples
    --------
    deniable send https://collector.example
    deniable send https://collector.example --survey pages --wait 600
    """
    from deniable.client import Outbox, Sender

    token = os.environ.get("DENIABLE_TOKEN")
    if token_file:
        token = decode_text(token_file.buffer.read(), "the file of --token-file").strip()
    deadline = time.monotonic() + wait
    outcomes: dict[str, dict[str, object]] = {}
    lines: list[str] = []
    for path in _outboxes(expanded(folder), surveys):
        outbox = Outbox(path)
        sender = Sender(outbox, address, token=token, batch=batch)
        if again:
            outbox.try_again()
        sent, refusals = _send_until(sender, now or again, deadline), outbox.refusals()
        name = path.stem.removeprefix("outbox-")
        outcomes[name] = {**asdict(sent), "refusals": refusals}
        lines.append(_describe(name, sent, refusals))
    print_outcome(outcomes, "\n".join(lines), as_json)
    if any(each["refusals"] for each in outcomes.values()):
        click.get_current_context().exit(ERROR)
    if any(each["waiting"] for each in outcomes.values()):
        click.get_current_context().exit(UNAVAILABLE)


@command()
@click.argument("folder", type=options.FOLDER, envvar="DENIABLE_FOLDER", default=DEFAULT_FOLDER)
@options.json_option("the ledger")
def ledger(folder: Path, as_json: bool) -> None:
    """Show how much ε the client in FOLDER has spent on each survey, over all its versions.

    FOLDER is the folder of the client's secret and ledger, by default that of deniable answer:
    ~/.local/share/deniable, or the environment variable DENIABLE_FOLDER. Nothing is changed.

    Examples
    --------
    deniable ledger
    deniable ledger my-device --json
    """
    path = expanded(folder) / "ledger.json"
    if not path.exists():
        raise InputError(
            f"there is no ledger {path}: no survey was answered from this folder; name the folder "
            "that your program passes to Client.open, or --folder of deniable answer"
        )
    known = Ledger(path).spending()
    total = {name: sum(getattr(each, name) for each in known) for name in ("spent", "reserved")}
    if as_json:
        surveys = [{**asdict(each), "since": _day(each)} for each in known]
        print_outcome({"ledger": str(path), "surveys": surveys, **total}, "", as_json)
        return
    names = ["survey", "ε spent", "budget", "reserved", "since", "reports"]
    rows = [_spending_row(spending) for spending in known]
    rows.append(["all surveys", f"{total['spent']:.6g}", "", f"{total['reserved']:.6g}", "", ""])
    print_table(TextTable(names, rows, right=[False, True, True, True, False, True]), console())


def _spending_row(spending: Spending) -> list[str]:
    """Return the cells of a survey in the ledger."""
    budget = "unknown" if spending.budget is None else f"{spending.budget:.6g}"
    reports = "unknown" if spending.reports is None else f"{spending.reports:,}"
    amounts = [f"{spending.spent:.6g}", budget, f"{spending.reserved:.6g}"]
    return [spending.survey, *amounts, _day(spending) or "", reports]


def _day(spending: Spending) -> str | None:
    """Return the day of the first answer to a survey."""
    return None if spending.since is None else spending.since.isoformat()


def _outboxes(folder: Path, surveys: tuple[str, ...]) -> list[Path]:
    """Return the outbox of each of these surveys, or of all surveys that have one."""
    known = {path.stem.removeprefix("outbox-"): path for path in folder.glob("outbox-*.db")}
    missing = sorted(set(surveys) - known.keys())
    if missing or not known:
        which = f" of {', '.join(missing)}" if missing else ""
        raise InputError(
            f"there is no outbox{which} in {folder}: queue a report with deniable answer first"
        )
    return [path for name, path in sorted(known.items()) if not surveys or name in surveys]


def _send_until(sender: Sender, now: bool, deadline: float) -> Sent:
    """Send, and retry whenever an attempt is due, until the deadline."""
    total = sender.send(now=now)
    while total.waiting and (left := deadline - time.monotonic()) > 0:
        time.sleep(min(max(total.wait, MIN_PAUSE), left))
        last = sender.send()
        total = replace(
            last,
            accepted=total.accepted + last.accepted,
            refused=total.refused + last.refused,
            problem=last.problem or (total.problem if last.waiting else None),
        )
    return total


def _describe(name: str, sent: Sent, refusals: dict[str, int]) -> str:
    """Say in words what happened to the reports of one survey."""
    # All reports that were ever refused are listed below, so the last of them is left out here.
    shown = replace(sent, refused=0, problem=sent.problem if sent.waiting else None)
    return f"{name}: {shown}" + "".join(
        f"\n  {count} refused and set aside: {why}" for why, count in refusals.items()
    )
