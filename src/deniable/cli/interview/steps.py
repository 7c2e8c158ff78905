"""The interview of `deniable init`: what it asks, in which order and with which explanations."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from deniable.cli.interview import answers
from deniable.cli.interview.conversation import Conversation, PromptStep, say
from deniable.cli.interview.outline import DEFAULT_EPSILON, Outline, OutlineQuestion
from deniable.errors import DeniableError
from deniable.formatting import counted, epsilon_text
from deniable.planning.in_words import epsilon_meaning, outlook, privacy_warnings
from deniable.survey.draft import survey_name
from deniable.survey.survey import suggested_name

USUAL_TOTAL = 6.0
"""Largest total ε that is proposed."""

OWNER = PromptStep(
    "owner",
    "Owner",
    answers.text,
    "Who is responsible for the survey, and how can the people you ask reach them?",
)
DESCRIPTION = PromptStep(
    "description",
    "Description",
    answers.text,
    "What do you ask and why? Clients can show this to the people they ask.",
)
EXPIRES = PromptStep(
    "expires",
    "Ends",
    answers.day,
    "When does the survey end? After that day no client answers. Write a day, such as 2027-12-31, "
    "or a time from today, such as 6 months.",
    default="1 year",
    confirm=lambda day: f"The last day is {day}.",
)
COLLECT = PromptStep(
    "collect",
    "Collect",
    answers.collect,
    "How often does a client report? Choose once if one report per client is enough. Choose "
    "repeatedly if clients report again and again, every day for example, about answers that "
    "seldom change; ε then limits what all of these reports reveal together.",
    default="once",
    suggest=answers.closest_to("once", "repeatedly"),
    confirm={
        "once": "Each client sends one report.",
        "repeatedly": "A client may send any number of reports.",
    }.__getitem__,
)
KIND = PromptStep(
    "kind",
    "  Kind",
    answers.kind,
    default="boolean",
    suggest=answers.closest_to(*DEFAULT_EPSILON),
    confirm={
        "boolean": "Yes or no.",
        "choice": "One of the options that you list.",
        "number": "A number; clients report the bin that holds it.",
        "string": "Any text; the analyst lists the strings to look for.",
        "unknown": "Any text; deniable discover also finds strings that nobody listed.",
    }.__getitem__,
)
OPTIONS = PromptStep(
    "options", "  Options, separated by commas", answers.choices, confirm=answers.describe_choices
)
RANGE = PromptStep(
    "range",
    "  Smallest and largest number, such as 0,500",
    answers.number_range,
    confirm=answers.describe_range,
)
UNIT = PromptStep("unit", "  Unit, such as ms, or Enter for none", str.strip, default="")
LENGTH = PromptStep(
    "max_length", "  Maximum length (longer strings are cut)", answers.length, default="20"
)
ALPHABET = PromptStep(
    "alphabet",
    '  Characters of the strings, or "bytes" for any text',
    answers.alphabet,
    default="a-z0-9._-",
    confirm=answers.describe_alphabet,
)
CLIENTS = PromptStep(
    "clients",
    "Clients",
    answers.clients,
    "How many clients do you expect to answer? A guess is enough; it is used only to predict what "
    "the survey will be able to see.",
    default="10,000",
)


def interview(talk: Conversation, given: Outline, file: Path) -> tuple[Outline, int]:
    """Ask for everything that is not given; return the outline and the number of clients."""
    name = PromptStep(
        "name",
        "Name",
        answers.name_of("survey"),
        "A short name of the survey, for programs. All its later versions keep this name.",
        default=survey_name(file.name),
        suggest=lambda text: suggested_name(text, "-"),
    )
    outline = replace(
        given,
        name=given.name or talk.ask(name),
        owner=given.owner or talk.ask(OWNER),
        description=given.description or talk.ask(DESCRIPTION),
        expires=given.expires or talk.ask(EXPIRES),
        collect=given.collect or talk.ask(COLLECT),
    )
    outline = replace(outline, questions=given.questions or _questions(talk, outline))
    clients = talk.ask(CLIENTS)
    return _with_epsilon(talk, outline, clients, file), clients


def _questions(talk: Conversation, outline: Outline) -> tuple[OutlineQuestion, ...]:
    """Ask for questions until a name is left empty."""
    say(
        "Now the questions. Each has a name and a kind: boolean (yes or no), choice (one of the "
        "options that you list), number, string (any text, and the analyst lists the strings to "
        "look for) or unknown (any text, and strings that nobody listed are found, too)."
    )
    asked: list[OutlineQuestion] = []
    while True:
        check = answers.name_of("question", [question.name for question in asked])
        name = talk.ask(
            PromptStep(
                "question",
                "Name of the next question, or Enter to go on" if asked else "Name of a question",
                lambda text, check=check: check(text) if text else "",  # type: ignore[misc]
                default="" if asked else None,
                suggest=suggested_name,
                prompt_again="Name of the question",
            )
        )
        if not name:
            return tuple(asked)
        question = OutlineQuestion(name, talk.ask(KIND))
        if question.kind == "choice":
            question = replace(question, options=talk.ask(OPTIONS))
        elif question.kind == "number":
            bins = replace(talk.ask(RANGE), unit=talk.ask(UNIT))
            question = replace(question, bins=bins)
        elif question.kind == "unknown":
            question = replace(question, max_length=talk.ask(LENGTH), alphabet=talk.ask(ALPHABET))
        try:
            replace(outline, questions=(question,)).draft().survey()
        except DeniableError as error:
            say(f"{error} Describe the question again.", indent="  ! ")
        else:
            asked.append(question)


def _with_epsilon(talk: Conversation, outline: Outline, clients: int, file: Path) -> Outline:
    """Ask for ε, and show what follows from it, until the person is content."""

    def with_total(text: str) -> Outline:
        chosen = replace(outline, epsilon=answers.epsilon(text))
        chosen.draft().survey()  # finds what is wrong with it
        return chosen

    step = PromptStep(
        "epsilon",
        "Total ε",
        with_total,
        "ε (epsilon) limits what the reports of a client reveal: it is divided among the "
        "questions. The smaller it is, the more private the answers are, and the more clients you "
        "need. For one question, 1 to 4 is usual.",
        default=epsilon_text(min(outline.usual_epsilon, USUAL_TOTAL)),
    )
    chosen = outline if outline.epsilon is not None else talk.ask(step)
    while True:
        _show_outlook(chosen, clients)
        another = PromptStep(
            "another epsilon",
            f"Another ε, or Enter to write {file}",
            lambda text: with_total(text) if text else None,
            default="",
        )
        changed = talk.ask(another)
        if changed is None:
            return chosen
        chosen = changed


def _show_outlook(outline: Outline, clients: int) -> None:
    """Say what the survey promises to clients, and what it will be able to see."""
    survey = outline.draft().survey()
    once = survey.collect == "once"
    say(
        epsilon_meaning(
            survey.loss.per_report if once else survey.loss.in_total,
            "One report" if once else "All reports about one set of answers",
        )
    )
    say(f"With {counted(clients, 'client')}, you will be able to see:")
    for question in survey.questions:
        epsilon = question.loss.per_report if once else question.loss.in_total
        say(
            f"{question.name} (ε = {epsilon_text(epsilon)}): {outlook(question, clients)}.",
            indent="  * ",
        )
    for warning in privacy_warnings(survey):
        say(f"Warning: {warning}.", indent="  ! ")
