"""`deniable check`: validate a survey, and say what it promises and what it can detect."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from deniable import planning
from deniable.cli import options
from deniable.cli.exit_codes import ERROR
from deniable.cli.options import command
from deniable.cli.output import console, print_outcome, print_table
from deniable.errors import InputError, MissingPackage
from deniable.formatting import TextTable, counted, epsilon_text, odds_factor
from deniable.observers import Amplification, amplified
from deniable.planning.acceptance import acceptance_warnings, refuse_supercookie
from deniable.planning.in_words import (
    cohort_warnings,
    epsilon_meaning,
    guessing_meaning,
    privacy_warnings,
    shuffled_meaning,
    threshold_text,
)
from deniable.planning.repetition import CLIENTS, DAYS, repeated_accuracy
from deniable.planning.version_changes import version_changes
from deniable.privacy import NANO
from deniable.protocols.alphabet import count_strings
from deniable.protocols.bins import edge_text
from deniable.survey import Question, Survey
from deniable.survey.defaults import MAX_ENUMERATED_STRINGS
from deniable.survey.detection import NOT_TESTED
from deniable.survey.draft import DESCRIPTION_PLACEHOLDER, OWNER_PLACEHOLDER
from deniable.survey.toml_file import accidental_ranges
from deniable.text_files import read_text

if TYPE_CHECKING:
    from rich.console import Console

    from deniable.protocols import Bins, Prefixes

DEFAULT_SIZES = (10**4, 10**5, 10**6, 10**7, 10**8)
"""Numbers of clients for which thresholds are predicted by default."""
BATCH = 10**6
"""Number of reports of a shuffled batch for which privacy is stated."""
WARN_DAYS = 30
"""A note says that the survey ends if fewer days are left."""
MAX_EXACT_COUNT = 10**12
"""Larger numbers of strings are written as powers of ten."""
CLEAR_FIELDS = {"ngrams": "positions of the n-grams", "prefixes": "prefix length"}
"""What clients of each protocol send without noise."""
Findings = dict[str, Any]
"""What `check` found, as its JSON output has it."""
THRESHOLD_TITLES = {
    "detectable": "Detection threshold of decode: share of clients at which a value is detected "
    "half of the time (string questions: among 1,000 candidates)",
    "discoverable": "Detection threshold of discover: the same for strings that nobody listed "
    "(prefixes: strings of half the maximum length)",
}


@command()
@click.argument("file", type=options.EXISTING_FILE)
@options.option("-o", "--output", type=options.OutputPath(".json"), metavar="FILE")
@options.option("--clients", "sizes", multiple=True, type=options.parse_count, metavar="N")
@options.flag("--testing")
@options.option("--against", type=options.EXISTING_FILE, metavar="OLD")
@options.json_option("the findings")
def check(
    file: Path,
    output: Path | None,
    sizes: tuple[int, ...],
    testing: bool,
    against: Path | None,
    as_json: bool,
) -> None:
    """Validate a survey and show what it promises to clients and what it can detect.

    FILE is a survey file (TOML) or a published survey (JSON). All mistakes are listed at once.

    Parameters
    ----------
    output
        Publish the survey: write the canonical JSON that clients load to FILE.
    sizes
        Predict thresholds for this many clients; may be repeated.  [default: 10,000 to 100,000,000]
    testing
        Mark the survey as one for testing, which only Client.for_testing answers. It has another
        digest, so no collector of the real survey accepts its reports.
    against
        Also compare with OLD, the version that clients answer at present: list what changes for
        people, and exit with code 1 if anything gets worse for them.

    Examples
    --------
    deniable check survey.toml -o survey.json
    deniable check survey.toml --against survey.json
    deniable check survey.toml --testing -o testing.json
    """
    survey = Survey.load(file)
    if testing:
        survey = survey.for_testing()
    refuse_supercookie(survey)
    findings = describe(survey, sizes or DEFAULT_SIZES)
    findings["notes"] += _ranges(file)
    if against:
        findings["changes"] = [asdict(x) for x in version_changes(Survey.load(against), survey)]
    if output:
        if (placeholders := _placeholders(survey)) and not survey.testing:
            raise InputError("\n".join(placeholders))
        survey.publish(output)
        findings["published"] = str(output)
    if as_json:
        print_outcome(findings, "", as_json)
    else:
        _show(survey, findings)
    if any(change["worse"] for change in findings.get("changes", ())):
        click.get_current_context().exit(ERROR)


def describe(survey: Survey, sizes: Sequence[int] = DEFAULT_SIZES) -> Findings:
    """Return everything that `check` shows, as plain data. An infinite ε is None."""
    warnings = privacy_warnings(survey) + cohort_warnings(survey)
    warnings += acceptance_warnings(survey, datetime.now(UTC).date())
    missing: set[str] = set()
    questions = [_describe_question(question, sizes, missing) for question in survey.questions]
    untested = any(None in (question["detectable"] or {}).values() for question in questions)
    few = [NOT_TESTED] if untested and not cohort_warnings(survey) else []
    if survey.collect == "repeatedly":
        for question, findings in zip(survey.questions, questions, strict=True):
            findings |= _repeated(question)
    return {
        "name": survey.name,
        "version": survey.version,
        "digest": survey.digest.hex(),
        "collect": survey.collect,
        "expires": survey.expires.isoformat(),
        "budget": survey.budget / NANO,
        "once": survey.loss.per_report,
        "forever": _finite(survey.loss.in_total),
        "report_bytes": 20 + survey.body_size,
        "batched_report_bytes": survey.body_size,
        "groups": survey.groups,
        "smallest_group": survey.smallest_group,
        "questions": questions,
        "shuffled": asdict(amplified(survey, BATCH)) if survey.collect == "once" else None,
        "guesses": list(map(guessing_meaning, survey.questions)),
        "notes": [*_testing(survey), *_placeholders(survey), *_expiry(survey), *missing, *few],
        **({"warnings": warnings} if warnings else {}),
        **({"testing": True} if survey.testing else {}),
    }


def _describe_question(question: Question, sizes: Sequence[int], missing: set[str]) -> Findings:
    """Return what is said of a question; add to `missing` how to install what that needs."""

    def by_size(threshold: Any) -> dict[str, float | None] | None:
        try:
            return {str(n): _finite(threshold(question, n)) for n in sizes}
        except MissingPackage as error:
            missing.add(str(error))
            return None

    unknown = question.protocol.name in ("ngrams", "prefixes")
    return {
        "name": question.name,
        "kind": question.kind,
        "protocol": question.protocol.name,
        "once": question.loss.per_report,
        "forever": _finite(question.loss.in_total),
        "bytes": question.size,
        "detectable": by_size(planning.detectable),
        "discoverable": by_size(planning.discoverable) if unknown else None,
        "levels": REPORTED.get(question.protocol.name, lambda _: None)(question.protocol),
    }


def _repeated(question: Question) -> Findings:
    """Return the accuracy of repeated reports; nothing if it cannot be compared."""
    accuracy = repeated_accuracy(question)
    if not accuracy:
        return {}
    rows = [
        {
            "per_report": row.per_report,
            "standard_error": dict(zip(map(str, DAYS), row.errors, strict=True)),
            "chosen": row.chosen,
        }
        for row in accuracy
    ]
    return {"repeated": rows}


def _finite(x: float) -> float | None:
    return x if math.isfinite(x) else None


def _placeholders(survey: Survey) -> list[str]:
    """Name the texts of a draft that its author has not replaced."""
    fields = (
        (
            survey.owner,
            OWNER_PLACEHOLDER,
            "owner is a placeholder: write who is responsible for the survey",
        ),
        (
            survey.description,
            DESCRIPTION_PLACEHOLDER,
            "description is a placeholder: write what is asked and why",
        ),
    )
    return [
        f"the {advice}, because clients can read it"
        for text, placeholder, advice in fields
        if text == placeholder
    ]


def _testing(survey: Survey) -> list[str]:
    """Say that the survey is for testing."""
    if not survey.testing:
        return []
    return ["this survey is FOR TESTING: only Client.for_testing answers it, and protects nobody"]


def _ranges(file: Path) -> list[str]:
    """Name ranges in the alphabets of a survey file that were probably meant as a hyphen."""
    if file.suffix == ".json":
        return []
    questions = tomllib.loads(read_text(file))["questions"]
    return [
        f"in the alphabet of {name}, {accident}"
        for name, table in questions.items()
        for accident in accidental_ranges(table.get("dictionary", {}).get("alphabet", ""))
    ]


def _expiry(survey: Survey) -> list[str]:
    """Say that the survey has ended or ends soon."""
    left = (survey.expires - datetime.now(UTC).date()).days
    if left < 0:
        return [f"the survey ended {counted(-left, 'day')} ago: clients refuse to answer"]
    return [f"the survey ends in {counted(left, 'day')}"] if left < WARN_DAYS else []


def _bins(protocol: Bins) -> str:
    """Say which bins clients report, and what happens to numbers outside them."""
    low, high = (edge_text(protocol.edges[end]) for end in (0, -1))
    unit = f" {protocol.unit}" if protocol.unit else ""
    return (
        f"the bin that holds the number, one of {len(protocol.edges) - 1} from {low} to "
        f"{high}{unit}; numbers outside count in the first or last bin"
    )


def _prefix_lengths(protocol: Prefixes) -> str:
    """Say which prefixes clients report, and why."""
    strings = count_strings(len(protocol.alphabet.content), protocol.max_length)
    number = f"{strings:,}" if strings < MAX_EXACT_COUNT else f"10^{math.log10(strings):.0f}"
    lengths = sorted({level.length for level in protocol.levels})
    if len(lengths) == 1:
        return (
            f"whole strings only, because discover can test each of the {number} possible strings"
        )
    text = f"prefixes of {len(lengths)} lengths, from {lengths[0]} to {lengths[-1]} symbols"
    if strings > MAX_ENUMERATED_STRINGS:
        return f"{text}, because the {number} possible strings are too many to test each one"
    return f"{text}; discover could test each of the {number} possible strings: leave levels out"


REPORTED: dict[str, Callable[[Any], str | None]] = {"bins": _bins, "prefixes": _prefix_lengths}
"""Functions that say what clients report of a value, by protocol."""


def _show(survey: Survey, findings: Findings) -> None:
    """Print the findings as tables and sentences."""
    out, repeatedly = console(), survey.collect == "repeatedly"
    out.print(
        f"[bold]{survey.name}[/] version {survey.version}, collected {survey.collect}, until "
        f"{survey.expires}"
    )
    out.print(f"digest {findings['digest']}\n")
    whole = {"name": "whole survey", "kind": "", "protocol": ""}
    whole |= {"bytes": findings["batched_report_bytes"]}
    names = ["question", "kind", "protocol", "bytes", "ε per report", "odds change by at most"]
    rows = [
        [row["name"], row["kind"], row["protocol"], str(row["bytes"]), epsilon_text(row["once"])]
        + [f"× {odds_factor(row['once'])}"]
        + ([epsilon_text(row["forever"])] if repeatedly else [])
        for row in [*findings["questions"], findings | whole]
    ]
    print_table(TextTable(names + ["ε in total"] * repeatedly, rows), out)
    sentences = [*_promises(survey), *_sizes(survey, findings)]
    if findings["shuffled"]:
        sentences += [shuffled_meaning(Amplification(**findings["shuffled"]))]
    sentences += [f"{guess}." for guess in findings["guesses"]]
    sentences += [
        f"Clients report for {question['name']}: {question['levels']}."
        for question in findings["questions"]
        if question["levels"]
    ]
    out.print("\n".join(sentences) + "\n", markup=False)
    for which, title in THRESHOLD_TITLES.items():
        _show_thresholds(out, title, {q["name"]: q[which] for q in findings["questions"]})
    for question in findings["questions"] if repeatedly else ():
        if "repeated" in question:
            _show_repeated(out, question)
    for note in findings["notes"]:
        out.print(f"Note: {note}.", markup=False)
    for warning in findings.get("warnings", ()):
        out.print(f"Warning: {warning}.", markup=False, style="bold red")
    if "changes" in findings:
        _show_changes(out, findings["changes"])
    if "published" in findings:
        out.print(f"Wrote the published survey to {findings['published']}.", markup=False)


def _show_changes(out: Console, changes: Sequence[Findings]) -> None:
    """Print what a new version changes for people."""
    if not changes:
        out.print("Nothing changes for people.")
        return
    rows = [
        [change["what"], change["before"], change["now"], "worse" if change["worse"] else ""]
        for change in changes
    ]
    out.print("What this version changes for people:")
    print_table(TextTable(["change", "before", "now", ""], rows), out)


def _promises(survey: Survey) -> list[str]:
    """Say what the reports of one client reveal at most, and when the client refuses to answer."""
    budget, charges = survey.budget, [c for q in survey.questions for c in q.charges]
    several = epsilon_meaning(budget / NANO, "All reports that the budget allows")
    sentences = [epsilon_meaning(survey.loss.per_report, "One report")]
    if survey.collect == "once":
        twice = sum(2 * once if most is None else min(2 * once, most) for once, most in charges)
        refused = "A client answers once; a second answer is refused."
        sentences.append(refused if budget < twice else several)
    else:
        total, once = survey.loss.in_total, survey.loss.per_report
        sentences.append(epsilon_meaning(total, "All reports about one set of answers"))
        changed = "A client whose answers change soon refuses to answer; a larger budget allows it."
        sentences.append(changed if budget < NANO * (total + once) else several)
    return [*sentences, f"Budget per client over all versions: ε = {epsilon_text(budget / NANO)}."]


def _sizes(survey: Survey, findings: Findings) -> list[str]:
    """Say how large a report is, and what it contains besides noisy answers."""
    sizes = (
        f"Size of a report: {counted(findings['report_bytes'], 'byte')} on its own, "
        f"{counted(survey.body_size, 'byte')} in a batch, whatever the answer."
    )
    if survey.groups == 1:
        return [sizes]
    protocols = {question.protocol.name for question in survey.questions}
    clear = ["cohort"] * (survey.cohorts > 1)
    clear += [field for protocol, field in CLEAR_FIELDS.items() if protocol in protocols]
    return [
        sizes,
        f"Sent without noise, but chosen at random, whatever the answer: {', '.join(clear)}. This "
        f"divides the clients into {survey.groups:,} groups; the smallest contains about one "
        f"client in {1 / survey.smallest_group:,.0f}.",
    ]


def _show_repeated(out: Console, question: Findings) -> None:
    """Print what one report tells beside how accurate one day and many days are."""
    out.print(
        f"Accuracy of {question['name']}: standard error of the share of a rare value, if "
        f"{CLIENTS:,} clients report it daily. More ε per report makes a day more accurate, and "
        "reports of one client easier to recognise; ε in total stays the same:"
    )
    names = ["ε per report", "odds change by at most"]
    names += [counted(days, "day") for days in DAYS]
    rows = [
        [epsilon_text(row["per_report"]) + (" (this survey)" if row["chosen"] else "")]
        + [f"× {odds_factor(row['per_report'])}"]
        + [f"{100 * error:.2f}%" for error in row["standard_error"].values()]
        for row in question["repeated"]
    ]
    print_table(TextTable(names, rows), out)
    out.print("Set epsilon_per_report in the survey file to choose another.\n")


def _show_thresholds(
    out: Console, title: str, by_question: dict[str, dict[str, float | None] | None]
) -> None:
    """Print one table of thresholds: a row per number of clients, a column per question."""
    columns = {name: shares for name, shares in by_question.items() if shares is not None}
    if not columns:
        return
    rows = []
    for clients in next(iter(columns.values())):
        thresholds = [each[clients] for each in columns.values()]
        shares = [
            "–" if threshold is None else threshold_text(threshold, int(clients))
            for threshold in thresholds
        ]
        rows.append([f"{int(clients):,}", *shares])
    out.print(f"{title}:")
    print_table(TextTable(["clients", *columns], rows), out)
    if any("none" in row for row in rows):
        out.print("(none: not even a value that all clients have is detected half of the time)")
    if any("–" in row for row in rows):
        out.print("(–: nothing is tested)")
