"""Counts of two questions: all that a joint table needs to know about their reports.

They say how often a bit of one question and a bit of another were set in the same report. They do
not depend on the candidates, which may be found later, nor does their size on the number of
reports, which need not be kept. Counts can be added over shards, days and machines. Local hashing
reports a number instead of bits; it is counted as bits of which exactly one is set.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import lcm, prod
from pathlib import Path

import numpy as np

from deniable.analysis.source import Part, Reports, Source, check_distinct, listed
from deniable.arguments import as_names
from deniable.columns import ReportBatch
from deniable.columns.batch import packed_numbers
from deniable.columns.partition import Partition
from deniable.compute.executors import AnyExecutor, executor_of
from deniable.compute.progress import Progress, reports_progress
from deniable.errors import InputError
from deniable.inference.marginal.bit_counts import BitCounts
from deniable.kernels.array_types import Indices, Int64s, UInt32s, Words
from deniable.kernels.counting.pair_tables import add_pairs
from deniable.kernels.words import as_words
from deniable.results.rows import ComparedByFields
from deniable.survey import Question, Survey, SurveyOrPath

FORMAT = "deniable-counts/1"
MAX_COUNTERS = 10_000_000
"""Maximum number of counters, which take 80 MB: enough for 64 cohorts of 1,024 × 128 bits."""
MAX_REPORTS = 1 << 53
"""Largest number of reports: sums of counts stay exact in 64 bits, as integers and as floats."""
REPORTS_PER_TASK = 1 << 19
"""Reports counted in one task: enough that adding up the tasks' tables takes little time."""


@dataclass(frozen=True, eq=False)
class PairCounts(ComparedByFields):
    """Counts of the reports of two questions, which `count` makes; a source of `associate`.

    A stratum is a pair of slots, one per question, and a cohort that both questions share.

    Parameters
    ----------
    survey : str
        Digest of the published survey, in hexadecimal.
    questions : tuple of str
        Names of the two questions.
    pairs : int64 array of shape (S, k + 1, l + 1)
        Reports of stratum s with bit a of the first question and bit b of the second. The last bit
        of both is set in all reports.
    origin : str, default ""
        Where the reports came from.

    Raises
    ------
    InputError
        If the array cannot hold counts.

    Examples
    --------
    >>> import numpy as np
    >>> counts = PairCounts("00", ("x", "y"), np.array([[[1, 1], [1, 2]]]))
    >>> counts + counts
    <PairCounts x × y: 4 reports>
    """

    survey: str
    questions: tuple[str, str]
    pairs: Int64s
    origin: str = ""

    def __post_init__(self) -> None:
        pairs = self.pairs
        if pairs.ndim != 3 or not pairs.size or pairs.dtype.kind not in "iu":
            raise InputError(f"expected integers of shape (S, k, l), not {pairs.shape}")
        each, reports = np.minimum(pairs[:, :, -1:], pairs[:, -1:, :]), pairs[:, -1, -1]
        if (pairs < 0).any() or (pairs > each).any() or reports.sum(dtype=float) > MAX_REPORTS:
            raise InputError("these are no counts: they are negative, too large, or contradictory")
        object.__setattr__(self, "pairs", pairs.astype(np.int64, copy=False))

    def __repr__(self) -> str:
        return f"<PairCounts {' × '.join(self.questions)}: {self.reports:,} reports>"

    @property
    def reports(self) -> int:
        """Number of reports, N."""
        return int(self.pairs[:, -1, -1].sum())

    def __add__(self, other: PairCounts) -> PairCounts:
        """Return the counts of both sets of reports together."""
        mine, theirs = ((c.survey, c.questions, c.pairs.shape) for c in (self, other))
        if mine != theirs:
            raise InputError(
                f"expected counts of {' × '.join(self.questions)} of the survey with digest "
                f"{self.survey[:12]}, not of {' × '.join(other.questions)} of "
                f"{other.survey[:12]}: the survey and the order of questions must be the same"
            )
        origins = dict.fromkeys(o for o in (self.origin, other.origin) if o)
        return replace(self, pairs=self.pairs + other.pairs, origin="; ".join(origins))

    def save(self, path: str | Path) -> None:
        """Write the counts to a compressed file, which `count` and `associate` read.

        Parameters
        ----------
        path : str or Path
            File to write; its name must end in .npz.

        Raises
        ------
        InputError
            If the file's name has another extension.
        """
        if Path(path).suffix != ".npz":
            raise InputError(f"the file's name must end in .npz, got {path}")
        about = np.array([FORMAT, self.survey, *self.questions, self.origin])
        narrow = self.pairs.astype(np.min_scalar_type(int(self.pairs.max())))
        np.savez_compressed(Path(path), about=about, pairs=narrow)


def read_counts(path: str | Path) -> PairCounts:
    """Return the counts in a file; raise InputError if it holds none."""
    with Path(path).open("rb") as raw, suppress(Exception):  # a damaged file may raise anything
        if sum(m.file_size for m in zipfile.ZipFile(raw).infolist()) <= 16 * MAX_COUNTERS:
            raw.seek(0)
            file = np.load(raw, allow_pickle=False)
            form, survey, first, second, origin = (str(text) for text in file["about"])
            if form == FORMAT:
                return PairCounts(survey, (first, second), file["pairs"], origin)
    raise InputError(f"{path} does not hold counts that deniable count wrote, or it is damaged")


