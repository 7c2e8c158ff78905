"""Cases of the commands that analyse: what they print as JSON and write to files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from deniable import PairCounts
from tests.golden import freezing
from tests.golden.commands import (
    DAYS,
    listed,
    said,
    store_of_days,
    write_reports,
)
from tests.golden.compare import JOINT, SINGLE_PRODUCTS
from tests.golden.crowds import PAGES, WORDS, survey_path
from tests.golden.registry import case


@case
def command_decode(folder: Path) -> Any:
    """What decode prints and writes, of strings, options and all corrections."""
    habits = survey_path("habits")
    reports = write_reports(folder / "habits.parquet", "habits")
    (folder / "pages.csv").write_text("rank,value\n" + "".join(f"1,{page}\n" for page in PAGES))
    asked = ("decode", habits, reports, "--question", "page", "--candidates")
    outputs = [part for suffix in ("csv", "json", "parquet", "html", "svg", "png")
               for part in ("-o", folder / f"page.{suffix}")]  # fmt: skip
    found = {
        "text file": said(*asked, listed(folder, [*PAGES, "=1+1"]), *outputs),
        "csv file": said(*asked, folder / "pages.csv", "--correction", "fdr", "--alpha", "0.2"),
        "result": said(*asked, folder / "page.json", "--correction", "none"),
        "options": said("decode", habits, reports, "--question", "browser",
                        "--reports-per-client", "2.5"),
    }  # fmt: skip
    import pyarrow.parquet as pq

    return {
        "json": {name: freezing.plain(data) for name, data in found.items()},
        "csv": freezing.table((folder / "page.csv").read_text()),
        "file": freezing.plain(json.loads((folder / "page.json").read_text())),
        "parquet": pq.read_table(folder / "page.parquet").to_pydict(),
        "html": freezing.page(folder / "page.html"),
        "pictures": [
            b"<svg" in (folder / "page.svg").read_bytes(),
            (folder / "page.png").read_bytes()[:4].hex(),
        ],
    }


@case(tolerance=JOINT)
def command_associate(folder: Path) -> Any:
    """What associate prints and writes, with every model of what is not listed."""
    habits = survey_path("habits")
    reports = write_reports(folder / "habits.parquet", "habits")
    pages = listed(folder, PAGES)
    pair = ("--question", "page", "--question", "dark", "--candidates", f"page={pages}")
    few = ("associate", habits, reports, *pair, "--top", 2)
    found = {other: said(*few, "--other", other) for other in ("mixture", "product", "none")}
    found["all"] = said("associate", habits, reports, "--candidates", f"page={pages}", "--top", 1,
                        "--fitted", 4, "-o", folder / "all.csv")  # fmt: skip
    found["options"] = said("associate", habits, reports, "--question", "browser", "--question",
                            "dark", "--test", "lrt", "-o", folder / "two.csv")  # fmt: skip
    return {
        "json": {name: freezing.plain(data) for name, data in found.items()},
        "csv": {
            name: freezing.table((folder / f"{name}.csv").read_text()) for name in ("all", "two")
        },
    }


@case
def command_count(folder: Path) -> Any:
    """Counts of two files, added, and the table that is made from them."""
    habits = survey_path("habits")
    pair = ("--question", "browser", "--question", "dark")
    shards = []
    for seed in (1, 2):
        reports = write_reports(folder / f"{seed}.parquet", "habits", seed, 2000)
        shards.append(folder / f"{seed}.npz")
        data = said("count", habits, reports, *pair, "-o", shards[-1])
        assert data.keys() == {"file", "reports", "bytes"}
    both = folder / "both.npz"
    total = said("count", habits, *shards, *pair, "-o", both)
    counts = PairCounts.load(both)
    joint = said("associate", habits, both, "--from-counts", *pair, "-o", folder / "joint.csv")
    return {
        "reports": total["reports"],
        "both": counts.both.tolist(),
        "first": counts.first.tolist(),
        "second": counts.second.tolist(),
        "total": counts.total.tolist(),
        "json": freezing.plain(joint),
        "csv": freezing.table((folder / "joint.csv").read_text()),
        "directly": freezing.plain(
            said("associate", habits, *(folder / f"{seed}.parquet" for seed in (1, 2)),
                 "--from-counts", *pair)
        ),
    }  # fmt: skip


@case(tolerance=SINGLE_PRODUCTS)
def command_discover(folder: Path) -> Any:
    """What discover prints and writes, for every protocol."""
    whole = write_reports(folder / "whole.dn", "whole")
    grams = write_reports(folder / "ngrams.arrow", "ngrams")
    hashes = write_reports(folder / "localhash.parquet", "localhash", clients=8000)
    (folder / "words.csv").write_text("value,weight\nface,2\ndeed,1\n")
    asked = ("discover", survey_path("localhash"), hashes)
    found = {
        "whole": said("discover", survey_path("whole"), whole, "--question", "code", "--accept",
                      "[0-9]{3}", "-o", folder / "code.csv"),
        "ngrams": said("discover", survey_path("ngrams"), grams),
        "paper": said("discover", survey_path("ngrams"), grams, "--reading", "paper", "--delta",
                      "0.01"),
        "prefixes": said(*asked, "--words", folder / "words.csv", "--alpha", "0.01"),
        "listed": said(*asked, "--words", listed(folder, WORDS[:3]), "-o", folder / "words.json"),
    }  # fmt: skip
    decoded = said("decode", survey_path("localhash"), hashes, "--question", "word",
                   "--candidates", folder / "words.json")  # fmt: skip
    return {
        "json": {name: freezing.plain(data) for name, data in found.items()},
        "csv": freezing.table((folder / "code.csv").read_text()),
        "decoded": freezing.plain(decoded),
    }


@case(tolerance=JOINT)
def command_trends(folder: Path) -> Any:
    """Trends and series of a store: decode, associate and discover by day and by week."""
    store = store_of_days(folder / "whole.db", "whole", folder)
    survey, words = survey_path("whole"), listed(folder, [word[:4] for word in WORDS])
    codes = listed(folder, ["007", "42"], "codes.txt")
    asked = ("decode", survey, store, "--question", "word", "--candidates", words)
    both = ("associate", survey, store, "--candidates", f"word={words}", "--candidates",
            f"code={codes}", "--top", 2)  # fmt: skip
    found = {
        "days": said(*asked, "--by", "day", "-o", folder / "days.csv"),
        "weeks": said(*asked, "--by", "week", "--correction", "bonferroni"),
        "since": said(*asked, "--by", "day", "--since", DAYS[1], "--until", "2025-03-31"),
        "some days": said(*asked, "--since", DAYS[0], "--until", DAYS[1]),
        "joint": said(*both, "--by", "week", "-o", folder / "joint.csv"),
        "strings": said("discover", survey, store, "--question", "code", "--by", "day", "-o",
                        folder / "strings.csv"),
    }  # fmt: skip
    tables = {
        name: freezing.table((folder / f"{name}.csv").read_text())
        for name in ("days", "joint", "strings")
    }
    return {"json": {name: freezing.plain(data) for name, data in found.items()}, "csv": tables}


@case(tolerance=JOINT)
def command_reproduce(folder: Path) -> Any:
    """The quick run of the paper's first experiment."""
    rows = said("reproduce", "tables", "--quick")
    return [
        [row["experiment"], row["ours"], row["low"], row["high"], row["agrees"]] for row in rows
    ]
