"""Kernels kept on disk must not outlive the code that they were made from."""

import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import deniable
from deniable.kernels import compiled
from deniable.kernels.compiled import LOADING_SECONDS, pays_off, read_only
from deniable.kernels.words import load_word

SCRIPT = """
import numpy as np
from deniable.kernels.noise.noisy_rows import noise_rows
from deniable.kernels.noise.sampler import Response
half = Response(1 << 31, 0)
rows = noise_rows(np.zeros((4, 8), np.uint8), 64, half, np.random.default_rng(1)).tolist()
print(rows)
"""


@pytest.mark.slow
def test_a_change_in_a_called_file_is_compiled_anew(tmp_path: Path) -> None:
    """noisy_rows.py calls sampler.py: turning a rotation there must change the bits."""
    source = tmp_path / "src"
    shutil.copytree(
        Path(str(deniable.__file__)).parent,
        source / "deniable",
        ignore=shutil.ignore_patterns("__pycache__"),
    )

    def run() -> str:
        paths = {"PYTHONPATH": str(source), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
        command = [sys.executable, "-c", SCRIPT]
        environment = {**os.environ, **paths}
        return subprocess.run(
            command, env=environment, check=True, capture_output=True, text=True
        ).stdout

    first = run()
    assert run() == first
    changed = source / "deniable" / "kernels" / "noise" / "sampler.py"
    changed.write_text(changed.read_text().replace("np.uint64(23)", "np.uint64(22)"))
    assert run() != first


def test_read_only_copies_only_what_it_must() -> None:
    array = np.arange(10, dtype=np.int32)
    view = read_only(array, np.int32)
    assert np.shares_memory(view, array) and not view.flags.writeable and array.flags.writeable
    assert not np.shares_memory(read_only(array[::2], np.int32), array)
    assert read_only(array, np.int64).dtype == np.int64


def test_numpy_works_until_loading_would_have_paid_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "_numpy_seconds", 0.0)
    monkeypatch.delitem(sys.modules, "numba", raising=False)
    assert [pays_off(0.4 * LOADING_SECONDS) for _ in range(4)] == [False, False, True, True]
    monkeypatch.setattr(compiled, "_numpy_seconds", 0.0)
    assert not pays_off(0.0) and pays_off(2 * LOADING_SECONDS)
    monkeypatch.setattr(compiled, "_numpy_seconds", 0.0)
    monkeypatch.setitem(sys.modules, "numba", object())
    assert pays_off(0.0), "it is loaded already"


def test_kernels_are_sent_to_workers_by_their_name() -> None:
    assert pickle.loads(pickle.dumps(load_word)) is load_word
