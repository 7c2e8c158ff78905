"""The verb `pair_counts`: summarise the reports of two questions as counts, in one pass.

The counts do not depend on the candidates, which may be found later. Local hashing reports a number
instead of bits. It is counted as bits of which exactly one is set: the one with that number.
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
from deniable.arguments import as_names
from deniable.columns import ReportBatch
from deniable.columns.batch import packed_numbers
from deniable.columns.partition import Partition
from deniable.compute.executors import AnyExecutor, Executor, executor_of
from deniable.compute.progress import Progress, reports_progress
from deniable.errors import InputError
from deniable.inference.linear.joint_counts import PairCounts
from deniable.kernels.array_types import Bytes, Indices, Integers
from deniable.kernels.counting.pair_tables import PairTables
from deniable.survey import Question, Survey, SurveyOrPath

MAX_COUNTERS = 1 << 26
"""Maximum number of counters: pairs of bits over all strata. They take half a gigabyte."""
REPORTS_PER_TASK = 1 << 19
"""Reports counted in one task: enough that adding up the tasks' tables takes little time."""
MAX_UNSUMMED_COUNTERS = 1 << 26
"""Maximum number of counters that wait to be added up: a quarter of a gigabyte, or two tables."""


@dataclass(frozen=True)
class PairLayout:
    """How reports of two questions are counted.

    A stratum is a pair of slots, one per question, and a cohort that both questions share.
    """

    questions: tuple[Question, Question]

    def __post_init__(self) -> None:
        width, other = self.widths
        if (counters := self.strata * width * other) > MAX_COUNTERS:
            first, second = (q.name for q in self.questions)
            raise InputError(
                f"counting {first!r} × {second!r} needs {counters:,} counters "
                f"({self.strata:,} strata of {width:,} × {other:,} pairs of bits), more than the "
                f"limit of {MAX_COUNTERS:,}; associate the reports themselves, without from_counts"
            )

    @property
    def widths(self) -> tuple[int, int]:
        """Number of bits of each question."""
        first, second = (q.protocol.mechanisms[0].outcomes for q in self.questions)
        return first, second

    @property
    def slots_and_cohorts(self) -> tuple[int, int, int]:
        """Numbers of slots of the first and second question, and of shared cohorts.

        The slots are those of the first part of a protocol, which reports whole values.
        """
        first, second = (q.protocol.parts[0] for q in self.questions)
        cohorts = lcm(*(q.protocol.mechanisms[0].cohorts for q in self.questions))
        return len(first.slots), len(second.slots), cohorts

    @property
    def strata(self) -> int:
        """Number of strata, S."""
        return prod(self.slots_and_cohorts)

    def question_strata(self, side: int) -> Indices:
        """Return the stratum of one question that each stratum belongs to, intp[S].

        Strata of a question are numbered slot·cohorts + cohort.
        """
        *slot, cohort = np.unravel_index(np.arange(self.strata), self.slots_and_cohorts)
        mechanism = self.questions[side].protocol.mechanisms[0]
        own_cohort = mechanism.own_cohort(cohort)
        return np.asarray(slot[side] * mechanism.cohorts + own_cohort, np.intp)

    def stratum(self, batch: ReportBatch) -> Integers:
        """Return the stratum of each report, integers[N]."""
        _, slots, cohorts = self.slots_and_cohorts
        cohort = batch.cohort
        if cohorts < batch.survey.cohorts:
            cohort = cohort % np.uint16(cohorts)
        if self.strata == cohorts:
            return cohort
        x, y = (batch.column(q.name).slot.astype(np.int64) for q in self.questions)
        return np.asarray((x * slots + y) * cohorts + cohort)


