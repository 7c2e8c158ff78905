"""What a new version of a survey changes for the people who are asked."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass

from deniable.formatting import counted, epsilon_text, percent
from deniable.privacy import NANO
from deniable.survey import Question, Survey
from deniable.survey.survey import total_charge

SAMPLED_CLIENTS = 256
"""Number of made-up clients whose noise is compared between two versions."""


@dataclass(frozen=True)
class VersionChange:
    """One difference between two versions of a survey.

    Parameters
    ----------
    what : str
        What changes.
    before, now : str
        What it was, and what it is.
    worse : bool
        Whether it is worse for people: more is asked, revealed, charged, or told apart.
    """

    what: str
    before: str
    now: str
    worse: bool


def version_changes(old: Survey, new: Survey) -> list[VersionChange]:
    """Return what changes for people from an old version of a survey to a new one.

    Parameters
    ----------
    old : Survey
        Version that clients answer at present.
    new : Survey
        Version that is to replace it.

    Returns
    -------
    list of VersionChange
        The differences; empty if nothing changes for people.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from deniable.survey import example_survey
    >>> old = example_survey()
    >>> version_changes(old, replace(old, version=2, budget=2 * old.budget))[0].what
    'budget per client'
    """
    return [change for change in _changes(old, new) if change.before != change.now]


def _changes(old: Survey, new: Survey) -> Iterator[VersionChange]:
    """Yield every comparison, also those that show no difference."""
    yield VersionChange("name", old.name, new.name, True)
    if old != new and new.version <= old.version:
        yield VersionChange("version", f"{old.version}", f"{new.version} (not increased)", True)
    yield VersionChange("owner", old.owner, new.owner, True)
    yield VersionChange("description", old.description, new.description, False)
    yield VersionChange("last day", f"{old.expires}", f"{new.expires}", new.expires > old.expires)
    yield VersionChange("collected", old.collect, new.collect, new.collect == "repeatedly")
    yield _loss("ε per report", old.loss.per_report, new.loss.per_report)
    yield _loss("ε in total", _in_total(old), _in_total(new))
    yield _loss("budget per client", old.budget / NANO, new.budget / NANO)
    yield _loss("ε of clients that answer both versions", _in_total(old), _both(old, new))
    before = {question.name: question for question in old.questions}
    for question in new.questions:
        was = before.pop(question.name, None)
        yield from _question_changes(was, question, old, new)
    for question in before.values():
        yield VersionChange(
            f"question {question.name}", f"ε = {_once(question)}", "not asked", False
        )
    yield _count("cohorts", old.cohorts, new.cohorts)
    yield _count("groups by clear fields", old.groups, new.groups)
    yield _count("bytes of a report", old.body_size, new.body_size, matters=False)


def _question_changes(
    was: Question | None, question: Question, old: Survey, new: Survey
) -> Iterator[VersionChange]:
    """Yield the comparisons of one question with that of the same name before."""
    name = f"question {question.name}"
    if was is None:
        yield VersionChange(name, "not asked", f"asked, ε = {_once(question)}", True)
        return
    yield VersionChange(f"{name}: kind", was.kind, question.kind, True)
    yield VersionChange(f"{name}: description", was.description, question.description, False)
    before, now = (f"{q.protocol.name}, {len(q.protocol.parts)} parts" for q in (was, question))
    yield VersionChange(f"{name}: protocol", before, now, True)
    yield _loss(f"{name}: ε per report", was.loss.per_report, question.loss.per_report)
    yield _loss(f"{name}: ε in total", was.loss.in_total, question.loss.in_total)
    yield _option_changes(f"{name}: options", was, question)
    if share := _redrawn(was, question, old, new):
        charge = sum(total or once for once, total in question.charges) / NANO
        yield VersionChange(
            f"{name}: permanent noise",
            "kept",
            f"drawn anew for {percent(share)} of clients: a value that was reported is charged up "
            f"to ε = {epsilon_text(charge)} again",
            True,
        )


def _option_changes(what: str, was: Question, question: Question) -> VersionChange:
    """Compare the options of two questions; other options are worse only if they cost more."""
    options, before = (q.protocol.mechanisms[0].labels for q in (question, was))
    if options == before:
        return VersionChange(what, "", "", False)
    changes = [f"+ {option}" for option in options if option not in set(before)]
    changes += [f"− {option}" for option in before if option not in set(options)]
    text = ", ".join(changes) or "in another order"
    return VersionChange(what, counted(len(before), "option"), text, False)


def _redrawn(was: Question, question: Question, old: Survey, new: Survey) -> float:
    """Return the share of clients that draw permanent noise anew for an unchanged value.

    Noise is derived from the slot that a client reports, how values set its bits, the probability
    of the noise, and the client's cohort. All of them are compared for made-up clients.
    """
    mechanisms = (*was.protocol.mechanisms, *question.protocol.mechanisms)
    if all(mechanism.noise.flip == 0 for mechanism in mechanisms):
        return 0.0

    def noise_keys(survey: Survey, asked: Question, secret: bytes) -> list[tuple[object, ...]]:
        cohort, _ = survey.draw(secret)
        draw = asked.protocol.draw(secret, survey.name, asked.name)
        slots = [slot.mechanism for slot in asked.protocol.slots(draw)]
        return [(m.domain, m.noise.flip, m.cohorts, m.own_cohort(cohort)) for m in slots]

    secrets = [hashlib.sha256(b"%d" % i).digest() for i in range(SAMPLED_CLIENTS)]
    changed = [noise_keys(old, was, s) != noise_keys(new, question, s) for s in secrets]
    return sum(changed) / len(changed)


def _in_total(survey: Survey) -> float:
    """Return ε of all answers of a client whose values do not change."""
    return total_charge(survey.questions, survey.collect) / NANO


def _both(old: Survey, new: Survey) -> float:
    """Return ε of a client that answered the old version, and then answers the new one.

    Questions without permanent noise are charged in full again, unless the budget forbids it.
    """
    spent = total_charge(old.questions, old.collect)
    before = {question.name: question for question in old.questions}
    extra = 0
    for question in new.questions:
        was = before.get(question.name)
        kept = was is not None and was.kind == question.kind and _kept(was, question, old, new)
        charge = total_charge([question], new.collect)
        extra += max(0, charge - total_charge([was], old.collect)) if kept and was else charge
    return (spent + extra if spent + extra <= new.budget else spent) / NANO


def _kept(was: Question, question: Question, old: Survey, new: Survey) -> bool:
    """Return whether all permanent noise of a question stays the same, and there is some."""
    permanent = all(m.noise.flip for q in (was, question) for m in q.protocol.mechanisms)
    return permanent and not _redrawn(was, question, old, new)


def _once(question: Question) -> str:
    """Return ε per report of a question."""
    return epsilon_text(question.loss.per_report)


def _loss(what: str, before: float, now: float) -> VersionChange:
    """Compare two losses; more is worse."""
    old, new = ("no limit" if math.isinf(x) else epsilon_text(x) for x in (before, now))
    return VersionChange(what, old, new, now > before)


def _count(what: str, before: int, now: int, *, matters: bool = True) -> VersionChange:
    """Compare two numbers; more is worse if it `matters` to people."""
    return VersionChange(what, f"{before:,}", f"{now:,}", matters and now > before)
