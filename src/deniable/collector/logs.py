"""The log of a collector: one line per event, as text for people or as JSON for programs.

No line quotes a request, and none has a time, which would be the precise time of a client's upload.
Of messages of the HTTP server and other libraries, which might quote one, only the source is kept.
"""

from __future__ import annotations

import json
import logging
import sys

from deniable.formatting import printable

NAME = "deniable.collector"
FORMATS = ("text", "json")
EVENTS = {
    "listening": "The collector accepts requests at `host` and `port`.",
    "stopped": "The collector has stopped; totals since its start.",
    "totals": "Totals since the start: `reports`, `commits`, and `uploads` by HTTP status.",
    "batch-privacy": "Privacy of one client in the smallest batch of a one-time `survey`.",
    "small-batches": "Analysts see smaller batches than by default.",
    "idle-quota": "An ingest key has a quota, but uploads without a key are accepted.",
    "testing-survey": "The reports of `survey` are test data.",
    "survey-ended": "The last day of `survey` has passed, so its reports are refused.",
    "disk-low": "Free space is below the reserve, so uploads are refused.",
    "disk-recovered": "There is free space again, so uploads are accepted.",
    "clock-doubted": "The clock is behind the last day of the store or far ahead; said daily.",
    "store-damaged": "Uploads or segments of the store are lost or damaged.",
    "commits-failing": "A commit failed with `error`; its uploads were refused.",
    "commits-recovered": "Commits succeed again.",
    "maintenance-failed": "The regular `task` failed with `error`; it is tried again.",
    "request-failed": "A request failed with an unexpected `error`, which is a defect.",
    "key-file-unreadable": "The key file cannot be read; the keys read before remain valid.",
    "library-message": "The HTTP server or another library, `source`, reported a problem.",
}
"""Names of events, which never change their meaning, and what they say."""

log = logging.getLogger(NAME)


def log_event(event: str, message: str, level: int = logging.INFO, **fields: object) -> None:
    """Log an event.

    Parameters
    ----------
    event
        One of `EVENTS`.
    message
        Sentence for people.
    level
        Level of the `logging` module.
    **fields
        Numbers and names for programs; nothing of a request.
    """
    assert event in EVENTS, event
    log.log(level, "%s", message, extra={"event": event, "fields": fields})


def start_logging(form: str) -> None:
    """Write the log to standard error, as one of `FORMATS`."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LogLines(form))
    logging.basicConfig(handlers=[handler], force=True)
    log.setLevel(logging.INFO)


class LogLines(logging.Formatter):
    """Turns records into lines; never adds a traceback, which may quote a request."""

    def __init__(self, form: str) -> None:
        super().__init__()
        self.form = form

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        if record.name == NAME:
            event, message = getattr(record, "event", ""), record.getMessage()
            fields = getattr(record, "fields", {})
        else:
            event, message = "library-message", f"{record.name} reported a problem"
            fields = {"source": record.name}
        if self.form == "text":
            return f"{record.levelname} {printable(message)}"
        line = {"level": record.levelname.lower(), "event": event, "message": message, **fields}
        return json.dumps(line, ensure_ascii=False)
