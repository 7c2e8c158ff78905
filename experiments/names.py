"""Print names of sites and trackers that an analyst could have known before the survey.

    python -m pip download --no-deps whotracksme==2018.5.17
    python -m experiments.names whotracksme-2018.5.17-py3-none-any.whl > names.txt

WhoTracks.me publishes which third parties load on which sites; its package of May 2018 has 3,288
names. Their source and year differ from those of the 100 domains of the URL experiment, of which 87
are among them: a realistic list, mostly correct and not quite complete.
"""

from __future__ import annotations

import argparse
import csv
import io
import re
from typing import BinaryIO
from zipfile import ZipFile

COLUMNS = {"/global/domains.csv": "host_tld", "/global/sites.csv": "site"}
TRACKER = re.compile(r"\"tracker_domains\" VALUES\('[^']*','([^']*)'")


def names_of(wheel: BinaryIO) -> list[str]:
    """Return every name in the tables of sites and of third parties, sorted."""
    names: set[str] = set()
    with ZipFile(wheel) as archive:
        for entry in archive.namelist():
            column = next((c for end, c in COLUMNS.items() if entry.endswith(end)), None)
            if column:
                with io.TextIOWrapper(archive.open(entry), "utf-8") as file:
                    names |= {row[column] for row in csv.DictReader(file)}
            elif entry.endswith("/trackerdb.sql"):
                names |= set(TRACKER.findall(archive.read(entry).decode()))
    return sorted(names - {""})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("wheel", type=argparse.FileType("rb"))
    print("\n".join(names_of(parser.parse_args().wheel)))
