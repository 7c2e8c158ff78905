"""Every setting of the collector, in one place; docs/how-to/collector.md lists them.

A setting is taken from the command line if it stands there, else from the environment
(`DENIABLE_MAX_BODY`), else from a TOML file (`max_body = 1000000`), else it has its default.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

from deniable.errors import InputError, did_you_mean

T = TypeVar("T")
PREFIX = "DENIABLE_"
MIB = 1 << 20


def _setting(default: T, help: str, least: float | None = None) -> T:
    return field(default=default, metadata={"help": help, "least": least})


@dataclass(frozen=True)
class Settings:
    """How a collector runs. Sizes are in bytes, times in seconds or days."""

    store: str = _setting("", "URL of the store: sqlite:///FILE.db or postgresql://…")
    surveys: tuple[str, ...] = _setting((), "Surveys to collect: published JSON or TOML.")
    host: str = _setting("127.0.0.1", "Address to listen on.")
    port: int = _setting(8080, "Port to listen on.", 1)
    keys: str = _setting("", "File of keys and tokens, made by `deniable keys add`.")
    require_key: bool = _setting(False, "Take uploads with an ingest key only.")
    cors: str = _setting("*", "Origin that pages may upload from; empty for none.")
    cache: int = _setting(3600, "Seconds for which a published survey may be cached.", 0)
    grace: int = _setting(1, "Days after a survey's last one on which reports are taken.", 0)

    max_body: int = _setting(4 * MIB, "Largest body, as sent and decompressed.", 1)
    max_memory: int = _setting(128 * MIB, "Bodies held at once, until they are committed.", 1)
    max_queue: int = _setting(2048, "Uploads that may wait for the store.", 1)
    group: int = _setting(512, "Most uploads in one commit.", 1)
    connections: int = _setting(4096, "Connections open at once; more wait.", 1)
    header_time: float = _setting(10.0, "Seconds to send a request's headers.", 1)
    body_time: float = _setting(15.0, "Seconds to send a body.", 0.1)
    stop_time: float = _setting(4.0, "Seconds that a body may still take at shutdown.", 0)
    reserve: int = _setting(256 * MIB, "Disk space that uploads leave free.", 0)

    compact: int = _setting(3600, "Seconds between compactions; 0 for none.", 0)
    at_least: int = _setting(1000, "Reports that are shuffled together, at the least.", 1)
    keep_days: int = _setting(0, "Delete reports after so many days; 0 keeps them.", 0)
    key_days: int = _setting(7, "Days for which a repeated upload is recognised.", 1)
    log: int = _setting(60, "Seconds between log lines, which hold counts only; 0 for none.", 0)

    def __post_init__(self) -> None:
        for item in fields(self):
            value, least = getattr(self, item.name), item.metadata["least"]
            if least is not None and value < least:
                raise InputError(f"expected {item.name} of {least} or more, got {value}")
        if self.max_memory < 2 * self.max_body:
            raise InputError(
                f"expected max_memory of at least two bodies ({2 * self.max_body}), one as sent "
                f"and one decompressed; got {self.max_memory}"
            )
        if self.require_key and not self.keys:
            raise InputError("require_key needs keys: make a file with `deniable keys add`")

    @classmethod
    def load(
        cls,
        flags: Mapping[str, object],
        environment: Mapping[str, str] = os.environ,
        file: str | Path | None = None,
    ) -> Settings:
        """Return settings by name: flags first, then the environment, then the file."""
        defaults = {item.name: item.default for item in fields(cls)}
        values: dict[str, Any] = {}
        if file is not None:
            for name, value in _from_file(Path(file)).items():
                if name not in defaults:
                    hint = did_you_mean(name, defaults) or f" Settings: {', '.join(defaults)}."
                    raise InputError(f"{file}: there is no setting {name!r}.{hint}")
                values[name] = _of_kind(defaults[name], value, f"{file}: {name}")
        for name, default in defaults.items():
            if (text := environment.get(PREFIX + name.upper())) is not None:
                values[name] = _parsed(default, text, PREFIX + name.upper())
        return cls(**{**values, **flags})


def _from_file(path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not TOML: {error}") from None


def _of_kind(default: object, value: object, where: str) -> object:
    """Return a value from TOML, of the same kind as the default."""
    if isinstance(default, tuple):
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return tuple(value)
        raise InputError(f"{where}: expected a list of texts, got {value!r}")
    if isinstance(default, float) and type(value) is int:
        return float(value)
    if type(value) is not type(default):
        raise InputError(f"{where}: expected {type(default).__name__}, got {value!r}")
    return value


def _parsed(default: Any, text: str, where: str) -> object:
    """Return a value from the environment."""
    truth = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
    if isinstance(default, tuple):
        return tuple(text.split())
    try:
        return truth[text.lower()] if isinstance(default, bool) else type(default)(text)
    except (KeyError, ValueError):
        wanted = "yes or no" if isinstance(default, bool) else type(default).__name__
        raise InputError(f"{where}: expected {wanted}, got {text!r}") from None
