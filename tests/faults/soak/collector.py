"""The collector under test: its settings, its keys, its clock, and what is known about it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from deniable.collector import keys
from deniable.store.clock import MAX_DAYS_AHEAD
from tests.faults.server import Server
from tests.faults.soak.clock import main_with_clock
from tests.faults.soak.load import MAX_BODY
from tests.faults.soak.observed import Observations
from tests.faults.soak.uploads import Uploads
from tests.surveys import make_survey

AGED = make_survey(
    """
[questions.q]
kind = "string"
hashes = 2
p = 0.25
q = 0.75
""",
    name="aged",
)
"""A survey whose reports are always older than the collector may keep them."""
KEEP_DAYS, AGED_DAYS = 30, 60
JUMPS = ((-500, -1), (MAX_DAYS_AHEAD + 1, 2 * KEEP_DAYS), (300, 500))
"""Smallest and largest number of days by which the clock is wrong. They pass the days after which
keys are forgotten and reports are deleted, and must have neither effect."""
MAX_MEMORY = 32 << 20
GATEWAY_ROLE = next(role for role in ("gateway", "ingest") if role in keys.ROLES)
CYCLE_MINUTES = 60
STORM = 1 / 4
"""Share of each cycle, at its start, in which the collector is restarted again and again. The rest
is long, because trends of memory in lives of ten minutes vary by 25 MiB per hour either way."""


@dataclass(frozen=True)
class Plan:
    """Parameters of a run.

    seconds : length; rate : requests per second
    """

    seconds: float = 3600.0
    seed: int = 1
    rate: float = 180.0

    @property
    def cycle(self) -> float:
        """Seconds between the beginnings of two storms."""
        return self.seconds / max(1, round(self.seconds / 60 / CYCLE_MINUTES))

    def is_storm(self, seconds: float) -> bool:
        return seconds % self.cycle < STORM * self.cycle

    @property
    def compact_seconds(self) -> int:
        """Seconds between compactions by the collector."""
        return int(min(10, max(2, self.seconds / 10)))

    @property
    def at_least(self) -> int:
        """Smallest number of reports to shuffle an upload with: those of a few seconds."""
        return min(1000, int(self.rate * self.compact_seconds / 2))


@dataclass
class SoakedCollector:
    """A collector with a clock that can be wrong, and what is known about its reports.

    life : number of restarts so far; restarting : whether one is under way
    """

    folder: Path
    plan: Plan
    main: str = ""
    life: int = 0
    restarting: bool = False
    seen: Observations = field(default_factory=Observations)

    def __post_init__(self) -> None:
        self.uploads = Uploads(self.plan.seed)
        self.clock = self.folder / "clock"
        self.clock.write_text("0")
        self.aged_survey = self.folder / "aged.json"
        AGED.publish(self.aged_survey)
        key_file = self.folder / "keys.json"
        self.gateway_token = keys.add(key_file, "gateway", GATEWAY_ROLE, 0)
        self.analyst_token = keys.add(key_file, "analyst", "analyst")
        self.flags = (
            str(self.aged_survey), "--keys", str(key_file), "--compact",
            str(self.plan.compact_seconds), "--at-least", str(self.plan.at_least),
            "--keep-days", str(KEEP_DAYS), "--header-time", "2",
            "--body-time", "3", "--stop-time", "1", "--max-body", str(MAX_BODY),
            "--max-memory", str(MAX_MEMORY),
        )  # fmt: skip
        main = self.main or main_with_clock(self.clock)
        self.server = Server(self.folder, *self.flags, main=main)
