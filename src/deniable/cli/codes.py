"""Exit codes: documented in docs/reference/commands.md, and they never change their meaning."""

from __future__ import annotations

MISTAKE, REFUSED, LATER, INTERRUPTED = 1, 3, 4, 130

EXIT_CODES = {
    0: "done",
    MISTAKE: "the input has mistakes, something that was needed is missing, or a check failed; the "
    "message says what",
    2: "the command was called wrongly",
    REFUSED: "refused, to keep a promise: the budget is spent, the survey has ended, or the "
    "client's secret or ledger cannot be trusted",
    LATER: "not done, but trying again may help: a store or a collector cannot be reached now",
    INTERRUPTED: "interrupted (Ctrl-C)",
}
