"""Compare with pure-ldp: RAPPOR, choices, local hashing and the discovery of strings.

Both sides have the same population, the same ε and the same number of reports. Reports of pure-ldp
come from its clients. Ours come from `simulate`, which draws from the distribution of our clients;
the time per report is that of our client. The time to decode starts with the reports and ends with
the estimates, so it includes counting. The summed error is that of the estimated shares of all
values, against the shares among the simulated clients, on average over `CROWDS` crowds.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from experiments.paper.trials import Settings, bloom, survey_of

from benchmarks.peers.comparison import Comparison
from deniable import Client, Survey, decode, discover, simulate
from deniable.client import new_secret
from deniable.simulation import Population, power, random_strings, zipf

Floats = npt.NDArray[np.float64]

CLIENTS, REPORTS, CROWDS = 2_000, 20_000, 5
EPSILON = 2.0
VALUES = Population(tuple(f"value{i}" for i in range(100)), zipf(100))
FAST_HASHES = 1_000
"""Number of hash functions of fast local hashing."""
STRING_REPORTS, STRING_EPSILON, LETTERS = 100_000, 4.0, "abcdefghijklmnopqrstuvwxyz"
STRINGS = Population(random_strings(100, 6, np.random.default_rng(74)), power(100, floor=0.001))
MOST_STRINGS = 20
"""Number of strings that the prefix extending method returns; it has no test."""
SKETCH_ROWS, SKETCH_BITS = 128, 1_024
"""Hash functions, and bits per report, of the sketch with which that method counts prefixes."""
NEEDED = (
    "Rows of pure-ldp are left out: {}. They need: "
    "pip install pure-ldp statsmodels 'numpy<2.3' 'xxhash<4'"
)


@dataclass(frozen=True)
class Figures:
    """Processor seconds per report and to decode, and the summed absolute error of all shares."""

    report: float
    decode: float
    error: float


@dataclass(frozen=True)
class Peer:
    """A client and a function that returns the server of pure-ldp, which has no reports yet."""

    client: Any
    new_server: Callable[[], Any]


def ours(survey: Survey, candidates: Sequence[str] | None) -> Figures:
    """Measure our client, and our decoder on several crowds."""
    start = time.process_time()
    for _ in range(CLIENTS):
        Client(survey, secret=new_secret()).answer({"value": "value1"})
    report = (time.process_time() - start) / CLIENTS
    times, errors = [], []
    for seed in range(CROWDS + 1):  # the first one loads compiled code
        rng = np.random.default_rng(seed)
        drawn = VALUES.draw(REPORTS, rng)
        reports = simulate(survey, drawn, rng=rng)
        start = time.process_time()
        marginal = decode(survey, reports, "value", candidates)
        times.append(time.process_time() - start)
        place = {label: i for i, label in enumerate(marginal.labels or ())}
        estimate = marginal.estimate[[place[value] for value in VALUES.values]]
        errors.append(_error(estimate, drawn.codes))
    return Figures(report, float(np.mean(times[1:])), float(np.mean(errors[1:])))


def theirs(peer: Peer) -> Figures:
    """Measure a client and a server of pure-ldp, which number values from 1."""
    spent, times, errors = 0.0, [], []
    for seed in range(1, CROWDS + 1):
        codes = VALUES.draw(REPORTS, np.random.default_rng(seed)).codes
        server = peer.new_server()
        start = time.process_time()
        reports = [peer.client.privatise(code + 1) for code in codes.tolist()]
        spent += time.process_time() - start
        start = time.process_time()
        server.aggregate_all(reports)
        estimate = server.estimate_all(range(1, 101), suppress_warnings=True)
        times.append(time.process_time() - start)
        errors.append(_error(estimate / REPORTS, codes))
    return Figures(spent / CROWDS / REPORTS, float(np.mean(times)), float(np.mean(errors)))


def _error(estimate: Floats, codes: npt.NDArray[np.integer[Any]]) -> float:
    """Return the summed absolute error of estimated shares."""
    return float(np.abs(estimate - np.bincount(codes, minlength=100) / len(codes)).sum())


def _compared(work: str, mine: Figures, peer: Figures) -> Iterator[Comparison]:
    """Yield the rows of one mechanism."""
    yield Comparison(work, "time per report", mine.report, peer.report)
    yield Comparison("", "time to decode", mine.decode, peer.decode)
    yield Comparison("", "summed error", mine.error, peer.error)


# --- RAPPOR ----------------------------------------------------------------------------------


def rappor() -> Iterator[Comparison]:
    """Yield Bloom filters of 128 bits, two hashes, 8 cohorts, and permanent noise f = .5 only."""
    from pure_ldp.frequency_oracles.rappor import (  # type: ignore[import-not-found]
        RAPPORClient,
        RAPPORServer,
    )

    # p = f/2 and q = 1 - f/2 drawn afresh is what permanent noise f = .5 does to one report.
    survey = survey_of(value=bloom(p=0.25, q=0.75, cohorts=8))
    server = RAPPORServer(f=0.5, m=128, k=2, d=100, num_of_cohorts=8)
    hashes = server.get_hash_funcs()
    client = RAPPORClient(f=0.5, m=128, hash_funcs=hashes, num_of_cohorts=8)

    def new_server() -> Any:
        made = RAPPORServer(f=0.5, m=128, k=2, d=100, num_of_cohorts=8)
        made.hash_family = hashes
        return made

    zeros = (_our_zeros(survey), _their_zeros(client, hashes))
    yield Comparison("RAPPOR, f = 0.5 (pure-ldp)", "set bits sent as 0", *zeros)
    yield from _compared("", ours(survey, VALUES.values), theirs(Peer(client, new_server)))


def _our_zeros(survey: Survey) -> float:
    """Return how often our client sends a set bit as 0; f/2 = .25 is correct."""
    mechanism: Any = survey.question("value").protocol.mechanisms[0]
    sent = []
    for _ in range(CLIENTS):
        report = Client(survey, secret=new_secret()).answer({"value": "value1"})
        bits = report.answers[0].slots[0]
        for bit in set(mechanism.positions(b"value1", report.cohort)):
            sent.append((bits[bit // 8] >> bit % 8) & 1)
    return 1 - float(np.mean(sent))


def _their_zeros(client: Any, hashes: Any) -> float:
    """Return how often the client of pure-ldp sends a set bit as 0.

    Otherwise than with probability f/2, a report rules values out with certainty.
    """
    sent = []
    for _ in range(CLIENTS):
        bits, cohort = client.privatise(2)
        sent += [bits[place] for place in {hashed(str(1)) for hashed in hashes[cohort]}]
    return 1 - float(np.mean(sent))


# --- choices and listed strings ---------------------------------------------------------------


def choices() -> Iterator[Comparison]:
    """Yield a choice of 100 options: subset selection beside the encodings of pure-ldp."""
    from pure_ldp.frequency_oracles.direct_encoding import (  # type: ignore[import-not-found]
        DEClient,
        DEServer,
    )
    from pure_ldp.frequency_oracles.unary_encoding import (  # type: ignore[import-not-found]
        UEClient,
        UEServer,
    )

    settings: Settings = {"kind": "choice", "options": list(VALUES.values), "mechanism": "subset"}
    mine = ours(survey_of(value={**settings, "epsilon": EPSILON}), None)
    unary = Peer(UEClient(EPSILON, 100, use_oue=True), lambda: UEServer(EPSILON, 100, use_oue=True))
    direct = Peer(DEClient(EPSILON, 100), lambda: DEServer(EPSILON, 100))
    yield from _compared("choice, subset (pure-ldp: unary, OUE)", mine, theirs(unary))
    yield from _compared("choice, subset (pure-ldp: direct)", mine, theirs(direct))


def hashing() -> Iterator[Comparison]:
    """Yield 100 listed strings by local hashing, and its fast variant."""
    from pure_ldp.frequency_oracles.local_hashing import (  # type: ignore[import-not-found]
        FastLHClient,
        FastLHServer,
        LHClient,
        LHServer,
    )

    settings: Settings = {"kind": "string", "mechanism": "localhash", "epsilon": EPSILON}
    mine = ours(survey_of(value=settings), VALUES.values)
    plain = Peer(LHClient(EPSILON, 100, use_olh=True), lambda: LHServer(EPSILON, 100, use_olh=True))
    matrix = FastLHServer(EPSILON, 100, FAST_HASHES, use_olh=True).hash_matrix
    fast = Peer(
        FastLHClient(EPSILON, 100, FAST_HASHES, use_olh=True),
        lambda: FastLHServer(EPSILON, 100, FAST_HASHES, use_olh=True, hash_matrix=matrix),
    )
    yield from _compared("listed strings, local hashing (pure-ldp: OLH)", mine, theirs(plain))
    yield from _compared("listed strings, local hashing (pure-ldp: fast OLH)", mine, theirs(fast))


# --- unlisted strings --------------------------------------------------------------------------


def heavy_hitters() -> Iterator[Comparison]:
    """Yield the discovery of strings of six letters: prefixes beside prefix extending."""
    mine, peer = _our_discovery(), _their_discovery()
    work = "unlisted strings of 6 letters (pure-ldp: PEM)"
    yield Comparison(work, "time per report", mine[0], peer[0])
    yield Comparison("", "time to decode", mine[1], peer[1])
    yield Comparison("", "strings found", mine[2], peer[2])
    yield Comparison("", "false strings", mine[3], peer[3])


def _our_discovery() -> tuple[float, ...]:
    """Return processor seconds per report and to decode, strings found, and false strings."""
    small, survey = (
        survey_of(
            s={
                "kind": "string",
                "mechanism": "localhash",
                "epsilon": STRING_EPSILON,
                "dictionary": {"protocol": "prefixes", "max_length": length, "alphabet": "a-z"},
            }
        )
        for length in (3, 6)
    )
    rng = np.random.default_rng(1)
    drawn = STRINGS.draw(STRING_REPORTS, rng)
    short = Population(("abc", "def"), zipf(2)).draw(STRING_REPORTS, rng)
    discover(small, simulate(small, short, rng=rng), "s")  # loads compiled code
    reports = simulate(survey, drawn, rng=rng)
    start = time.process_time()
    for _ in range(CLIENTS):
        Client(survey, secret=new_secret()).answer({"s": STRINGS.values[0]})
    report = (time.process_time() - start) / CLIENTS
    start = time.process_time()
    strings = discover(survey, reports, "s").strings
    return report, time.process_time() - start, *_found(strings)


def _their_discovery() -> tuple[float, ...]:
    """Return the same of pure-ldp.

    Prefixes are counted with a sketch, because local hashing keeps an array of all possible
    prefixes. The strings are the most common ones: the search by a threshold stops extending
    prefixes after the first letter.
    """
    from pure_ldp.frequency_oracles.apple_cms import (  # type: ignore[import-not-found]
        CMSClient,
        CMSServer,
    )
    from pure_ldp.heavy_hitters.prefix_extending import (  # type: ignore[import-not-found]
        PEMClient,
        PEMServer,
    )

    oracle = CMSServer(STRING_EPSILON, SKETCH_ROWS, SKETCH_BITS)
    counting = CMSClient(STRING_EPSILON, oracle.get_hash_funcs(), SKETCH_BITS)
    form = {"epsilon": STRING_EPSILON, "start_length": 1, "max_string_length": 6,
            "fragment_length": 1, "alphabet": list(LETTERS), "index_mapper": str}  # fmt: skip
    server = PEMServer(**form, fo_server=oracle)
    client = PEMClient(**form, fo_client=counting)
    drawn = STRINGS.draw(STRING_REPORTS, np.random.default_rng(1))
    report = decoding = 0.0
    for code in drawn.codes.tolist():  # one at a time: all reports would take 0.8 GB
        start = time.process_time()
        sent = client.privatise(STRINGS.values[code])
        between = time.process_time()
        server.aggregate(sent)
        decoding += time.process_time() - between
        report += between - start
    start = time.process_time()
    strings, _ = server.find_heavy_hitters(k=MOST_STRINGS)
    decoding += time.process_time() - start
    return report / STRING_REPORTS, decoding, *_found(strings)


def _found(strings: Sequence[str]) -> tuple[int, int]:
    """Return how many strings exist, and how many do not."""
    true = len(set(strings) & set(STRINGS.values))
    return true, len(strings) - true


def rows() -> Iterator[Comparison]:
    """Yield all comparisons with pure-ldp."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its regression says that it has not converged
        for part in (rappor, choices, hashing, heavy_hitters):
            yield from part()
