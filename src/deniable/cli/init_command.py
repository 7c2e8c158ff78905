"""`deniable init`: the first survey file, from answers at a terminal or from options."""

from __future__ import annotations

import datetime as dt
import math
import re
import shlex
import sys
from collections.abc import Callable, Container
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from deniable.cli import options
from deniable.cli.options import command
from deniable.cli.output import echo, print_outcome
from deniable.errors import InputError, SurveyError
from deniable.formatting import counted, epsilon_text
from deniable.planning.in_words import epsilon_meaning, outlook, privacy_warnings
from deniable.privacy import NANO
from deniable.protocols.alphabet import MAX_LENGTH
from deniable.survey import Survey
from deniable.survey.draft import Draft, DraftQuestion, survey_name
from deniable.survey.survey import check_name

T = TypeVar("T")
EPSILON = {"string": 3.0, "unknown": 4.0, "choice": 2.0, "number": 2.0, "boolean": 1.0}
"""ε of a question by its kind; a given total is divided in these proportions."""
USUAL_TOTAL = 6.0
"""Largest total ε that is proposed."""


# --- checks of what is given, by an option or at a prompt ----------------------------------------


def _name(text: str) -> str:
    """Return the name of a survey."""
    check_name("survey", text)
    return text


def _text(written: str) -> str:
    """Return a text that is not blank."""
    if not written.strip():
        raise InputError("write at least one word")
    return written.strip()


def _day(written: str) -> dt.date:
    """Return a day that has not passed."""
    day: dt.date = options.Day()(written)
    if day < (today := dt.datetime.now(dt.UTC).date()):
        raise InputError(f"{day} has passed: choose {today} or a later day")
    return day


def _new_name(asked: Container[str], text: str) -> str:
    """Return the name of a question, or an empty one; `asked` has the names of the others."""
    if text:
        check_name("question", text)
    if text in asked:
        raise InputError(f"another question is called {text!r}: choose another name")
    return text


def _choice(name: str, written: str) -> DraftQuestion:
    """Return a choice of options, written as A,B,C."""
    listed = [part.strip() for part in written.split(",") if part.strip()]
    return _checked(DraftQuestion(name, "choice", EPSILON["choice"], {"options": listed}))


def _number(name: str, written: str) -> DraftQuestion:
    """Return a number in a range, written as LOW,HIGH or LOW,HIGH,BINS."""
    numbers = [options.Number()(part) for part in written.split(",")]
    if len(numbers) not in (2, 3):
        raise InputError(f"expected LOW,HIGH or LOW,HIGH,BINS, such as 0,500; got {written!r}")
    low, high, bins = (int(n) if n.is_integer() else n for n in [*numbers, 16.0][:3])
    clamped = "# smaller and larger numbers count in the first and last bin"
    equal = '# of equal width; scale = "log" makes them of equal ratio'
    settings = {"low": low, "high": (high, clamped), "bins": (bins, equal)}
    return _checked(DraftQuestion(name, "number", EPSILON["number"], settings))


def _unknown(name: str, length: int = 20, alphabet: str = "a-z0-9._-") -> DraftQuestion:
    """Return a question for strings that shall be discovered."""
    prefixes = "# each client reports one prefix; deniable discover reads them"
    dictionary = {
        "protocol": ("prefixes", prefixes),
        "max_length": (length, "# longer strings are cut"),
        "alphabet": (alphabet, '# or "bytes" for any text at all'),
    }
    hashed = {"mechanism": "localhash"}
    return _checked(DraftQuestion(name, "string", EPSILON["unknown"], hashed, dictionary))


def _checked(question: DraftQuestion) -> DraftQuestion:
    """Return a question; raise InputError if a setting is wrong."""
    _survey(Draft("survey", (question,)))
    return question


def _survey(draft: Draft) -> Survey:
    """Return the survey of a draft; raise InputError if it has a mistake."""
    try:
        return draft.survey()
    except SurveyError as error:  # the person has not seen the lines that it names
        raise InputError(re.sub(r" \(line \d+\)", "", error.mistakes[0])) from None


def _with_total(draft: Draft, total: float) -> Draft:
    """Return the survey with this total ε, divided in the proportions of the usual ones."""
    scale = total / sum(question.epsilon for question in draft.questions)
    shares = [scale * question.epsilon for question in draft.questions]
    # Rounded down, so that the questions never exceed the total.
    rounded = [math.floor(1e6 * share) / 1e6 or share for share in shares]
    questions = zip(draft.questions, rounded, strict=True)
    return replace(draft, questions=tuple(replace(each, epsilon=own) for each, own in questions))


# --- the command ---------------------------------------------------------------------------------


