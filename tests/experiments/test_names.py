"""A list of names from a wheel: every table and month, each name once."""

import io
from zipfile import ZipFile

from experiments.names import names_of


def test_names_of_all_tables() -> None:
    wheel = io.BytesIO()
    data = "whotracksme/data/assets"
    with ZipFile(wheel, "w") as archive:
        archive.writestr(f"{data}/2018-04/global/domains.csv", "month,host_tld\nx,b.net\nx,\n")
        archive.writestr(f"{data}/2018-03/global/sites.csv", "site,month\na.com,x\nb.net,x\n")
        archive.writestr(f"{data}/2018-03/global/companies.csv", "site\nnone.com\n")
        line = """INSERT INTO "tracker_domains" VALUES('t','c.org');"""
        other = """INSERT INTO "trackers" VALUES('t','d.org');"""
        archive.writestr(f"{data}/trackerdb.sql", f"{line}\n{other}\n")
    assert names_of(wheel) == ["a.com", "b.net", "c.org"]
