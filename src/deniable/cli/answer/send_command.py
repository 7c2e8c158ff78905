"""`deniable send`: what was queued goes to the collector."""

from __future__ import annotations

import os
import time
from dataclasses import asdict
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from deniable.cli import options
from deniable.cli.answer.answer_command import folder_option
from deniable.cli.codes import LATER, MISTAKE
from deniable.cli.documented import command
from deniable.cli.output import say
from deniable.errors import InputError

if TYPE_CHECKING:
    from deniable.client import Sender, Sent


@command()
@click.argument("address")
@folder_option
@options.option("--survey", "surveys", multiple=True, metavar="NAME")
@options.option("--token-file", type=click.File("r"))
@options.option("--batch", type=options.AT_LEAST_ONE, default=1)
@options.option(
    "--wait", type=click.FloatRange(min=0), default=0.0, show_default=False, metavar="SECONDS"
)
@options.flag("--now")
@options.flag("--again")
@options.json_option("what was done")
def send(
    address: str,
    folder: Path,
    surveys: tuple[str, ...],
    token_file: IO[str] | None,
    batch: int,
    wait: float,
    now: bool,
    again: bool,
    as_json: bool,
) -> None:
    """Send queued reports to the collector at ADDRESS.

    Exits with 4 while some still wait, and with 1 if any were refused.

    Parameters
    ----------
    surveys : Only this survey's reports; may be given again.
    token_file : The collector's ingest key; or set DENIABLE_TOKEN.
    batch : Reports an upload. Above 1 only where many people's reports mix.
    wait : Keep trying for so long.
    now : Try at once, even if the next try is not due yet.
    again : Also what was refused before; first mend the cause.

    Examples
    --------
    deniable send https://collector.example
    deniable send https://collector.example --survey pages --wait 600
    """
    from deniable.client import Outbox, Sender

    token = token_file.read().strip() if token_file else os.environ.get("DENIABLE_TOKEN")
    until = time.monotonic() + wait
    outboxes: dict[str, dict[str, object]] = {}
    lines: list[str] = []
    for path in _outboxes(folder.expanduser(), surveys):
        outbox = Outbox(path)
        if again:
            outbox.try_again()
        sent = _send(Sender(outbox, address, token=token, batch=batch), now or again, until)
        name = path.stem.removeprefix("outbox-")
        outboxes[name] = {**asdict(sent), "refusals": outbox.refusals()}
        lines.append(_in_words(name, sent, outbox.refusals()))
    say(outboxes, "\n".join(lines), as_json)
    if any(each["refusals"] for each in outboxes.values()):
        click.get_current_context().exit(MISTAKE)
    if any(each["waiting"] for each in outboxes.values()):
        click.get_current_context().exit(LATER)


def _outboxes(folder: Path, surveys: tuple[str, ...]) -> list[Path]:
    known = {path.stem.removeprefix("outbox-"): path for path in folder.glob("outbox-*.db")}
    missing = sorted(set(surveys) - known.keys())
    if missing or not known:
        what = f"of {', '.join(missing)} " if missing else ""
        raise InputError(f"no report {what}was queued in {folder}: see deniable answer")
    return [path for name, path in sorted(known.items()) if not surveys or name in surveys]


def _send(sender: Sender, now: bool, until: float) -> Sent:
    """Send, and again when it is due, as long as there is time."""
    from dataclasses import replace

    sent = sender.send(now=now)
    while sent.waiting and (left := until - time.monotonic()) > 0:
        time.sleep(min(max(sent.wait, 0.01), left))
        more = sender.send()
        sent = replace(
            more,
            accepted=sent.accepted + more.accepted,
            refused=sent.refused + more.refused,
            problem=more.problem or (sent.problem if more.waiting else None),
        )
    return sent


def _in_words(name: str, sent: Sent, refusals: dict[str, int]) -> str:
    text = f"{name}: {sent.accepted} accepted, {sent.waiting} waiting"
    if sent.dropped:
        text += f", {sent.dropped} dropped for want of room"
    if sent.waiting:
        text += f", next try in {sent.wait:.0f} s"
    if sent.problem and sent.waiting:
        text += f"\n  {sent.problem}"
    return text + "".join(
        f"\n  refused, {count} set aside: {why}" for why, count in refusals.items()
    )