@command()
@click.argument("file", default="survey.toml", type=options.FILE)
@options.option("--name", type=options.CheckedText(_name))
@options.option("--owner", type=options.CheckedText(_text))
@options.option("--description", type=options.CheckedText(_text))
@options.day_option("--expires", type=options.CheckedText(_day))
@options.collect_option
@options.option("--string", multiple=True, metavar="NAME")
@options.option("--unknown", multiple=True, metavar="NAME")
@options.option("--choice", multiple=True, metavar="NAME=A,B,C")
@options.option("--number", multiple=True, metavar="NAME=LOW,HIGH[,BINS]")
@options.option("--boolean", multiple=True, metavar="NAME")
@options.option("--epsilon", type=options.POSITIVE_FLOAT, metavar="NUMBER")
@options.flag("--ask/--no-ask", default=None)
@options.flag("--force")
@options.json_option("the outcome")
def init(file: Path, ask: bool | None, force: bool, as_json: bool, **given: Any) -> None:
    """Write a survey file with comments to FILE (by default survey.toml).

    On a terminal, the command asks for what the options do not give, checks each answer at once,
    and shows what the survey will be able to detect. Ctrl-C writes nothing.

    Parameters
    ----------
    name
        Short name of the survey, for programs; all its later versions keep it. By default that of
        the file.
    owner
        Who is responsible for the survey, and how the people you ask can reach them.
    description
        What is asked and why, in words for the people who are asked.
    expires
        Last day of the survey, after which no client answers; by default one year from today.
    string
        Add a string question with this name; you will list candidate strings. May be repeated.
    unknown
        Add a string question whose strings nobody lists: deniable discover finds them. May be
        repeated.
    choice
        Add a choice question with these options. May be repeated.
    number
        Add a number question. Clients report which of the bins from LOW to HIGH (16 by default)
        holds their number; numbers outside count in the first or last bin. May be repeated.
    boolean
        Add a yes-or-no question. May be repeated.
    epsilon
        Total ε, divided among the questions; by default 1 to 4 per question, depending on its
        kind. The smaller it is, the more private the answers are, and the more clients you need.
    ask
        Ask for what the options do not give. By default the command asks only on a terminal, and
        only if the owner, the description or the questions are not given.
    force
        Overwrite FILE if it exists.

    Examples
    --------
    deniable init
    deniable init survey.toml --owner "Ada, ada@example.com" --boolean dark_mode
    deniable init survey.toml --unknown homepage --choice browser=Firefox,Safari,another --epsilon 6
    """
    if ask and as_json:
        raise click.UsageError("--ask and --json cannot be combined")
    total = given.pop("epsilon") or 0.0
    given["name"] = given["name"] or survey_name(file.name)
    given["questions"] = _from_options(given)
    if ask is None:
        terminal = sys.stdin.isatty() and sys.stdout.isatty() and not as_json
        ask = terminal and not all(given[key] for key in ("owner", "description", "questions"))
    _check_target(file, force, ask)
    if not ask and not given["questions"]:
        raise click.UsageError(
            "a survey needs a question: add one, such as --boolean dark_mode or "
            "--choice pet=cat,dog, or --ask to be asked for it"
        )
    check = f"deniable check {shlex.quote(str(file))}"
    if ask:
        _say(f"This writes {file} at the end; Ctrl-C before that writes nothing.")
        clients, total = _interview(given, total, file)
        check += f" --clients {clients} -o {shlex.quote(str(file.with_suffix('.json')))}"
    draft = _with_total(Draft(**given), total) if total else Draft(**given)
    survey = _survey(draft)
    file.write_text(draft.toml(file.name), encoding="utf-8")
    print_outcome(
        {"file": str(file), "name": survey.name, "questions": [q.name for q in survey.questions]},
        f"Wrote {file} with {counted(len(survey.questions), 'question')}, ε = "
        f"{epsilon_text(survey.budget / NANO)} in total. Next: {check}",
        as_json,
    )


def _from_options(given: dict[str, Any]) -> tuple[DraftQuestion, ...]:
    """Return the questions that the options add, and take these options out."""
    asked: dict[str, DraftQuestion] = {}
    for kind, usual in EPSILON.items():
        for item in given.pop(kind):
            name, equals, written = item.partition("=")
            if kind in ("choice", "number") and not equals:
                values = "A,B,C" if kind == "choice" else "LOW,HIGH"
                raise click.UsageError(f"expected --{kind} NAME={values}, got {item!r}")
            if kind == "choice":
                made = _choice(name, written)
            elif kind == "number":
                made = _number(name, written)
            else:
                made = _unknown(item) if kind == "unknown" else DraftQuestion(item, kind, usual)
            asked[_new_name(asked, made.name)] = made
    return tuple(asked.values())


