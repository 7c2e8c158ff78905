"""Measure how far false reports move an estimate.

    python -m experiments.poisoning [--seeds 10] [--clients 100000] [--liars 1000]

A client that holds the target sets its bits with probability q*, other clients with p*. A lying
client adds no noise: it sends the target's bits and no others to raise the estimate, and all bits
except those to lower it.

choice, boolean : the estimate is (rate − p*)/(q* − p*), so one lying client counts as
    (1 − p*)/(q* − p*) holders of the target, or as −p*/(q* − p*).
string : the rate is compared with that of bits that no candidate sets, so one lying client counts
    as 1/(q* − p*) holders, or as minus that.

m lying clients among N, each replacing a client that holds the target with probability f, shift the
estimate by (m/N)·(influence − f). They may choose their cohort: `one cohort` puts all into one.

--plant : can lying clients make `discover` find a string that no client holds? In a prefix question
    a truthful number is sent with probability q*, and a string is supported by chance 1/g of the
    time. A lying client counts as (1 − 1/g)/(q* − 1/g) holders, so `planning.discoverable` · N
    divided by this number are needed.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np

from deniable import ReportBatch, Survey, decode, discover, simulate
from deniable.columns.batch import from_arrays
from deniable.mechanisms import Bloom, Choice, LocalHash
from deniable.planning import discoverable
from deniable.simulation import Population, exponential, top_domains, zipf
from experiments.paper.dictionaries import prefix_survey

HEADER = 'name = "{}"\nversion = 1\nowner = "x"\ndescription = "x"\nexpires = 2999-12-31\n'
QUESTIONS = {
    "boolean, ε = 1": ("once", 'kind = "boolean"\nepsilon = 1.0'),
    "choice of 4, ε = 2": (
        "once",
        'kind = "choice"\noptions = ["page0", "page1", "page2", "page3"]\nepsilon = 2.0',
    ),
    "string, ε = 1": ("once", 'kind = "string"\nepsilon = 1.0'),
    "string, ε = 3": ("once", 'kind = "string"\nepsilon = 3.0'),
    "string, h = 2, p = ¼, q = ¾": ("once", 'kind = "string"\nhashes = 2\np = 0.25\nq = 0.75'),
    "string, h = 2, f = ½, p = ½, q = ¾": (
        "repeatedly", 'kind = "string"\nhashes = 2\nf = 0.5\np = 0.5\nq = 0.75',
    ),
}  # fmt: skip
PLANTED = "planted.example"
PAGES = tuple(f"page{i}" for i in range(50))
TARGET = 1
"""Index of the value that the attack targets; it is neither the most common nor rare."""


@dataclass(frozen=True)
class Attack:
    """Raise or lower the target, with attackers in their own cohorts or all in one."""

    up: bool
    one_cohort: bool = False

    def __str__(self) -> str:
        return ("raise" if self.up else "lower") + (", one cohort" if self.one_cohort else "")


def survey_of(name: str) -> Survey:
    """Return the survey with one of the questions."""
    collect, question = QUESTIONS[name]
    header = HEADER.format("poisoned") + f'collect = "{collect}"\n'
    return Survey.from_toml(f"{header}[questions.q]\n{question}\n")


def population(survey: Survey) -> Population:
    """Return a Zipf population of the options of the question, or of 50 pages."""
    kind = survey.questions[0].kind
    values: tuple[object, ...] = {"boolean": (False, True), "choice": PAGES[:4]}.get(kind, PAGES)
    return Population(values, zipf(len(values)))


def poisoned(honest: ReportBatch, liars: int, attack: Attack) -> ReportBatch:
    """Return the batch with its first reports replaced by those of the attack."""
    mechanism = honest.survey.questions[0].protocol.mechanisms[0]
    cohort, clear, bits = (np.array(a) for a in honest.arrays())
    if attack.one_cohort:
        cohort[:liars] = 0
    rows = np.zeros((liars, mechanism.width), bool)
    for i in range(liars):
        if isinstance(mechanism, Bloom):
            token = PAGES[TARGET].encode()
            rows[i, list(mechanism.positions(token, mechanism.own_cohort(int(cohort[i]))))] = True
        else:
            rows[i, TARGET if isinstance(mechanism, Choice) else 0] = True
    bits[:liars] = np.packbits(rows ^ (not attack.up), axis=1, bitorder="little")
    return from_arrays(honest.survey, [cohort, clear, bits])


def influence(survey: Survey, up: bool) -> float:
    """Return the number of honest holders of the target with the same effect as one attacker."""
    mechanism = survey.questions[0].protocol.mechanisms[0]
    p, q = float(mechanism.noise.p_star), float(mechanism.noise.q_star)
    if isinstance(mechanism, Bloom):
        return (1 if up else -1) / (q - p)
    return (float(up) - p) / (q - p)


def estimate(reports: ReportBatch) -> float:
    """Return the estimate of the target."""
    string = reports.survey.questions[0].kind == "string"
    found = decode(reports.survey, reports, "q", PAGES if string else None)
    boolean = reports.survey.questions[0].kind == "boolean"
    return float(found.estimate[0 if boolean else TARGET])


def plant(clients: int, times: float) -> None:
    """Liars in a survey of unknown strings, `times` as many as are predicted to be needed."""
    survey = prefix_survey(epsilon=4.39, length=20, alphabet="a-z0-9._-")
    question = survey.questions[0]
    mechanism = question.protocol.mechanisms[0]
    assert isinstance(mechanism, LocalHash)
    rng = np.random.default_rng(6)
    honest = simulate(
        survey, Population(top_domains(), exponential(100, 25.0)).draw(clients, rng), rng=rng
    )
    chance, q = 1 / mechanism.values, float(mechanism.noise.q_star)
    one = (1 - chance) / (q - chance)
    needed = discoverable(question, clients) * clients / one
    liars = round(times * needed)
    cohort, clear, bits = (np.array(a) for a in honest.arrays())
    slots = question.protocol.parts[0].slots
    for i in range(liars):
        level = int(clear[i, 0])
        own = slots[level].mechanism
        assert isinstance(own, LocalHash)
        token = question.protocol.token(PLANTED, 0, level)
        number = own.number(token, own.own_cohort(int(cohort[i])))
        assert number is not None
        bits[i] = np.frombuffer(number.to_bytes(own.size, "little"), np.uint8)
    found = discover(survey, from_arrays(survey, [cohort, clear, bits]), question.name)
    seen = dict(zip(found.strings, found.estimate, strict=True)).get(PLANTED)
    print(
        f"{clients:,} clients, one liar counts as {one:.2f}; {liars:,} liars, {times:g} × the "
        f"{needed:,.0f} predicted: {PLANTED} "
        + (f"found at {100 * seen:.2f}%" if seen is not None else "not found")
        + f" (predicted {100 * liars * one / clients:.2f}%)", flush=True
    )  # fmt: skip


def main() -> None:
    """Measure the shift of an estimate by each attack, or plant a string in a discovery."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--plant", type=float, nargs="*", help="multiples of the liars needed")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--clients", type=int, default=100_000)
    parser.add_argument("--liars", type=int, default=1000)
    options = parser.parse_args()
    if options.plant is not None:
        for times in options.plant or (0.5, 0.75, 1.0, 1.5):
            plant(options.clients, times)
        return
    share = options.liars / options.clients
    print(f"{options.clients:,} clients, {100 * share:g} % lie, {options.seeds} seeds")
    print("| question | attack | one liar counts as | predicted shift | measured | ± |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name in QUESTIONS:
        survey = survey_of(name)
        people = population(survey)
        string = survey.questions[0].kind == "string"
        cohorts = (False, True) if string else (False,)
        attacks = [Attack(up, one) for one in cohorts for up in (True, False)]
        shifts: dict[Attack, list[float]] = {attack: [] for attack in attacks}
        for seed in range(options.seeds):
            rng = np.random.default_rng([6, seed])
            honest = simulate(survey, {"q": people.draw(options.clients, rng)}, rng=rng)
            before = estimate(honest)
            for attack in attacks:
                lies = poisoned(honest, options.liars, attack)
                shifts[attack].append(estimate(lies) - before)
        for attack, seen in shifts.items():
            one = influence(survey, attack.up)
            predicted = share * (one - people.weights[TARGET])
            error = np.std(seen) / np.sqrt(len(seen))
            print(
                f"| {name} | {attack} | {one:+.2f} | {100 * predicted:+.2f} % "
                f"| {100 * np.mean(seen):+.2f} % | {100 * error:.2f} |", flush=True
            )  # fmt: skip


if __name__ == "__main__":
    main()
