"""Write the golden files: `python -m tests.golden.make [NAME...]`.

`python -m tests.golden.make --written` also writes the stores and results of `written/` anew. They
stand for files that users have kept, so that should not be necessary before a new format.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

from tests.golden.cases import CASES, golden_path
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
        text = json.dumps(data, indent=None, sort_keys=True, allow_nan=False, ensure_ascii=False)
        golden_path(name).write_text(text + "\n", encoding="utf-8")
        print(
            f"{name}: {len(text):,} bytes, {time.process_time() - began:.1f} s of CPU", flush=True
        )


if __name__ == "__main__":
    main(sys.argv[1:])
