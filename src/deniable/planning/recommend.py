"""plan: from ε, the number of clients and what is asked, to parameters and predictions.

Two of ε, the number of clients and the frequency to be found are given; the third follows. Every
design that can ask the question is predicted at that ε, through the survey file that would ask it,
so a plan promises only what the rule of `survey.defaults` gives.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from deniable.errors import InputError
from deniable.kernels.array_types import Floats
from deniable.planning.thresholds import (
    ALPHA,
    CANDIDATES,
    detectable,
    discoverable,
    expected_found,
    noise_sd,
)
from deniable.results.survey_plan import Plan, QuestionDesign
from deniable.simulation import exponential, zipf
from deniable.survey import Question
from deniable.survey.draft import Draft, DraftQuestion

LEAST, MOST = 0.05, 12.0
"""ε that is worth planning with."""
EPSILONS = (0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0)
SHAPES: dict[str, Callable[[int], Floats]] = {
    "Zipf(1)": zipf,
    "Zipf(1.2)": partial(zipf, s=1.2),
    "exponential(25)": exponential,
}
POPULATIONS: dict[str, list[float]] = {
    f"{n:,} {name}": shape(n).tolist() for n in (100, 1000) for name, shape in SHAPES.items()
}
"""How common the strings of each population are."""


@dataclass(frozen=True)
class _Way:
    """A design whose ε is still open. localhash where collected once: a report is one number."""

    name: str
    kind: str
    settings: Mapping[str, object]
    dictionary: Mapping[str, object] | None = None

    def draft(self, epsilon: float, collect: str, question: str = "answer") -> Draft:
        asked = DraftQuestion(
            question, self.kind, epsilon, settings=self.settings, dictionary=self.dictionary
        )
        return Draft("plan", (asked,), collect=collect)

    def question(self, epsilon: float, collect: str) -> Question:
        return self.draft(epsilon, collect).survey().questions[0]


@dataclass(frozen=True)
class _Aim:
    """What is to be found: everything a prediction needs beside a question and a crowd."""

    collect: str
    candidates: int
    length: float
    random: bool
    alpha: float

    def threshold(self, way: _Way, epsilon: float, clients: float) -> float:
        asked = way.question(epsilon, self.collect)
        if way.dictionary is None:
            return detectable(asked, clients, candidates=self.candidates, alpha=self.alpha)
        return discoverable(
            asked, clients, length=self.length, random=self.random, alpha=self.alpha
        )

    def spread(self, way: _Way, epsilon: float, clients: float) -> float:
        """Standard deviation of the estimate that decides."""
        return noise_sd(way.question(epsilon, self.collect).protocol.mechanisms[0], clients)


def plan(
    *,
    clients: float | None = None,
    epsilon: float | None = None,
    detect: float | None = None,
    kind: str = "string",
    options: int = 4,
    unknown: bool = False,
    candidates: int = CANDIDATES,
    max_length: int = 20,
    alphabet: str = "a-z0-9._-",
    length: float | None = None,
    random: bool = False,
    collect: str = "once",
    alpha: float = ALPHA,
) -> Plan:
    """Recommend parameters for a question, and predict what they will show.

    clients, epsilon, detect : two of the three; detect is a frequency that is to be found (half the
        time), ε is that of one report, or with collect="repeatedly" of all reports about one value
    kind : "string", "choice" with this many `options`, or "boolean"
    unknown : nobody lists the strings; else the analyst lists this many `candidates`
    max_length, alphabet : of unknown strings, as in a survey; length : of a typical one, half of
        max_length if not given; random : their characters follow no pattern, unlike words

    >>> found = plan(clients=100_000, epsilon=4.0, kind="boolean")
    >>> round(found.threshold, 4), found.best.bytes
    (0.0007, 1)
    """
    if sum(given is not None for given in (clients, epsilon, detect)) != 2:
        raise InputError("expected two of clients, epsilon and detect; the third follows")
    _check(clients, epsilon, detect, candidates, length)
    ways = _ways(kind, options, unknown, max_length, alphabet, collect)
    typical = max_length / 2 if length is None else length
    aim = _Aim(collect, candidates, typical, random, alpha)
    if epsilon is None:
        assert clients is not None and detect is not None
        epsilon = _least_epsilon(ways, aim, clients, detect)
    if clients is None:
        assert detect is not None
        # Every threshold falls with the root of the number of clients.
        one = min(aim.threshold(way, epsilon, 1.0) for way in ways)
        clients = math.ceil((one / detect) ** 2)
    return _plan(ways, aim, float(epsilon), int(clients), detect, _asked(kind, unknown, options))


def _plan(
    ways: Sequence[_Way], aim: _Aim, epsilon: float, clients: int, wanted: float | None, asked: str
) -> Plan:
    ordered = sorted(ways, key=lambda way: aim.threshold(way, epsilon, clients))
    best, strings = ordered[0], ordered[0].kind == "string"
    weights = POPULATIONS if strings else {}
    epsilons = tuple(sorted({*EPSILONS, round(epsilon, 6)}))
    sizes = tuple(sorted({max(round(clients * 10.0**i), 1) for i in range(-2, 3)}))
    thresholds = np.zeros((len(epsilons), len(sizes)))
    found = np.zeros((*thresholds.shape, len(weights)))
    for cell in np.ndindex(thresholds.shape):
        setting = epsilons[cell[0]], sizes[cell[1]]
        thresholds[cell] = threshold = aim.threshold(best, *setting)
        spread = aim.spread(best, *setting)
        found[cell] = [expected_found(w, threshold, spread) for w in weights.values()]
    return Plan(
        question=asked,
        collect=aim.collect,
        clients=clients,
        epsilon=epsilon,
        wanted=wanted,
        alpha=aim.alpha,
        designs=tuple(_design(way, aim, epsilon, clients, weights) for way in ordered),
        epsilons=epsilons,
        sizes=sizes,
        thresholds=thresholds,
        populations=tuple(weights),
        found=found,
        draft=best.draft(epsilon, aim.collect).toml(),
    )


def _design(
    way: _Way, aim: _Aim, epsilon: float, clients: int, weights: Mapping[str, list[float]]
) -> QuestionDesign:
    draft = way.draft(epsilon, aim.collect)
    survey = draft.survey()
    question = survey.questions[0]
    threshold, spread = aim.threshold(way, epsilon, clients), aim.spread(way, epsilon, clients)
    groups, _ = question.protocol.groups
    return QuestionDesign(
        # In a small domain every string is looked at, and nobody reports a prefix.
        name=way.name.replace("prefixes", "whole strings") if groups == 1 else way.name,
        threshold=threshold,
        noise_sd=spread,
        once=question.loss.per_report,
        forever=question.loss.in_total,
        bytes=survey.body_size,
        parameters=question.protocol.canonical(),
        found={name: expected_found(w, threshold, spread) for name, w in weights.items()},
        toml=draft.questions[0].toml(),
    )


def _least_epsilon(ways: Sequence[_Way], aim: _Aim, clients: float, detect: float) -> float:
    """The least ε, in hundredths, at which some way finds the frequency."""

    def finds(epsilon: float) -> bool:
        return any(aim.threshold(way, epsilon, clients) <= detect for way in ways)

    low, high = round(100 * LEAST), round(100 * MOST)
    if not finds(MOST):
        least = min(aim.threshold(way, MOST, clients) for way in ways)
        raise InputError(
            f"{clients:,.0f} clients do not show a frequency of {detect:g} at any ε up to "
            f"{MOST:g}: {least:.2g} at best; ask more clients, or for a larger frequency"
        )
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if finds(middle / 100) else (middle + 1, high)
    return high / 100


def _ways(
    kind: str, options: int, unknown: bool, max_length: int, alphabet: str, collect: str
) -> tuple[_Way, ...]:
    if kind == "boolean":
        return (_Way("one bit", kind, {}),)
    if kind == "choice":
        if options < 2:
            raise InputError(f"expected 2 options or more, got {options}")
        names = [f"option {i + 1}" for i in range(options)]
        return (_Way("one bit an option", kind, {"options": names}),)
    if kind != "string":
        raise InputError(f"expected kind string, choice or boolean, got {kind!r}")
    if not unknown:
        return (_Way("Bloom filter", kind, {}),)
    even = max_length + max_length % 2
    prefixes = {
        "protocol": ("prefixes", "# each client reports one prefix or the whole"),
        "max_length": (max_length, "# longer strings are cut"),
        "alphabet": (alphabet, "# other characters are reported as one unknown symbol"),
    }
    note = "# the full string and two of its bigrams, each with a third of ε"
    ngrams = {**prefixes, "protocol": ("ngrams", note), "max_length": even}
    ways = [_Way("prefixes, Bloom filter", kind, {}, prefixes)]
    if collect == "once":
        hashed = {"mechanism": ("localhash", "# a report is one number")}
        ways.insert(0, _Way("prefixes, local hashing", kind, hashed, prefixes))
    if even >= 4:
        ways.append(_Way("n-grams, Bloom filter", kind, {}, ngrams))
    return tuple(ways)


def _asked(kind: str, unknown: bool, options: int) -> str:
    if kind == "string":
        return "strings that nobody listed" if unknown else "strings on a list"
    return f"a choice of {options}" if kind == "choice" else "a yes or no"


def _check(
    clients: float | None,
    epsilon: float | None,
    detect: float | None,
    candidates: int,
    length: float | None,
) -> None:
    if clients is not None and not 1 <= clients < 1e12:
        raise InputError(f"expected 1 to 10^12 clients, got {clients:g}")
    if epsilon is not None and not LEAST <= epsilon <= MOST:
        raise InputError(f"expected an ε from {LEAST} to {MOST:g}, got {epsilon:g}")
    if detect is not None and not 0 < detect < 1:
        raise InputError(f"expected a frequency between 0 and 1 to detect, got {detect:g}")
    if candidates < 1:
        raise InputError(f"expected 1 candidate or more, got {candidates}")
    if length is not None and length <= 0:
        raise InputError(f"expected a length above 0, got {length:g}")
