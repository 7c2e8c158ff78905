"""Compare the golden cases, or record them anew: `python -m tests.golden [NAME...] [--record]`.

A file that agrees within its tolerance is left as it is. `--reports NAME` simulates and stores the
reports of a survey anew, before its cases are recorded.
"""

from __future__ import annotations

import json
import sys
import warnings

from deniable.errors import LossyAnswerWarning
from tests.golden.compare import differences
from tests.golden.crowds import store_reports, survey_names
from tests.golden.freezing import as_json
from tests.golden.test_golden import CASES

MOST_SHOWN = 5


def main(args: list[str]) -> int:
    """Compare or record all cases, or those named; return the exit code."""
    names = [arg for arg in args if not arg.startswith("--")]
    warnings.simplefilter("ignore", LossyAnswerWarning)
    if "--reports" in args:
        for name in names or survey_names():
            store_reports(name)
        return 0
    differ = 0
    for case in [CASES[name] for name in names or CASES]:
        found = as_json(case.make())
        wrong = ["not recorded"]
        if case.path.exists():
            expected = json.loads(case.path.read_text(encoding="utf-8"))
            wrong = list(differences(expected, found, case.tolerance))
        if wrong and "--record" in args:
            text = json.dumps(found, sort_keys=True, allow_nan=False, ensure_ascii=False)
            case.path.write_text(text + "\n", encoding="utf-8")
        state = "agrees" if not wrong else f"{len(wrong)} differences"
        shown = [] if "--record" in args else wrong[:MOST_SHOWN]
        print(f"{case.name}: {state}", *shown, sep="\n  ", flush=True)
        differ += bool(wrong)
    return int(differ > 0 and "--record" not in args)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
