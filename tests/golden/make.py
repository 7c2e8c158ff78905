"""Write the golden files: `python -m tests.golden.make [NAME...]`.

A file that agrees within its tolerance is left as it is. `python -m tests.golden.make --written`
first writes the files of `stores/` and `saved/` anew. They stand for files that users have kept,
so nobody should need it before the next version of a format.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

from tests.golden.cases import CASES, golden_path
from tests.golden.compare import differences
from tests.golden.freezing import as_json


def main(args: list[str]) -> None:
    """Write all golden files, or those named."""
    if "--written" in args:
        from tests.golden.written import write_all

        write_all()
        args = [arg for arg in args if arg != "--written"]
    for name in args or CASES:
        began = time.process_time()
        with tempfile.TemporaryDirectory() as folder:
            data = as_json(CASES[name].make(Path(folder)))
        text = json.dumps(data, sort_keys=True, allow_nan=False, ensure_ascii=False)
        path, kept = golden_path(name), False
        if path.exists():
            before = json.loads(path.read_text(encoding="utf-8"))
            kept = not any(differences(before, data, CASES[name].tolerance))
        if not kept:
            path.write_text(text + "\n", encoding="utf-8")
        seconds = time.process_time() - began
        state = "kept" if kept else "written"
        print(f"{name}: {state}, {len(text):,} bytes, {seconds:.1f} s of CPU", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
