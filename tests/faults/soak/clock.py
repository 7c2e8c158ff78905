"""A clock that jumps, for one process only: a file says by how many days it is wrong.

`install` replaces the classes that the modules of deniable ask for the time, in these modules only:
compiled modules of other packages look into dates, and would not work with replacements. Clocks
that cannot be set, such as `time.monotonic`, stay right.
"""

from __future__ import annotations

import datetime
import importlib
import sys
import time
from pathlib import Path
from types import ModuleType

from tests.faults.server import MAIN

SECONDS_PER_DAY = 86_400
MODULES = ("deniable.collector.server", "deniable.store.sqlite")
"""They import all modules of a collector that ask for the time."""


def main_with_clock(file: Path) -> str:
    """Return the program of a collector whose clock is wrong by as many days as the file says."""
    return f"from tests.faults.soak.clock import install; install({str(file)!r}); {MAIN}"


def install(file: str) -> None:
    """Let every module of a collector read a wrong clock."""
    real_time = time.time

    def days() -> int:
        try:
            return int(Path(file).read_text() or "0")
        except FileNotFoundError:
            return 0

    class KindOfDate(type):
        """Counts all real dates as instances of a replacement."""

        def __instancecheck__(cls, value: object) -> bool:
            return isinstance(value, cls.__mro__[1])

    class WrongDate(datetime.date, metaclass=KindOfDate):
        @classmethod
        def today(cls) -> datetime.date:  # type: ignore[override]
            return datetime.date.today() + datetime.timedelta(days())

    class WrongDatetime(datetime.datetime, metaclass=KindOfDate):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> datetime.datetime:  # type: ignore[override]
            return datetime.datetime.now(tz) + datetime.timedelta(days())

        @classmethod
        def today(cls) -> datetime.datetime:  # type: ignore[override]
            return cls.now()

    wrong_module = ModuleType("datetime")
    vars(wrong_module).update(vars(datetime), date=WrongDate, datetime=WrongDatetime)
    replacements = {
        id(datetime): wrong_module,
        id(datetime.date): WrongDate,
        id(datetime.datetime): WrongDatetime,
    }
    time.time = lambda: real_time() + days() * SECONDS_PER_DAY
    for module in collector_modules():
        for name, value in list(vars(module).items()):
            if id(value) in replacements:
                setattr(module, name, replacements[id(value)])


def collector_modules() -> list[ModuleType]:
    """Return the modules of deniable that a collector imports."""
    for name in MODULES:
        importlib.import_module(name)
    return [module for name, module in sys.modules.items() if name.startswith("deniable.")]
