"""The result of `discover`: strings that nobody listed, and how they were found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from deniable.formatting import Columns, counted, percent, text_table, visible
from deniable.kernels.array_types import Bytes, Floats
from deniable.results.base import Provenance, Result
from deniable.results.fit_check import FitCheck
from deniable.results.marginal import Measured
from deniable.results.rows import Rows, ValueRow

MAX_NAMED = 5
"""Strings that a note names."""


@dataclass(frozen=True)
class Stage:
    """One stage of a search.

    Parameters
    ----------
    name : str
        Name of the stage.
    kept : int
        Number of strings, n-grams or reports that it kept.
    dropped : int
        Number that it dropped.
    seconds : float
        Time that it took.
    note : str, default ""
        Further details.

    Examples
    --------
    >>> Stage("test", kept=3, dropped=28, seconds=0.02).kept
    3
    """

    name: str
    kept: int
    dropped: int
    seconds: float
    note: str = ""


@dataclass(frozen=True, repr=False)
class GramGraph:
    """The graph of n-grams that the paper's algorithm searches for cliques.

    Parameters
    ----------
    labels : tuple of tuple of str
        The n-grams at each position; "·" stands for the end of a string.
    edges : tuple of (int, int, int, int)
        Pairs of n-grams that occur together: position and index of the first, position and index of
        the second.
    weights : tuple of float
        Estimated joint frequency of each edge.
    cliques : tuple of tuple of int
        Candidate strings: the index of one n-gram per position.

    Examples
    --------
    >>> graph = GramGraph((("ca", "do"), ("t·", "g·")), ((0, 0, 1, 0),), (0.4,), ((0, 0),))
    >>> "".join(graph.labels[g][i] for g, i in enumerate(graph.cliques[0]))
    'cat·'
    """

    labels: tuple[tuple[str, ...], ...]
    edges: tuple[tuple[int, int, int, int], ...]
    weights: tuple[float, ...]
    cliques: tuple[tuple[int, ...], ...]

    def __repr__(self) -> str:
        positions, edges = counted(len(self.labels), "position"), counted(len(self.edges), "edge")
        return f"<GramGraph {positions}, {edges}, {counted(len(self.cliques), 'clique')}>"


@dataclass(frozen=True, eq=False, repr=False)
class Discovery(Rows[ValueRow], Result):
    r"""Strings that were discovered without a list of candidates, most common first.

    Parameters
    ----------
    strings : tuple of str
        The strings. U+FFFD stands for a character outside the alphabet; bytes of a character that
        was cut at the maximum length are written as \xce.
    symbols : ndarray of uint8, shape (strings, max_length)
        The same strings as symbols of the survey's alphabet.
    estimate : ndarray of float64, shape (strings,)
        Estimated share of all clients that hold each string. Near the detection threshold only
        strings that happened to come out high are found, so that their estimates are shrunk.
    standard_error : ndarray of float64, shape (strings,)
        Standard errors of the estimates.
    low, high : ndarray of float64, shape (strings,)
        Ends of the 95% confidence intervals, which allow for the fact that the string was found.
    p_value : ndarray of float64, shape (strings,)
        One-sided p-values of "no client holds this string", before the correction. They come from
        reports that had no part in proposing the string.
    evidence : ndarray of float64, shape (strings,)
        Strength of the evidence by which the search proposed each string.
    level : ndarray of float64, shape (strings,)
        Significance level that each p-value had to stay below.
    evidence_name : str
        Scale of `evidence`.
    candidates : int
        Number of candidate strings that were tested.
    correction : str
        How the tests of all candidates share the significance level, in words.
    truncation : str
        What the search left out because it reached a limit; empty if nothing.
    stages : tuple of Stage
        Stages of the search, in order.
    detection_threshold : float
        Share of clients at which a string is discovered half of the time. It holds for a string
        like the discovered ones that is not among them; if nothing was discovered, for random
        characters. The search is followed with all of its limits, except for `reading="paper"`,
        where it is that of the last test alone.
    mass_found : Measured
        Share of clients that hold a discovered string.
    mass_unexplained : Measured
        Share of the other clients.
    mass_at_end : Measured or None
        Share of clients whose string has the maximum length, so that it may have been cut; None if
        it was not measured. With n-grams it is estimated for all clients. With prefixes the
        estimate is the share of discovered strings of that length, and the interval reaches from
        there to the share of clients that no shorter string explains.
    reports : int
        Number of reports.
    alpha : float
        Significance level: maximum probability of any false discovery.
    reading : str
        Algorithm: "prefixes", "whole strings", "fused" or "paper".
    question : str, default ""
        Name of the question.
    graph : GramGraph, optional
        Graph of n-grams, for small searches by the paper's algorithm.
    provenance : Provenance, optional
        Where the result comes from.
    fit : FitCheck, optional
        Whether the reports look as the survey promises.
    shrunk_by : ndarray of float64, shape (strings,), optional
        By how much each estimate was shrunk because its string was found near the threshold.
    tested : bool, default True
        Whether there were enough reports, clients and families to test anything. If not, nothing
        was searched for.

    Examples
    --------
    >>> import numpy as np
    >>> from deniable import Survey, discover, simulate
    >>> survey = Survey.from_toml('''
    ... name = "words"
    ... version = 1
    ... owner = "Ada"
    ... description = "Which word?"
    ... expires = 2999-12-31
    ... collect = "once"
    ... [questions.word]
    ... kind = "string"
    ... mechanism = "localhash"
    ... epsilon = 4.0
    ... dictionary = {protocol = "prefixes", max_length = 2, alphabet = "a-e"}
    ... ''')
    >>> answers = {"word": ["ab"] * 800 + ["ec"] * 200}
    >>> reports = simulate(survey, answers, rng=np.random.default_rng(1))
    >>> discovery = discover(survey, reports, "word")
    >>> discovery.strings, discovery["ab"].estimate > 0.5
    (('ab', 'ec'), True)
    """

    strings: tuple[str, ...]
    symbols: Bytes
    estimate: Floats
    standard_error: Floats
    low: Floats
    high: Floats
    p_value: Floats
    evidence: Floats
    level: Floats
    evidence_name: str
    candidates: int
    correction: str
    truncation: str
    stages: tuple[Stage, ...]
    detection_threshold: float
    mass_found: Measured
    mass_unexplained: Measured
    mass_at_end: Measured | None
    reports: int
    alpha: float
    reading: str
    question: str = ""
    graph: GramGraph | None = None
    provenance: Provenance | None = None
    fit: FitCheck | None = None
    shrunk_by: Floats = field(default_factory=lambda: np.empty(0))
    tested: bool = True

    _json_keys: ClassVar = {"correction": "paid", "truncation": "cut"}

    @property
    def names(self) -> tuple[str, ...]:
        """The strings; other results call them labels."""
        return self.strings

    def __post_init__(self) -> None:
        if self.shrunk_by.shape != self.estimate.shape:  # a result of an earlier version
            object.__setattr__(self, "shrunk_by", np.zeros(self.estimate.shape))

    @property
    def shrinkage_note(self) -> str:
        """Which estimates were shrunk, and by how much; empty if none by half a standard error.

        Returns
        -------
        str
            A sentence.
        """
        shrunk = self.shrunk_by > 0.5 * self.standard_error
        if not shrunk.any():
            return ""
        many = int(shrunk.sum()) > MAX_NAMED
        names = [
            f"{visible(name)} by {percent(float(by))}"
            for name, by in zip(self.strings, self.shrunk_by, strict=True)
        ]
        named = ", ".join(names[i] for i in np.flatnonzero(shrunk)[:MAX_NAMED])
        return (
            "Estimates shrunk because the string was found near the threshold: "
            f"{named}{', …' if many else ''}."
        )

    def _json(self) -> dict[str, object]:
        written = super()._json()
        if not self.shrunk_by.any():
            del written["shrunk_by"]  # nothing was shrunk
        return written

    def columns(self) -> Columns:
        """Return one row per string, largest estimate first.

        Returns
        -------
        dict of str to sequence
            Columns value, estimate, standard_error, low, high, p_value, evidence and shrunk_by.
        """
        named: Columns = {"value": list(self.strings)}
        for name in (
            "estimate",
            "standard_error",
            "low",
            "high",
            "p_value",
            "evidence",
            "shrunk_by",
        ):
            named[name] = getattr(self, name).tolist()
        return named

    def _keys(self) -> Sequence[str]:
        return self.strings

    def _make_rows(self) -> Iterable[ValueRow]:
        columns = {**self.columns(), "detected": [True] * len(self)}
        return map(ValueRow._make, zip(*(columns[name] for name in ValueRow._fields), strict=True))

    def summary(self) -> str:
        """Return the most important facts in a few words.

        Returns
        -------
        str
            Question, reports, discovered strings and tested candidates.
        """
        about = f"{self.question or 'discovery'}: {counted(self.reports, 'report')}"
        if not self.tested:
            return about
        found = f"{counted(len(self), 'string')} discovered"
        return f"{about}; {found} among {counted(self.candidates, 'candidate')}"

    def heading(self) -> str:
        """Return one line that summarises the result.

        Returns
        -------
        str
            Reports, discovered strings, their share of clients, and what the search left out.
        """
        if not self.tested:
            return self.summary()
        text = f"{self.summary()}, held by {self.mass_found} of clients"
        return f"{text}; incomplete: {self.truncation}" if self.truncation else text

    def stage_table(self) -> str:
        """Return the stages of the search as a plain table.

        Returns
        -------
        str
            One line per stage: name, kept, dropped, seconds and note.
        """
        names = ("name", "kept", "dropped", "seconds", "note")
        return text_table("stages", {n: [getattr(s, n) for s in self.stages] for n in names})