@dataclass(frozen=True)
class PairLayout:
    """How reports of two questions are counted."""

    questions: tuple[Question, ...]

    @property
    def strata(self) -> tuple[int, int, int]:
        """Numbers of slots of both questions, and of shared cohorts; their product is S.

        The slots are those of the first part of a protocol, which reports whole values.
        """
        first, second = (len(q.protocol.parts[0].slots) for q in self.questions)
        return first, second, lcm(*(q.protocol.mechanisms[0].cohorts for q in self.questions))

    @property
    def shape(self) -> tuple[int, int, int]:
        """Shape of the counts."""
        first, second = (q.protocol.mechanisms[0].outcomes for q in self.questions)
        return prod(self.strata), first + 1, second + 1

    def question_strata(self, side: int) -> Indices:
        """Return the stratum of one question that each stratum belongs to, intp[S].

        Strata of a question are numbered slot·cohorts + cohort.
        """
        *slot, cohort = np.unravel_index(np.arange(prod(self.strata)), self.strata)
        mechanism = self.questions[side].protocol.mechanisms[0]
        own_cohort = mechanism.own_cohort(cohort)
        return np.asarray(slot[side] * mechanism.cohorts + own_cohort, np.intp)

    def bit_counts(self, pairs: Int64s, side: int) -> BitCounts:
        """Return the bit counts of one question, in its own strata."""
        strata, own = self.question_strata(side), (pairs[:, :, -1], pairs[:, -1, :])[side]
        counts = np.zeros((int(strata.max()) + 1, own.shape[1]), np.int64)
        np.add.at(counts, strata, own)
        return BitCounts(counts[:, :-1], counts[:, -1])

    def count(self, parts: list[Partition]) -> UInt32s:
        """Return the counts of the reports of some partitions."""
        pairs = np.zeros(self.shape, np.uint32)
        _, slots, cohorts = self.strata
        for batch in (part.load() for part in parts):
            x, y = (batch.column(q.name).slot.astype(np.int64) for q in self.questions)
            stratum = (x * slots + y) * cohorts + batch.cohort.astype(np.int64) % cohorts
            first, second = (_words(question, batch) for question in self.questions)
            add_pairs(pairs, first, second, stratum)
        return pairs


def _words(question: Question, batch: ReportBatch) -> Words:
    """Return the bits of each report, u64[N, W]; of a number, only the bit with that number."""
    column = batch.column(question.name)
    if column.mechanism.bound is None:
        return as_words(column.bits)
    number = packed_numbers(column.bits)
    words = np.zeros((len(number), (column.mechanism.bound + 63) // 64), np.uint64)
    words[np.arange(len(number)), number >> 6] = np.uint64(1) << (number & 63).astype(np.uint64)
    return words


@reports_progress
def count(
    survey: SurveyOrPath,
    reports: Reports | PairCounts | Iterable[Part | PairCounts],
    questions: Sequence[str],
    *,
    executor: AnyExecutor = None,
    progress: Progress | None = None,
) -> PairCounts:
    """Count how often each pair of bits of two questions is set in the same report.

    The counts are all that `associate` needs to estimate the joint distribution of the two
    questions. Shards can be counted on different machines and at different times, and their
    reports deleted.

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
    >>> from deniable import Survey, associate, count, simulate
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
    >>> reports = simulate(survey, answers, rng=np.random.default_rng(0))
    >>> monday = count(survey, reports, ["dark", "ads"])
    >>> monday
    <PairCounts dark × ads: 10,000 reports>
    >>> associate(survey, monday, ["dark", "ads"]).table.round(1)
    array([[0. , 0.5],
           [0. , 0.5]])
    """
    survey, questions = Survey.of(survey), as_names("questions", questions)
    if len(questions) != 2 or questions[0] == questions[1]:
        raise InputError(f"name two different questions to count, got {list(questions)}")
    layout = PairLayout(tuple(map(survey.question, questions)))
    if (counters := prod(layout.shape)) > MAX_COUNTERS:
        raise InputError(
            f"counts of {questions[0]!r} × {questions[1]!r} would be {counters:,} numbers, more "
            f"than the limit of {MAX_COUNTERS:,}: associate the reports themselves"
        )
    names, given = (questions[0], questions[1]), listed(reports)
    check_distinct(given)
    counts = PairCounts(survey.sha256.hex(), names, np.zeros(layout.shape, np.int64))
    for part in filter(is_counts, given):
        counts += part if isinstance(part, PairCounts) else read_counts(part)
    parts = [part for part in given if not is_counts(part)]
    if parts or not given:
        source, pairs = Source(parts, survey), np.zeros(layout.shape, np.int64)
        for table in executor_of(executor).map(layout.count, source.groups(REPORTS_PER_TASK)):
            pairs += table
        counts += replace(counts, pairs=pairs, origin=source.origin)
    return counts


def is_counts(part: object) -> bool:
    """Return whether a part of what is analysed is counts, or a file of them."""
    named = isinstance(part, str | Path) and Path(part).suffix == ".npz"
    return named or isinstance(part, PairCounts)