def _check_target(file: Path, force: bool, ask: bool) -> None:
    """Refuse a file that cannot be written, or that exists and shall not be overwritten."""
    if reason := options.not_writable(file):
        raise InputError(reason)
    overwrite = force or not file.exists()
    if not overwrite and not (ask and click.confirm(f"{file} already exists. Overwrite it?")):
        raise InputError(f"{file} already exists: choose another name, or overwrite with --force")


# --- the questions at a terminal -----------------------------------------------------------------


def _interview(given: dict[str, Any], total: float, file: Path) -> tuple[int, float]:
    """Ask for what is not given, and add it; return the number of clients and the total ε."""
    context = click.get_current_context()
    year = dt.date.today() + dt.timedelta(days=365)
    defaults = {"name": given["name"], "expires": str(year), "collect": "once"}
    helps = {}
    for option in context.command.params:
        name, helps[option.name] = str(option.name), getattr(option, "help", "")
        if name in given and context.get_parameter_source(name) is ParameterSource.DEFAULT:
            given[name] = _ask(name.capitalize(), option.type, defaults.get(name), helps[name])
    given["questions"] = given["questions"] or _ask_questions()
    guess = "Clients that you expect to answer (a guess, used only for the predictions)"
    clients = _ask(guess, options.parse_count, "10,000")
    draft = Draft(**given)

    def usable(text: str) -> float:
        number = float(options.POSITIVE_FLOAT(text)) if text else 0.0
        if number:
            _survey(_with_total(draft, number))
        return number

    usual = min(sum(question.epsilon for question in draft.questions), USUAL_TOTAL)
    changed = total or _ask("Epsilon", usable, epsilon_text(usual), helps["epsilon"])
    while changed:
        total = changed
        _show_outlook(_survey(_with_total(draft, total)), clients)
        changed = _ask(f"Another epsilon, or Enter to write {file}", usable, "")
    return clients, total


def _ask(prompt: str, parse: Callable[[str], T], default: str | None = None, about: str = "") -> T:
    """Return an answer; a wrong one is explained in a sentence, and asked for again."""
    if about:
        _say(about)
    checked = options.CheckedText(parse)
    answer: T = click.prompt(
        prompt, default=default, value_proc=checked, show_default=bool(default)
    )
    return answer


def _ask_questions() -> tuple[DraftQuestion, ...]:
    """Ask for questions until a name is left empty."""
    _say(
        "Kinds of questions: boolean (yes or no), choice (an option that you list), number, string "
        "(any text; the analyst lists what to look for), unknown (also finds what nobody listed)."
    )
    asked: dict[str, DraftQuestion] = {}
    prompt = "Name of a question"
    while name := _ask(prompt, partial(_new_name, asked), "" if asked else None):
        kind = click.prompt("  Kind", type=click.Choice(list(EPSILON)), default="boolean")
        asked[name] = _ask_settings(name, kind)
        prompt = "Name of the next question, or Enter to go on"
    return tuple(asked.values())


def _ask_settings(name: str, kind: str) -> DraftQuestion:
    """Ask for what a question of this kind needs."""
    if kind == "choice":
        return _ask("  Options, separated by commas", partial(_choice, name))
    if kind == "number":
        number = _ask("  Smallest and largest number, such as 0,500", partial(_number, name))
        unit = _ask("  Unit, such as ms, or Enter for none", str.strip, "")
        return replace(number, settings={**number.settings, "unit": unit}) if unit else number
    if kind == "unknown":
        most: Callable[[str], int] = options.WholeNumber(1, MAX_LENGTH)
        length = _ask("  Maximum length (longer strings are cut)", most, "20")
        characters = '  Characters of the strings, or "bytes" for any text'
        return _ask(characters, partial(_unknown, name, length), "a-z0-9._-")
    return DraftQuestion(name, kind, EPSILON[kind])


def _show_outlook(survey: Survey, clients: int) -> None:
    """Say what the survey promises to clients, and what it will be able to see."""
    once = survey.collect == "once"
    what = "One report" if once else "All reports about one set of answers"
    _say(epsilon_meaning(survey.loss.per_report if once else survey.loss.in_total, what))
    _say(f"With {counted(clients, 'client')}, you will be able to see:")
    for question in survey.questions:
        loss = question.loss.per_report if once else question.loss.in_total
        seen = f"{question.name} (ε = {epsilon_text(loss)}): {outlook(question, clients)}."
        _say(seen, indent="  * ")
    for warning in privacy_warnings(survey):
        _say(f"Warning: {warning}.", indent="  ! ")


def _say(text: str, indent: str = "") -> None:
    """Print a paragraph, after an empty line unless it is indented."""
    lines = click.wrap_text(text, 79, indent, " " * len(indent), preserve_paragraphs=True)
    echo(lines if indent else f"\n{lines}")
