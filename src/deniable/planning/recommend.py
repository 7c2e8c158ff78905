"""plan: from ε, the number of clients and what is asked, to parameters and predictions.

Two of ε, the number of clients and the frequency to be found are given; the third follows. Every
design that can ask the question is predicted at that ε, through the survey file that would ask it,
so a plan promises only what the rule of `survey.defaults` gives.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
    """A design whose ε is still open. localhash where collected once: a report is one number.

    predict : the smallest frequency that a question of so many clients shows
    """

    kind: str
    collect: str
    predict: Callable[[Question, float], float]
    name: str = ""
    settings: Mapping[str, object] = field(default_factory=dict)
    dictionary: Mapping[str, object] | None = None

    def draft(self, epsilon: float) -> Draft:
        """The survey that asks this question alone."""
        asked = DraftQuestion(
            "answer", self.kind, epsilon, settings=self.settings, dictionary=self.dictionary
        )
        return Draft("plan", (asked,), collect=self.collect)

    def threshold(self, epsilon: float, clients: float) -> float:
        """The smallest frequency that it shows."""
        return self.predict(self.draft(epsilon).survey().questions[0], clients)

    def spread(self, epsilon: float, clients: float) -> float:
        """Standard deviation of the estimate that decides."""
        question = self.draft(epsilon).survey().questions[0]
        return noise_sd(question.protocol.mechanisms[0], clients)


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
    typical = max_length / 2 if length is None else length
    if unknown and kind == "string":
        predict = partial(discoverable, length=typical, random=random, alpha=alpha)
    else:
        predict = partial(detectable, candidates=candidates, alpha=alpha)
    ways = _ways(_Way(kind, collect, predict), options, unknown, max_length, alphabet)
    if epsilon is None:
        assert clients is not None and detect is not None
        epsilon = _least_epsilon(ways, clients, detect)
    if clients is None:
        assert detect is not None
        # Every threshold falls with the root of the number of clients.
        clients = math.ceil((min(way.threshold(epsilon, 1.0) for way in ways) / detect) ** 2)
    epsilon, clients = float(epsilon), int(clients)
    ordered = sorted(ways, key=lambda way: way.threshold(epsilon, clients))
    best = ordered[0]
    weights = POPULATIONS if kind == "string" else {}
    epsilons = tuple(sorted({*EPSILONS, round(epsilon, 6)}))
    sizes = tuple(sorted({max(round(clients * 10.0**i), 1) for i in range(-2, 3)}))
    thresholds = np.zeros((len(epsilons), len(sizes)))
    found = np.zeros((*thresholds.shape, len(weights)))
    for cell in np.ndindex(thresholds.shape):
        setting = epsilons[cell[0]], sizes[cell[1]]
        thresholds[cell] = threshold = best.threshold(*setting)
        spread = best.spread(*setting)
        found[cell] = [expected_found(w, threshold, spread) for w in weights.values()]
    return Plan(
        question=_asked(kind, unknown, options),
        collect=collect,
        clients=clients,
        epsilon=epsilon,
        wanted=detect,
        alpha=alpha,
        designs=tuple(_design(way, epsilon, clients, weights) for way in ordered),
        epsilons=epsilons,
        sizes=sizes,
        thresholds=thresholds,
        populations=tuple(weights),
        found=found,
        draft=best.draft(epsilon).toml(),
    )


def _design(
    way: _Way, epsilon: float, clients: int, weights: Mapping[str, list[float]]
) -> QuestionDesign:
    draft = way.draft(epsilon)
    survey = draft.survey()
    question = survey.questions[0]
    threshold, spread = way.threshold(epsilon, clients), way.spread(epsilon, clients)
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


def _least_epsilon(ways: Sequence[_Way], clients: float, detect: float) -> float:
    """The least ε, in hundredths, at which some way finds the frequency."""

    def finds(epsilon: float) -> bool:
        return any(way.threshold(epsilon, clients) <= detect for way in ways)

    low, high = round(100 * LEAST), round(100 * MOST)
    if not finds(MOST):
        least = min(way.threshold(MOST, clients) for way in ways)
        raise InputError(
            f"{clients:,.0f} clients do not show a frequency of {detect:g} at any ε up to "
            f"{MOST:g}: {least:.2g} at best; ask more clients, or for a larger frequency"
        )
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if finds(middle / 100) else (middle + 1, high)
    return high / 100


def _ways(way: _Way, options: int, unknown: bool, max_length: int, alphabet: str) -> list[_Way]:
    """Every design that can ask the question."""
    if way.kind == "boolean":
        return [replace(way, name="one bit")]
    if way.kind == "choice":
        if options < 2:
            raise InputError(f"expected 2 options or more, got {options}")
        names = [f"option {i + 1}" for i in range(options)]
        return [replace(way, name="one bit an option", settings={"options": names})]
    if way.kind != "string":
        raise InputError(f"expected kind string, choice or boolean, got {way.kind!r}")
    if not unknown:
        return [replace(way, name="Bloom filter")]
    even = max_length + max_length % 2
    prefixes = {
        "protocol": ("prefixes", "# each client reports one prefix or the whole"),
        "max_length": (max_length, "# longer strings are cut"),
        "alphabet": (alphabet, "# other characters are reported as one unknown symbol"),
    }
    note = "# the full string and two of its bigrams, each with a third of ε"
    ngrams = {**prefixes, "protocol": ("ngrams", note), "max_length": even}
    ways = [replace(way, name="prefixes, Bloom filter", dictionary=prefixes)]
    if way.collect == "once":
        hashed = {"mechanism": ("localhash", "# a report is one number")}
        ways.insert(0, replace(ways[0], name="prefixes, local hashing", settings=hashed))
    if even >= 4:
        ways.append(replace(way, name="n-grams, Bloom filter", dictionary=ngrams))
    return ways


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
