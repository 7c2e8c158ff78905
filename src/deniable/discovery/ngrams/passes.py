"""One pass of the default reading of n-grams: what the gram reports show, and the search in it.

A pass looks for strings of about one frequency f. `power_of` follows strings that took no part in
a search through its passes, for the detection threshold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from deniable.discovery.ngrams.coupling import Coupling, Scorer, couple
from deniable.discovery.ngrams.gram_reports import GramReports, Position
from deniable.discovery.ngrams.gram_search import MIN_STRINGS_TO_LEARN, GramBeam, Neighbours, search
from deniable.discovery.ngrams.grams import Pair, assemble, compatible, row_bits
from deniable.discovery.shared.string_models import FOLDS
from deniable.discovery.shared.strings import Rows, StringArrays, random_rows
from deniable.formatting import counted
from deniable.inference.power.gram_search import (
    GramSearch,
    PassLimits,
    gram_prior,
    own_share,
    pair_gain,
)
from deniable.inference.power.prefix_search import FOLLOWED
from deniable.kernels.array_types import Floats, Indices, Mask
from deniable.protocols import NGrams

MAX_PAIRS = 4_000_000
"""Pairs of grams, over all pairs of positions; it bounds the grams of a position."""
MAX_GRAMS = 512
"""Grams of a position."""
WIDTH = 10_000
"""Strings that a pass keeps and tests, per position."""
MODEL_ERROR = 0.03
"""Relative error of the effect of a known string on a pair, which is the mean of a model."""
SHARED_DEVIATIONS = 3.0
"""Standard errors above which the estimate of a gram shows that other strings have it, too."""


@dataclass(frozen=True, eq=False)
class GramTables:
    """What the gram reports show.

    kept : grams kept at each position; scorers : their factors in a report
    couplings : excesses of each pair of positions
    fits : bool[A, B], which grams of each pair of positions fit into one string
    """

    protocol: NGrams
    kept: tuple[Position, ...]
    scorers: list[Scorer]
    couplings: dict[Pair, Coupling]
    fits: dict[Pair, Mask]

    @classmethod
    def of(cls, reports: GramReports) -> GramTables:
        """Couple the most frequent grams of every two positions."""
        protocol = reports.protocol
        pairs = protocol.positions * (protocol.positions - 1) // 2
        most = min(MAX_GRAMS, max(64, int((MAX_PAIRS / pairs) ** 0.5)))
        # A gram whose estimate is not positive costs time and hardly ever belongs to a string.
        kept = tuple(
            p.take(np.flatnonzero(p.marginal.identified & (p.marginal.estimate > 0))[:most])
            for p in reports.positions
        )
        scorers, couplings = couple(reports, kept)
        fits = {
            (g, h): compatible(protocol, g, h, kept[g].grams, kept[h].grams) for g, h in couplings
        }
        return cls(protocol, kept, scorers, couplings, fits)

    @property
    def gap(self) -> str:
        """Say why too few reports have come in to put strings together; empty if enough have."""
        too_few = "too few reports to put strings together: "
        if missing := sum(len(each.grams) == 0 for each in self.kept):
            return f"{too_few}{missing} of {counted(len(self.kept), 'position')} show no n-gram"
        pairs = len(self.kept) * (len(self.kept) - 1) // 2
        if missing := pairs - len(self.couplings):
            shown = counted(pairs, "pair")
            return f"{too_few}no client reported on {missing} of {shown} of positions"
        return ""

    def adjacent(self, g: int, h: int) -> bool:
        """Whether the grams of position h begin where those of g end."""
        return self.kept[h].start - self.kept[g].start == self.protocol.gram

    def neighbours(self, known: Rows) -> Neighbours | None:
        """Return what known strings teach about adjacent grams, if they are enough."""
        if len(known) < MIN_STRINGS_TO_LEARN:
            return None
        return Neighbours(self.protocol.alphabet, known, self.protocol.gram)

    def strings(self, beam: GramBeam) -> Rows:
        """Return the strings of a beam."""
        grams = [each.grams[beam.chosen[:, g]] for g, each in enumerate(self.kept)]
        return assemble(self.protocol, grams)


@dataclass(frozen=True, eq=False)
class KnownStrings(StringArrays):
    """Strings found so far, with their frequencies and the variances of these."""

    frequency: Floats
    variance: Floats

    @classmethod
    def of(cls, reports: GramReports, rows: Rows) -> KnownStrings:
        """Estimate strings from the full-string reports."""
        if len(rows) == 0:
            return cls(rows, np.empty(0), np.empty(0))
        marginal = reports.estimate(rows)
        frequency = np.clip(np.nan_to_num(marginal.estimate), 0.0, 1.0)
        return cls(rows, frequency, marginal.standard_error**2 + (MODEL_ERROR * frequency) ** 2)


@dataclass(frozen=True, eq=False)
class PassTables:
    """What known strings leave of the gram reports, for the search of strings of frequency f.

    left : share of clients that the known strings leave
    unexplained : float64[A], what they leave of each gram, for each position
    excess, information : float64[A, B], what they leave of each pair of grams
    neighbours : what they teach about adjacent grams, if they are enough
    """

    tables: GramTables
    f: float
    left: float
    unexplained: list[Floats]
    excess: dict[Pair, Floats]
    information: dict[Pair, Floats]
    neighbours: Neighbours | None

    @classmethod
    def of(cls, tables: GramTables, known: KnownStrings, f: float) -> PassTables:
        """Remove the known strings."""
        left = max(1.0 - float(known.frequency.sum()), 2 * f, 0.02)
        unexplained: list[Floats] = []
        seen: list[Floats] = []
        for kept, scorer in zip(tables.kept, tables.scorers, strict=True):
            place = kept.places(known.rows)
            taken = np.bincount(
                place[place >= 0], known.frequency[place >= 0], minlength=len(kept.grams)
            )
            unexplained.append(np.maximum(kept.marginal.estimate, 0.0) - taken)
            seen.append(scorer.response(row_bits(kept.mechanism, kept.grams_of(known.rows))))
        excess, information = {}, {}
        for (g, h), pair in tables.couplings.items():
            # E excess = sum over strings of f C_g C_h less the product of means: remove what known
            # strings explain, shared bits included, and the independence of the other strings.
            explained = (seen[g] * known.frequency) @ seen[h].T
            other_left = pair.left - seen[g] @ known.frequency
            other_right = pair.right - seen[h] @ known.frequency
            excess[g, h] = pair.excess - explained + np.outer(pair.left, pair.right)
            excess[g, h] -= np.outer(other_left, other_right) / left
            doubt = (seen[g] ** 2 * known.variance) @ (seen[h] ** 2).T
            information[g, h] = 1.0 / (1.0 / pair.information + doubt)
        neighbours = tables.neighbours(known.rows)
        return cls(tables, f, left, unexplained, excess, information, neighbours)

    def search(self) -> GramBeam:
        """Search for strings of frequency f."""
        tables, f, left = self.tables, self.f, self.left
        prior = [
            gram_prior(each, kept.marginal.standard_error**2, f, left, kept.possible)
            for each, kept in zip(self.unexplained, tables.kept, strict=True)
        ]
        own = [own_share(each, left) for each in self.unexplained]
        gain = {}
        for (g, h), excess in self.excess.items():
            nats = pair_gain(excess, self.information[g, h], f * np.outer(own[g], own[h]))
            if self.neighbours is not None and tables.adjacent(g, h):
                nats += self.neighbours.follows(tables.kept[g].grams, tables.kept[h].grams)
            gain[g, h] = np.where(tables.fits[g, h], nats, -np.inf).astype(np.float32)
        beam = search([p.astype(np.float32) for p in prior], gain, WIDTH * len(prior))
        # f of the remaining share holds the gram of each position, but left / f strings may do so.
        return replace(beam, score=beam.score + np.log(left / f))


def power_of(
    reports: GramReports, limits: Sequence[PassLimits], tables: PassTables, found: Rows
) -> GramSearch:
    """Return where the limits of the passes lay for strings like those found.

    If nothing was found: strings of half the maximum length, of random characters.

    tables : what the found strings leave
    """
    kept = tables.tables.kept
    rows = found if len(found) else random_rows(reports.protocol)
    each = np.arange(FOLLOWED) % len(rows)
    place = [position.places(rows) for position in kept]
    error = np.stack([_at(k.marginal.standard_error, p) for k, p in zip(kept, place, strict=True)])
    left = np.stack([_at(x, p) for x, p in zip(tables.unexplained, place, strict=True)])
    # Either other strings hold the gram, too, or what is left is noise.
    is_shared = (np.stack(place) >= 0) & (left > SHARED_DEVIATIONS * error)
    excess, information = {}, {}
    for (g, h), table in tables.excess.items():
        both = is_shared[g] & is_shared[h]
        excess[g, h] = np.where(both, _at(table, place[g], place[h]), 0.0)[each]
        information[g, h] = np.full(FOLLOWED, _median(tables.information[g, h]))
    typical = np.array([[_median(position.marginal.standard_error)] for position in kept])
    return GramSearch(
        passes=tuple(limits),
        error=np.where(is_shared, error, typical)[:, each],
        shared=np.where(is_shared, left, 0.0)[:, each],
        least_gram=np.array([position.marginal.estimate.min(initial=0.0) for position in kept]),
        excess=excess,
        information=information,
        follows=_held_out_follows(tables.tables, rows)[:, each],
        possible=kept[0].possible,
        expected_error=reports.string_error,
    )


def _held_out_follows(tables: GramTables, rows: Rows) -> Floats:
    """float64[k, n]: what other strings teach about the gram after that of each position."""
    out = np.zeros((len(tables.kept), len(rows)))
    for fold in range(FOLDS):
        chosen = np.flatnonzero(np.arange(len(rows)) % FOLDS == fold)
        neighbours = tables.neighbours(np.delete(rows, chosen, axis=0))
        if neighbours is None or not len(chosen):
            continue
        grams = [position.grams_of(rows[chosen]) for position in tables.kept]
        for g in range(len(grams) - 1):
            if tables.adjacent(g, g + 1):
                out[g, chosen] = neighbours.follows(grams[g], grams[g + 1]).diagonal()
    return out


def _median(table: Floats) -> float:
    return float(np.median(table)) if table.size else 1.0


def _at(table: Floats, *places: Indices) -> Floats:
    """Return the entries at these places; where one is −1, the median of the table."""
    missing = np.logical_or.reduce([place < 0 for place in places])
    out = np.full(len(missing), _median(table))
    out[~missing] = table[tuple(place[~missing] for place in places)]
    return out
