"""The file `store.json` of a folder store, which says what the other files mean."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

from deniable.errors import StoreError

MANIFEST = "store.json"
FORMAT = "deniable-store/2"
READABLE_FORMATS = ("deniable-store/1", FORMAT)


@dataclass(frozen=True)
class Manifest:
    """Content of `store.json`.

    generation : number of changes so far
    loose : files that are not part of the store
    calendar : days that the store has seen, as text; empty in stores of earlier versions
    """

    generation: int = 0
    loose: tuple[str, ...] = ()
    calendar: str = ""

    def to_bytes(self) -> bytes:
        """Return the content of the file."""
        content = {
            "format": FORMAT,
            "generation": self.generation,
            "loose": sorted(self.loose),
            "calendar": self.calendar,
        }
        return json.dumps(content | {"sha256": _hash(content)}).encode()

    @classmethod
    def from_bytes(cls, data: bytes, url: str) -> Manifest:
        """Return the manifest in a file; raise StoreError if it is damaged or of a later format."""
        try:
            content = json.loads(data)
            format, recorded = content["format"], content.pop("sha256", None)
            if format not in READABLE_FORMATS:
                raise StoreError(
                    f"{url} has format {format!r}, but this release supports "
                    f"{' and '.join(READABLE_FORMATS)}: update deniable"
                )
            if recorded is None and format == FORMAT:
                raise KeyError("sha256")
            if recorded not in (None, _hash(content)):
                raise ValueError("its checksum differs")
            loose = tuple(map(str, content["loose"]))
            return cls(int(content["generation"]), loose, str(content.get("calendar", "")))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise StoreError(
                f"{url}/{MANIFEST} is damaged: {error}; restore the store from a backup"
            ) from None


def _hash(content: dict[str, object]) -> str:
    """Return the SHA-256 of the other entries."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
