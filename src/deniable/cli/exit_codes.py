"""Exit codes. docs/reference/commands.md documents them; their meanings never change."""

from __future__ import annotations

ERROR, REFUSED, UNAVAILABLE, INTERRUPTED = 1, 3, 4, 130

EXIT_CODES = {
    0: "The command succeeded.",
    ERROR: "The input has mistakes, something is missing, or a check failed; the message says what "
    "and where.",
    2: "The command line is wrong: an unknown option, a missing argument, or an invalid value. (A "
    "setting of `serve` whose value is not allowed gives 1, from wherever the value comes.)",
    REFUSED: "The client refused to answer in order to keep a privacy promise: the budget is "
    "spent, the survey is beyond the limits of the device or has another owner than before, the "
    "survey has ended, or the secret or the ledger cannot be trusted.",
    UNAVAILABLE: "A store or a collector cannot be reached at the moment; retrying may help.",
    INTERRUPTED: "The command was interrupted (Ctrl-C).",
}
