"""All settings of the collector; docs/how-to/collector.md lists them.

The value of a setting comes from the command line, or else from the environment
(`DENIABLE_MAX_BODY`), or else from a TOML file (`max_body = 1000000`), or else it is the default.
"""

from __future__ import annotations

import math
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

from deniable.client.outbox import RETRY_PERIOD
from deniable.collector.logs import FORMATS
from deniable.errors import InputError, did_you_mean
from deniable.text_files import read_text

T = TypeVar("T")
ENVIRONMENT_PREFIX = "DENIABLE_"
OTHER_VARIABLES = ("DENIABLE_FOLDER", "DENIABLE_TOKEN")
"""Variables of other commands."""
MIB = 1 << 20
MIN_SHUFFLED = 1000
"""Default of `at_least`."""
RETRY_DAYS = math.ceil(RETRY_PERIOD / 86400)
"""Days for which clients retry an upload under the same key."""
MIN_KEY_DAYS = RETRY_DAYS + 1
"""Six times 24 hours may touch seven days."""
TYPE_NAMES = {bool: "yes or no", int: "a whole number", float: "a number", str: "a string"}
"""Types of settings, as error messages name them."""
MAX_VALUES = {
    "port": (1 << 16) - 1,
    **dict.fromkeys(("max_body", "max_memory", "job_memory", "reserve"), 1 << 50),
    **dict.fromkeys(("grace", "keep_days", "key_days"), 36_500),
}
"""Largest values of settings in bytes and days, which dates and counters can hold."""
MAX_OTHER_VALUE = 10**9
"""Largest value of every other setting."""


def _setting(default: T, help: str, minimum: float | None = None) -> T:
    """Return a dataclass field with a help text and the smallest allowed value."""
    return field(default=default, metadata={"help": help, "minimum": minimum})


def check_key_days(name: str, days: int) -> None:
    """Raise InputError if idempotency keys are kept for so few days that a retry counts twice."""
    if days < MIN_KEY_DAYS:
        raise InputError(
            f"{name} must be at least {MIN_KEY_DAYS}, not {days}: clients retry an upload for "
            f"{RETRY_DAYS} times 24 hours, and a retry that is not recognised is counted twice"
        )


