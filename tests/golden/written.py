"""Stores, report files and results as users keep them, written once by an earlier version.

Their bytes are not the same from run to run: compaction shuffles with the system's randomness, and
a discovery says how long it took. So they are committed, and the golden tests only read them.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from deniable import Survey
from tests.golden.commands import DAYS, listed, output, store_of_days, write_reports
from tests.golden.crowds import CODES, HERE, PAGES, WORDS, survey_path

STORES, SAVED = HERE / "stores", HERE / "saved"
NAMES = ("habits.db", "habits")
"""A SQLite store and a folder of Parquet files."""
AT_LEAST = 30
"""Reports of others that an upload is shuffled with in these stores."""
UPLOADS = ((40, 40), (35, 35), (25, 25))
"""Reports per upload on each day; the uploads of the last day stay as they came."""


def upload(folder: Path, day: int, number: int) -> Path:
    """Write the file of one upload again: its reports follow from its seed."""
    path = folder / f"upload-{day}-{number}.dn"
    return write_reports(path, "habits", 100 + 10 * day + number, UPLOADS[day][number])


def import_upload(store: Path, file: Path, day: int) -> str:
    """Import a file as what came on a day; return what the command said."""
    survey = ("--survey", survey_path("habits"), "--day", DAYS[day], "--json")
    return output("import", store, file, *survey)


def write_stores(work: Path) -> None:
    """Write both stores: two days compacted, the third still staged."""
    shutil.rmtree(STORES, ignore_errors=True)
    STORES.mkdir()
    for name in NAMES:
        for day, sizes in enumerate(UPLOADS):
            if day == 2:
                output("compact", STORES / name, "--at-least", AT_LEAST, "--keep-keys", 36500)
            for number in range(len(sizes)):
                import_upload(STORES / name, upload(work, day, number), day)
    for lock in STORES.glob("*.lock"):
        lock.unlink()


def write_saved(work: Path) -> None:
    """Write reports in every format, pair counts, and one result of every kind."""
    shutil.rmtree(SAVED, ignore_errors=True)
    SAVED.mkdir()
    habits, whole = survey_path("habits"), survey_path("whole")
    for suffix in ("parquet", "arrow", "dn"):
        write_reports(work / f"reports.{suffix}", "habits", 60, 300)
        shutil.copy(work / f"reports.{suffix}", SAVED)
    Survey.load(habits).publish(SAVED / "survey.json")
    reports = write_reports(work / "many.parquet", "habits", 61)
    strings = write_reports(work / "whole.parquet", "whole", 61)
    store = store_of_days(work / "whole.db", "whole", work)
    pages = listed(work, PAGES, "pages.txt")
    words = listed(work, [word[:4] for word in WORDS], "words.txt")
    codes = listed(work, CODES[:2], "codes.txt")
    pair = ("--question", "browser", "--question", "dark")
    page = ("--question", "page", "--candidates", pages)
    both = ("--candidates", f"word={words}", "--candidates", f"code={codes}", "--top", 2)

    def save(name: str, *args: object) -> None:
        output(*args, "-o", SAVED / name)

    save("counts.npz", "count", habits, reports, *pair)
    save("marginal.json", "decode", habits, reports, *page)
    save("joint.json", "associate", habits, reports, *pair)
    save("joint-three.json", "associate", habits, reports, "--candidates", f"page={pages}",
         "--top", 1)  # fmt: skip
    save("joint-counts.json", "associate", habits, SAVED / "counts.npz", *pair, "--from-counts")
    save("discovery.json", "discover", whole, strings, "--question", "word")
    grams = write_reports(work / "ngrams.parquet", "ngrams", 61)
    save("discovery-graph.json", "discover", survey_path("ngrams"), grams, "--reading", "paper")
    save("trend.json", "decode", whole, store, "--question", "word", "--candidates", words,
         "--by", "day")  # fmt: skip
    save("series.json", "associate", whole, store, *both, "--by", "week")
    save("series-discovery.json", "discover", whole, store, "--question", "code", "--by", "week")
    save("plan.json", "plan", "--clients", "1e5", "--epsilon", 4, "--unknown")
    save("plan-boolean.json", "plan", "--epsilon", 1, "--detect", "1%", "--kind", "boolean")
    for path in SAVED.glob("*.json"):  # where the store stood says nothing
        path.write_text(path.read_text(encoding="utf-8").replace(f"{work}/", ""), encoding="utf-8")


def write_all() -> None:
    """Write everything."""
    import tempfile

    for write in (write_stores, write_saved):
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder))