@reports_progress
def pair_counts(
    survey: SurveyOrPath,
    reports: Reports | PairCounts | Iterable[Part | PairCounts],
    questions: Sequence[str],
    *,
    executor: AnyExecutor = None,
    progress: Progress | None = None,
) -> PairCounts:
    """Count how often each pair of bits of two questions is set in the same report.

    The counts are all that `associate` needs to estimate the joint distribution of the two
    questions. Counts of disjoint sets of reports can be added, so shards can be counted on
    different machines and at different times, and their reports deleted.

    Parameters
    ----------
    survey : Survey, str or Path
        Survey that the reports answer, or the path of its file.
    reports : ReportBatch, str, Path, Arrow table, data frame, Store, Stored, or several of these
        Reports to count. Earlier counts and .npz files of counts are added to them.
    questions : sequence of str
        Names of the two questions.
    executor : str or distributed.Client, optional
        Where the computation runs: "threads" (default), "threads:N", "dask://HOST:PORT",
        "tls://HOST:PORT" or a `distributed.Client`.
    progress : callable, optional
        Called with the name of the current stage and the fraction of it that is done.

    Returns
    -------
    PairCounts
        The counts. Save them with their `save` method, or pass them to `associate`.

    Raises
    ------
    InputError
        If a question is unknown, there would be too many counters, or earlier counts belong to
        another survey or other questions.

    Examples
    --------
    >>> import numpy as np
    >>> from deniable import Survey, associate, pair_counts, simulate
    >>> survey = Survey.from_toml('''
    ... name = "browsers"
    ... version = 1
    ... owner = "you@example.com"
    ... description = "Do you use dark mode, and do you block ads?"
    ... expires = 2999-12-31
    ... collect = "once"
    ... [questions.dark]
    ... kind = "boolean"
    ... epsilon = 2.0
    ... [questions.ads]
    ... kind = "boolean"
    ... epsilon = 2.0
    ... ''')
    >>> answers = {"dark": [True, False] * 5000, "ads": [False, False] * 5000}
    >>> monday, tuesday = (
    ...     pair_counts(
    ...         survey,
    ...         simulate(survey, answers, rng=np.random.default_rng(day)),
    ...         ["dark", "ads"],
    ...     )
    ...     for day in range(2)
    ... )
    >>> monday + tuesday
    <PairCounts dark × ads: 20,000 reports>
    >>> associate(survey, monday + tuesday, ["dark", "ads"]).table.round(1)
    array([[0. , 0.5],
           [0. , 0.5]])
    """
    survey, questions = Survey.of(survey), as_names("questions", questions)
    if len(questions) != 2 or questions[0] == questions[1]:
        raise InputError(
            f"name two different questions to count (--question twice on the command line), got "
            f"{', '.join(questions) or 'none'}"
        )
    layout = PairLayout((survey.question(questions[0]), survey.question(questions[1])))
    counts, parts = _split_counts(reports)
    for earlier in counts:
        _check_belongs(earlier, survey, layout)
    if parts or not counts:
        source = Source(parts, survey)
        new = _count_source(layout, survey, source, executor_of(executor))
        counts.append(replace(new, origin=source.origin))
    return reduce(add, counts)


def _split_counts(reports: object) -> tuple[list[PairCounts], list[Part]]:
    """Separate earlier counts, which are loaded if they are files, from reports."""
    counts: list[PairCounts] = []
    parts: list[Part] = []
    for part in listed(reports):
        if isinstance(part, PairCounts):
            counts.append(part)
        elif isinstance(part, str | Path) and Path(part).suffix == ".npz":
            counts.append(PairCounts.load(part))
        else:
            parts.append(part)
    return counts, parts


def _check_belongs(counts: PairCounts, survey: Survey, layout: PairLayout) -> None:
    """Raise InputError if counts belong to another survey or other questions."""
    first, second = layout.questions
    expected = (survey.sha256.hex(), (first.name, second.name))
    if (counts.survey, counts.questions) != expected:
        raise InputError(
            f"expected counts of {first.name} × {second.name} of {survey}, got counts of "
            f"{' × '.join(counts.questions)} of the survey with digest {counts.survey[:12]}; the "
            "survey, the questions and their order must be the same"
        )
    shape = (layout.strata, *layout.widths)
    if counts.both.shape != shape:
        raise InputError(f"expected counts of shape {shape}, got {counts.both.shape}")


def _count_task(layout: PairLayout, parts: list[Partition]) -> PairTables:
    """Count the reports of some partitions."""
    first, second = layout.questions
    tables = PairTables.empty(layout.strata, layout.widths)
    for batch in (part.load() for part in parts):
        tables.add(_packed_bits(first, batch), _packed_bits(second, batch), layout.stratum(batch))
    return tables


def _packed_bits(question: Question, batch: ReportBatch) -> Bytes:
    """Return packed bits, uint8[N, B]; for a number, only the bit with that number is set."""
    column = batch.column(question.name)
    if column.mechanism.bound is None:
        return column.bits
    number = packed_numbers(column.bits)
    bits = np.zeros((len(number), (column.mechanism.bound + 7) // 8), np.uint8)
    bits[np.arange(len(number)), number >> 3] = np.uint8(1) << (number & 7).astype(np.uint8)
    return bits


def _count_source(
    layout: PairLayout, survey: Survey, source: Source, executor: Executor
) -> PairCounts:
    """Count all reports of a source."""
    strata, (k, m) = layout.strata, layout.widths
    shapes = {"both": (strata, k, m), "first": (strata, k), "second": (strata, m), "total": strata}
    sums = {name: np.zeros(shape, np.int64) for name, shape in shapes.items()}
    tasks = source.groups(REPORTS_PER_TASK)
    tasks_at_once = max(2, MAX_UNSUMMED_COUNTERS // sums["both"].size)
    for task in tasks:
        submitted = chain([task], islice(tasks, tasks_at_once - 1))
        for tables in executor.map(partial(_count_task, layout), submitted):
            for name, array in sums.items():
                array += getattr(tables, name)
    first, second = layout.questions
    return PairCounts(survey.sha256.hex(), (first.name, second.name), **sums)
