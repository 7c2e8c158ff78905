"""pair_counts: reports of two questions as counts, made in one pass, added up, and kept instead.

What is counted does not depend on the candidates, which may be found later. A question reported by
local hashing counts as one bit a number.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import chain, islice
from math import lcm, prod
from operator import add
from pathlib import Path

import numpy as np

from deniable.analysis.source import Part, Reports, Source, listed
from deniable.columns import ReportBatch
from deniable.columns.batch import numbers
from deniable.columns.partition import Partition
from deniable.compute.backend import Backend
from deniable.compute.named import default_backend
from deniable.compute.progress import Progress, reports_progress
from deniable.errors import InputError
from deniable.inference.linear.joint_counts import PairCounts
from deniable.kernels.array_types import Bytes, Indices, Integers
from deniable.kernels.counting.pair_tables import PairTables
from deniable.survey import Question, Survey

MOST_COUNTERS = 1 << 26
"""Pairs of bits over all strata that are counted: half a gigabyte."""
ROWS = 1 << 19
"""Reports counted together, so that adding up tables is little beside counting."""
IN_FLIGHT = 1 << 26
"""Counters of tables that wait to be added up: a quarter of a gigabyte, or two tables."""


@dataclass(frozen=True)
class Layout:
    """How two questions' reports are counted: a stratum is a pair of slots and a shared cohort."""

    questions: tuple[Question, Question]

    def __post_init__(self) -> None:
        width, other = self.widths
        if (counters := self.strata * width * other) > MOST_COUNTERS:
            first, second = (q.name for q in self.questions)
            raise InputError(
                f"{first!r} × {second!r} has {self.strata:,} strata of {width:,} × {other:,} pairs "
                f"of bits: {counters:,} counters, expected at most {MOST_COUNTERS:,}; associate "
                "the reports themselves, without from_counts"
            )

    @property
    def widths(self) -> tuple[int, int]:
        """Bits of each question that are counted."""
        first, second = (q.protocol.mechanisms[0].outcomes for q in self.questions)
        return first, second

    @property
    def shape(self) -> tuple[int, int, int]:
        """Slots of each question's first part, which speaks of whole values; shared cohorts."""
        first, second = (q.protocol.parts[0] for q in self.questions)
        cohorts = lcm(*(q.protocol.mechanisms[0].cohorts for q in self.questions))
        return len(first.slots), len(second.slots), cohorts

    @property
    def strata(self) -> int:
        """How many strata."""
        return prod(self.shape)

    def own(self, side: int) -> Indices:
        """intp[S], each stratum's stratum among those of one question: slot·cohorts + cohort."""
        places = np.unravel_index(np.arange(self.strata), self.shape)
        mechanism = self.questions[side].protocol.mechanisms[0]
        own = places[side] * mechanism.cohorts + mechanism.own_cohort(places[2])
        return np.asarray(own, np.intp)

    def stratum(self, batch: ReportBatch) -> Integers:
        """integers[N], of each report."""
        _, slots, cohorts = self.shape
        cohort = batch.cohort
        if cohorts < batch.survey.cohorts:
            cohort = cohort % np.uint16(cohorts)
        if self.strata == cohorts:
            return cohort
        x, y = (batch.column(q.name).slot.astype(np.int64) for q in self.questions)
        return np.asarray((x * slots + y) * cohorts + cohort)


@reports_progress
def pair_counts(
    survey: Survey,
    reports: Reports | PairCounts | Iterable[Part | PairCounts],
    questions: Sequence[str],
    *,
    executor: Backend | None = None,
    progress: Progress | None = None,
) -> PairCounts:
    """Count how often bits of two questions were set together: all that `associate` needs of them.

    reports : as for `decode`; or counts made before, or .npz files of such; or any number of these.
    Counts add, so shards may be counted anywhere, at any time, and their reports deleted.
    """
    if len(questions) != 2 or questions[0] == questions[1]:
        raise InputError(
            f"expected two different questions to count together, got {list(questions)}"
        )
    layout = Layout((survey.question(questions[0]), survey.question(questions[1])))
    made, rest = _sorted_out(reports)
    for counts in made:
        _check(counts, survey, layout)
    if rest or not made:
        source = Source(rest, survey)
        found = _counted(layout, survey, source, executor or default_backend())
        made.append(replace(found, origin=source.origin))
    return reduce(add, made)


def _sorted_out(reports: object) -> tuple[list[PairCounts], list[Part]]:
    """Counts, loaded, and everything else."""
    made: list[PairCounts] = []
    rest: list[Part] = []
    for part in listed(reports):
        if isinstance(part, PairCounts):
            made.append(part)
        elif isinstance(part, str | Path) and Path(part).suffix == ".npz":
            made.append(PairCounts.load(part))
        else:
            rest.append(part)
    return made, rest


def _check(counts: PairCounts, survey: Survey, layout: Layout) -> None:
    first, second = layout.questions
    expected = (survey.sha256.hex(), (first.name, second.name))
    if (counts.survey, counts.questions) != expected:
        raise InputError(
            f"expected counts of {first.name!r} × {second.name!r} of {survey!r}, survey "
            f"{expected[0][:12]}, got {counts!r}, survey {counts.survey[:12]}"
        )
    shape = (layout.strata, *layout.widths)
    if counts.both.shape != shape:
        raise InputError(f"expected counts of shape {shape}, got {counts.both.shape}")


def _count(layout: Layout, parts: list[Partition]) -> PairTables:
    """The counters of these reports."""
    first, second = layout.questions
    tables = PairTables.empty(layout.strata, layout.widths)
    for batch in (part.load() for part in parts):
        tables.add(_outcomes(first, batch), _outcomes(second, batch), layout.stratum(batch))
    return tables


def _outcomes(question: Question, batch: ReportBatch) -> Bytes:
    """Packed bits, u8[N, B]; a number is the one bit that it counts."""
    column = batch.column(question.name)
    if column.mechanism.bound is None:
        return column.bits
    sent = numbers(column.bits)
    one = np.zeros((len(sent), (column.mechanism.bound + 7) // 8), np.uint8)
    one[np.arange(len(sent)), sent >> 3] = np.uint8(1) << (sent & 7).astype(np.uint8)
    return one


def _counted(layout: Layout, survey: Survey, source: Source, executor: Backend) -> PairCounts:
    """Everything in the source."""
    strata, (k, m) = layout.strata, layout.widths
    shapes = {"both": (strata, k, m), "first": (strata, k), "second": (strata, m), "total": strata}
    sums = {name: np.zeros(shape, np.int64) for name, shape in shapes.items()}
    groups = source.groups(ROWS)
    at_once = max(2, IN_FLIGHT // sums["both"].size)
    for group in groups:
        some = chain([group], islice(groups, at_once - 1))
        for part in executor.map(partial(_count, layout), some):
            for name, array in sums.items():
                array += getattr(part, name)
    x, y = layout.questions
    return PairCounts(survey.sha256.hex(), (x.name, y.name), **sums)
