"""Commands import what they need: seconds of every start depend on it.

A timed assertion would fail on a busy machine, so these tests look at the modules.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from deniable import simulate
from deniable.columns import write
from tests.surveys import make_survey

HEAVY = ("dask", "matplotlib", "numba", "pandas", "polars", "scipy.optimize", "scipy.stats",
         "sklearn")  # fmt: skip
"""Packages that take longer to import than a small analysis should."""
PROGRAM = f"""
import sys
from deniable.cli import main
try:
    main()
finally:
    print([name for name in {HEAVY} if name in sys.modules])
"""
QUESTION = "[questions.page]\nepsilon = 4.0\nkind = "
KINDS = {
    "bloom": '"string"\nmechanism = "bloom"',
    "localhash": '"string"\nmechanism = "localhash"',
    "prefixes": '"string"\n[questions.page.dictionary]\nprotocol = "prefixes"\nmax_length = 3\n'
    'alphabet = "a-f"',
    "choice": '"choice"\noptions = ["cab", "fed"]',
    "number": '"number"\nlow = 0\nhigh = 10\nbins = 5',
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_decoding_a_small_file_imports_nothing_heavy(kind: str, tmp_path: Path) -> None:
    survey = make_survey(QUESTION + KINDS[kind])
    values = [3.0, 7.0] if kind == "number" else ["cab", "fed"]
    reports = simulate(survey, {"page": values * 2000}, rng=np.random.default_rng(1))
    write(tmp_path / "reports.parquet", reports)
    survey.publish(tmp_path / "survey.json")
    (tmp_path / "words.txt").write_text("cab\nfed\nace\n")
    command = ["decode", "survey.json", "reports.parquet"]
    if survey.question("page").kind == "string":
        command += ["--candidates", "words.txt"]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *command], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.slow
def test_writing_and_reading_parquet_do_not_import_pandas(tmp_path: Path) -> None:
    """pyarrow imports pandas, where it is installed, to convert arrays in the general way."""
    survey = make_survey(QUESTION + KINDS["prefixes"])
    write(tmp_path / "old.parquet", simulate(survey, {"page": ["cab"] * 50}, rng=1))
    program = (
        "import sys\nfrom deniable.columns import write\n"
        "from deniable.columns.files import partitions\n"
        "(part,) = partitions('old.parquet')\nwrite('new.parquet', part.load())\n"
        "print('pandas' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.stdout == "False\n", done.stderr
    assert (tmp_path / "new.parquet").read_bytes() == (tmp_path / "old.parquet").read_bytes()