@dataclass(frozen=True)
class Settings:
    """Settings of a collector. Sizes are in bytes, times in seconds or days."""

    store: str = _setting("", "Store for the reports: sqlite:///FILE.db or postgresql://…")
    surveys: tuple[str, ...] = _setting((), "Surveys to collect: published JSON or TOML.")
    host: str = _setting("127.0.0.1", "Address to listen on.")
    port: int = _setting(8080, "Port to listen on.", 1)
    keys: str = _setting("", "File of access keys, written by `deniable keys add`.")
    require_key: bool = _setting(False, "Accept only uploads with an ingest or gateway key.")
    cors: str = _setting("*", "Origin of the web pages that may upload: * for all, empty for none.")
    cache: int = _setting(3600, "Seconds for which clients may cache a published survey.", 0)
    grace: int = _setting(1, "Days for which reports are accepted after a survey's last day.", 0)

    max_body: int = _setting(4 * MIB, "Maximum size of an upload in bytes, compressed or not.", 1)
    max_memory: int = _setting(128 * MIB, "Maximum size of all uploads in memory, in bytes.", 1)
    max_queue: int = _setting(2048, "Maximum number of uploads that wait for the store.", 1)
    group: int = _setting(512, "Maximum number of uploads per commit.", 1)
    header_time: float = _setting(10.0, "Seconds within which a request's headers must arrive.", 1)
    body_time: float = _setting(15.0, "Seconds within which an upload must arrive.", 0.1)
    stop_time: float = _setting(4.0, "Seconds that unfinished uploads get at shutdown.", 0)
    reserve: int = _setting(256 * MIB, "Bytes of disk space that uploads must leave free.", 0)

    job_memory: int = _setting(2048 * MIB, "Maximum memory of an analysis, in bytes.", 256 * MIB)
    job_time: float = _setting(3600.0, "Maximum running time of an analysis, in seconds.", 1)

    compact: int = _setting(3600, "Seconds between runs of deniable compact; 0 disables them.", 0)
    at_least: int = _setting(
        MIN_SHUFFLED,
        "Minimum number of other reports to shuffle an upload with; analysts see it only then.",
        1,
    )
    keep_days: int = _setting(0, "Days after which reports are deleted; 0 (default) keeps them.", 0)
    key_days: int = _setting(
        MIN_KEY_DAYS, "Days for which a repeated upload is recognised; clients retry for six.", 1
    )
    clock_is_right: bool = _setting(
        False, "Trust the clock at this start, whatever the last day of the store is."
    )
    log: int = _setting(60, "Seconds between log lines, which hold only counts; 0 disables.", 0)
    log_format: str = _setting("text", "Format of the log: text, or json for programs.")

    def __post_init__(self) -> None:
        for item in fields(self):
            value, minimum = getattr(self, item.name), item.metadata["minimum"]
            if minimum is None:
                continue
            if not value >= minimum:
                raise InputError(f"expected {item.name} to be {minimum} or more, got {value}")
            if value > (maximum := MAX_VALUES.get(item.name, MAX_OTHER_VALUE)):
                raise InputError(f"expected {item.name} to be at most {maximum}, got {value}")
        if self.max_memory < 2 * self.max_body:
            raise InputError(
                f"expected max_memory to hold at least two bodies ({2 * self.max_body} bytes), one "
                f"as sent and one decompressed; got {self.max_memory}"
            )
        check_key_days("key_days", self.key_days)
        if self.keep_days and not self.compact:
            raise InputError(
                "keep_days needs compact above 0: old reports are deleted at each compaction. If a "
                "timer runs `deniable compact`, leave keep_days out and let it also run `deniable "
                "store delete STORE SURVEY --older-than DAYS --yes`"
            )
        if self.cors not in ("", "*") and not re.fullmatch(r"https?://[^/\s]+", self.cors):
            raise InputError(
                "cors must be *, empty, or an origin such as https://app.example; got "
                f"{self.cors!r}"
            )
        if self.require_key and not self.keys:
            raise InputError("require_key needs keys, a file written by `deniable keys add`")
        if self.log_format not in FORMATS:
            raise InputError(f"log_format must be text or json; got {self.log_format!r}")

    @property
    def batch_warning(self) -> str | None:
        """What analysts and operators are told if batches are smaller than by default."""
        if self.at_least >= MIN_SHUFFLED:
            return None
        return (
            f"for development only: analysts see batches of {self.at_least + 1:,} reports, where "
            f"{MIN_SHUFFLED + 1:,} is the default"
        )

    @classmethod
    def load(
        cls,
        flags: Mapping[str, object],
        environment: Mapping[str, str] = os.environ,
        file: str | Path | None = None,
    ) -> Settings:
        """Return the settings from flags, or else the environment, or else a TOML file.

        flags : values of options on the command line, by name of the setting
        """
        defaults = {item.name: item.default for item in fields(cls)}
        values: dict[str, Any] = {}
        if file is not None:
            for name, value in _from_file(Path(file)).items():
                if isinstance(value, dict):
                    raise InputError(
                        f"{file}: settings stand at the top level of the file: remove [{name}]"
                    )
                if name not in defaults:
                    hint = did_you_mean(name, defaults) or f" Settings: {', '.join(defaults)}."
                    raise InputError(f"{file}: there is no setting {name!r}.{hint}")
                values[name] = _check_type(defaults[name], value, f"{file}: {name}")
        if unknown := unknown_variables(environment):
            raise InputError(f"{unknown[0]} Remove it, or correct its name.")
        for name, default in defaults.items():
            if (text := environment.get(ENVIRONMENT_PREFIX + name.upper())) is not None:
                values[name] = _parse(default, text, ENVIRONMENT_PREFIX + name.upper())
        return cls(**{**values, **flags})


def unknown_variables(environment: Mapping[str, str] = os.environ) -> list[str]:
    """Return one sentence for each variable that looks like ours and is none."""
    settings = [ENVIRONMENT_PREFIX + item.name.upper() for item in fields(Settings)]
    known = (*settings, *OTHER_VARIABLES)
    return [
        f"{variable} is not a setting.{did_you_mean(variable, known)}"
        for variable in environment
        if variable.startswith(ENVIRONMENT_PREFIX) and variable not in known
    ]


def _from_file(path: Path) -> dict[str, object]:
    """Return the content of a TOML file."""
    try:
        return tomllib.loads(read_text(path))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"{path} is not valid TOML: {error}") from None


def _check_type(default: object, value: object, where: str) -> object:
    """Return a value from TOML with the type of the default, or raise InputError."""
    if isinstance(default, tuple):
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return tuple(value)
        raise InputError(f"{where}: expected a list of strings, got {value!r}")
    if isinstance(default, float) and type(value) is int:
        return float(value)
    if type(value) is not type(default):
        raise InputError(f"{where}: expected {TYPE_NAMES[type(default)]}, got {value!r}")
    return value


def _parse(default: Any, text: str, where: str) -> object:
    """Return a value from the environment with the type of the default, or raise InputError."""
    truth = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
    if isinstance(default, tuple):
        return tuple(text.split())
    try:
        return truth[text.lower()] if isinstance(default, bool) else type(default)(text)
    except (KeyError, ValueError):
        raise InputError(f"{where}: expected {TYPE_NAMES[type(default)]}, got {text!r}") from None
