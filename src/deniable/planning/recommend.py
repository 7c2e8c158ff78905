"""The verb `plan`: recommend parameters for a question, and predict what its reports will show.

Two of ε, the number of clients and the frequency to detect are given; the third follows. Each
design that can ask the question is predicted through the survey file that would ask it, so a plan
promises only what the defaults of that file give.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from deniable.errors import InputError, check_number, did_you_mean
from deniable.kernels.array_types import Floats
from deniable.mechanisms.subset import MAX_SUBSET_OPTIONS
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
from deniable.survey.detection import MIN_CLIENTS, MIN_REPORTS, NOT_TESTED
from deniable.survey.draft import MAX_EPSILON, Draft, DraftQuestion

MIN_EPSILON = 0.05
"""Smallest ε that plans cover."""
FIXED_POINT_STEPS = 12
"""Steps from 10^12 clients to the number that is needed; half as many are usually enough."""
TABLE_EPSILONS = (0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0)
"""Values of ε for which a plan tabulates thresholds."""
SHAPES: dict[str, Callable[[int], Floats]] = {
    "Zipf(1)": zipf,
    "Zipf(1.2)": partial(zipf, s=1.2),
    "exponential(25)": exponential,
}
POPULATIONS: dict[str, list[float]] = {
    f"{n:,} {name}": shape(n).tolist() for n in (100, 1000) for name, shape in SHAPES.items()
}
"""Frequencies of the strings in each population for which discoveries are predicted."""


@dataclass(frozen=True)
class OpenDesign:
    """A design of a question whose ε is still open.

    Parameters
    ----------
    kind : str
        Kind of the question.
    collect : str
        "once" or "repeatedly".
    predict : callable
        Returns the detection threshold of a question with a number of clients.
    name : str
        Name of the design in the plan.
    settings : mapping
        Settings of the question in the survey file.
    dictionary : mapping, optional
        Settings of its dictionary; empty unless the strings are unknown.
    """

    kind: str
    collect: str
    predict: Callable[[Question, float], float]
    name: str = ""
    settings: Mapping[str, object] = field(default_factory=dict)
    dictionary: Mapping[str, object] = field(default_factory=dict)

    def draft(self, epsilon: float) -> Draft:
        """Return a survey that asks only this question."""
        asked = DraftQuestion("answer", self.kind, epsilon, self.settings, self.dictionary)
        return Draft("plan", (asked,), collect=self.collect)

    def threshold(self, epsilon: float, clients: float) -> float:
        """Return the detection threshold, as a frequency."""
        return self.predict(self.draft(epsilon).survey().questions[0], clients)

    def noise_sd(self, epsilon: float, clients: float) -> float:
        """Return the standard deviation of the estimate of a whole value."""
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
    """Recommend parameters for a question, and predict what its reports will show.

    Pass exactly two of `clients`, `epsilon` and `detect`. The third follows from them.

    Parameters
    ----------
    clients : float, optional
        Number of clients that will report.
    epsilon : float, optional
        Privacy loss ε: of one report if reports are collected once, of all reports about an
        unchanged value if they are collected repeatedly.
    detect : float, optional
        Frequency that shall be detected with a probability of one half.
    kind : {"string", "choice", "boolean", "number"}, default "string"
        Kind of the question.
    options : int, default 4
        Number of options of a choice, or of bins of a number.
    unknown : bool, default False
        Whether `discover` must find the strings, because no candidates are known.
    candidates : int, default 1000
        Number of candidates that will be tested if the strings are known.
    max_length : int, default 20
        Maximum length of unknown strings.
    alphabet : str, default "a-z0-9._-"
        Characters of unknown strings, as in a survey file.
    length : float, optional
        Length of a typical unknown string. Half of `max_length` by default.
    random : bool, default False
        Whether unknown strings are random, unlike words and addresses, whose patterns help to
        discover them.
    collect : {"once", "repeatedly"}, default "once"
        How often each client reports.
    alpha : float, default 0.05
        Significance level: maximum probability of any false detection.

    Returns
    -------
    Plan
        All designs that can ask the question, best first, with their detection thresholds;
        predictions for other ε and numbers of clients; and the draft of a survey file.

    Raises
    ------
    InputError
        If not exactly two of the three are given, an argument is out of range, or no ε up to 12
        suffices to detect the frequency.

    Examples
    --------
    >>> from deniable import plan
    >>> result = plan(clients=100_000, epsilon=4.0, kind="boolean")
    >>> round(result.threshold, 4), result.best.bytes
    (0.0007, 1)
    """
    if sum(given is not None for given in (clients, epsilon, detect)) != 2:
        raise InputError("pass exactly two of clients, epsilon and detect; the third follows")
    _check(clients, epsilon, detect, candidates, length)
    typical = max_length / 2 if length is None else length
    if unknown and kind == "string":
        predict = partial(discoverable, length=typical, random=random, alpha=alpha)
    else:
        predict = partial(detectable, candidates=candidates, alpha=alpha)
    open_design = OpenDesign(kind, collect, predict)
    designs = designs_for(open_design, options, unknown, max_length, alphabet)
    if epsilon is None:
        assert clients is not None and detect is not None
        epsilon = _smallest_epsilon(designs, clients, detect)
    if clients is None:
        assert detect is not None
        clients = _fewest_clients(designs, epsilon, detect)
    epsilon, clients = float(epsilon), int(clients)
    ordered = sorted(designs, key=lambda design: design.threshold(epsilon, clients))
    best = ordered[0]
    weights = POPULATIONS if kind == "string" else {}
    epsilons = tuple(sorted({*TABLE_EPSILONS, round(epsilon, 6)}))
    sizes = tuple(sorted({max(round(clients * 10.0**i), 1) for i in range(-2, 3)}))
    thresholds = np.zeros((len(epsilons), len(sizes)))
    found = np.zeros((*thresholds.shape, len(weights)))
    for cell in np.ndindex(thresholds.shape):
        setting = epsilons[cell[0]], sizes[cell[1]]
        threshold = best.threshold(*setting)
        thresholds[cell] = _known(threshold)
        sd = best.noise_sd(*setting)
        found[cell] = [expected_found(w, threshold, sd) for w in weights.values()]
    return Plan(
        question=describe(kind, unknown, options),
        collect=collect,
        clients=clients,
        epsilon=epsilon,
        wanted=detect,
        alpha=alpha,
        designs=tuple(_predict(design, epsilon, clients, weights) for design in ordered),
        epsilons=epsilons,
        sizes=sizes,
        thresholds=thresholds,
        populations=tuple(weights),
        found=found,
        draft=best.draft(epsilon).toml(),
    )


def _predict(
    design: OpenDesign, epsilon: float, clients: int, weights: Mapping[str, list[float]]
) -> QuestionDesign:
    """Return a design at this ε, with what it will show."""
    draft = design.draft(epsilon)
    survey = draft.survey()
    question = survey.questions[0]
    threshold, sd = design.threshold(epsilon, clients), design.noise_sd(epsilon, clients)
    groups = question.protocol.groups
    return QuestionDesign(
        # In a small domain every string is tested, and clients report whole strings only.
        name=design.name.replace("prefixes", "whole strings") if groups == 1 else design.name,
        threshold=_known(threshold),
        noise_sd=sd,
        once=question.loss.per_report,
        forever=question.loss.in_total,
        bytes=survey.body_size,
        parameters=question.protocol.canonical(),
        found={name: expected_found(w, threshold, sd) for name, w in weights.items()},
        toml=draft.questions[0].toml(),
    )


def _known(threshold: float) -> float:
    """Return a threshold; NaN if there is none, because nothing is tested."""
    return threshold if math.isfinite(threshold) else math.nan


def _fewest_clients(designs: Sequence[OpenDesign], epsilon: float, detect: float) -> int:
    """Return the smallest number of clients with which this frequency is detected."""
    design, clients = designs[0], 1e12
    least = MIN_REPORTS if design.kind == "string" else 1
    least = max(least, MIN_CLIENTS) if design.collect == "repeatedly" else least
    for _ in range(FIXED_POINT_STEPS):
        # Thresholds are nearly proportional to 1/√clients; skewness adds to them in small crowds.
        smallest = min(design.threshold(epsilon, clients) for design in designs)
        clients = max(clients * (smallest / detect) ** 2, least)
    return math.ceil(clients)


def _smallest_epsilon(designs: Sequence[OpenDesign], clients: float, detect: float) -> float:
    """Return the smallest ε, a multiple of 0.01, at which some design detects the frequency."""

    def detects(epsilon: float) -> bool:
        return any(design.threshold(epsilon, clients) <= detect for design in designs)

    if not detects(MAX_EPSILON):
        smallest = min(design.threshold(MAX_EPSILON, clients) for design in designs)
        if math.isinf(smallest):
            raise InputError(f"{NOT_TESTED}; ask more clients")
        raise InputError(
            f"a frequency of {detect:g} cannot be detected with {clients:,.0f} clients at any ε up "
            f"to {MAX_EPSILON:g}, where the detection threshold is {smallest:.2g}; ask more "
            "clients, or detect a larger frequency"
        )
    hundredths = range(round(100 * MIN_EPSILON), round(100 * MAX_EPSILON) + 1)
    return hundredths[bisect_left(hundredths, True, key=lambda i: detects(i / 100))] / 100


def designs_for(
    design: OpenDesign, options: int, unknown: bool, max_length: int, alphabet: str
) -> list[OpenDesign]:
    """Return every design that can ask the question."""
    if design.kind == "boolean":
        return [replace(design, name="one bit")]
    if design.kind == "choice":
        if options < 2:
            raise InputError(f"a choice needs at least 2 options, got {options}")
        names = [f"option {i + 1}" for i in range(options)]
        few = options <= MAX_SUBSET_OPTIONS
        return _option_designs(design, {"options": names}, "option", subsets=few)
    if design.kind == "number":
        note = "# REPLACE low and high by your range: other numbers count in the nearest bin"
        return _option_designs(design, {"low": 0, "high": (options, note), "bins": options}, "bin")
    if design.kind != "string":
        kinds = ("string", "choice", "boolean", "number")
        raise InputError(
            f"kind must be string, choice, boolean or number, got {design.kind!r}."
            f"{did_you_mean(design.kind, kinds)}"
        )
    if not unknown:
        return [replace(design, name="Bloom filter")]
    even = max_length + max_length % 2
    prefixes = {
        "protocol": ("prefixes", "# each client reports one prefix of its string, or all of it"),
        "max_length": (max_length, "# longer strings are cut"),
        "alphabet": (alphabet, "# other characters are reported as one unknown symbol"),
    }
    note = "# the full string and two of its bigrams, each with a third of ε"
    ngrams = {**prefixes, "protocol": ("ngrams", note), "max_length": even}
    hashed = {"mechanism": ("localhash", "# a report is one number")}
    filtered = {"mechanism": ("bloom", "# a report is a Bloom filter")}
    both = {"prefixes, local hashing": hashed, "prefixes, Bloom filter": filtered}
    designs = [
        replace(design, name=name, settings=settings, dictionary=prefixes)
        for name, settings in both.items()
    ]
    if even >= 4:
        designs.append(replace(design, name="n-grams, Bloom filter", dictionary=ngrams))
    return designs


def _option_designs(
    design: OpenDesign, settings: Mapping[str, object], noun: str, *, subsets: bool = True
) -> list[OpenDesign]:
    """Return the designs of a question that is answered by an option or a bin."""
    bits = {**settings, "mechanism": ("bits", f"# one noisy bit per {noun}")}
    subset = {**settings, "mechanism": ("subset", f"# a random subset of the {noun}s")}
    designs = [replace(design, name=f"one bit per {noun}", settings=bits)]
    if design.collect == "once" and subsets:
        designs.insert(0, replace(design, name="subset selection", settings=subset))
    return designs


def describe(kind: str, unknown: bool, options: int) -> str:
    """Return what the question asks for, in words."""
    if kind == "string":
        return "strings that nobody listed" if unknown else "listed strings"
    if kind == "number":
        return f"a number in {options} bins"
    return f"a choice of {options}" if kind == "choice" else "a yes-or-no question"


def _check(
    clients: float | None,
    epsilon: float | None,
    detect: float | None,
    candidates: int,
    length: float | None,
) -> None:
    """Raise InputError for an argument that is not a number, or out of range."""
    given = {"clients": clients, "epsilon": epsilon, "detect": detect, "length": length}
    if candidates < 1:
        raise InputError(f"candidates must be at least 1, got {candidates}")
    for name, value in given.items():
        if value is not None:
            check_number(name, value)
    if clients is not None and not 1 <= clients < 1e12:
        raise InputError(f"clients must be between 1 and 10^12, got {clients:g}")
    if epsilon is not None and not MIN_EPSILON <= epsilon <= MAX_EPSILON:
        raise InputError(
            f"epsilon must be between {MIN_EPSILON} and {MAX_EPSILON:g}, got {epsilon:g}"
        )
    if detect is not None and not 0 < detect < 1:
        raise InputError(f"detect must be a frequency between 0 and 1, got {detect:g}")
    if length is not None and length <= 0:
        raise InputError(f"length must be above 0, got {length:g}")
