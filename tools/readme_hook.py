"""README.md as the description of the package: links that work outside the repository.

The build backend calls `ReadmeHook`. Pages of a package index do not have the repository's files.
Links to them therefore become links to the repository, at the version's tag, if `[project.urls]`
names it (`Repository`). Otherwise only their text stays, and pictures are left out.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

CODE = re.compile(r"(^ *```.*?^ *```|`[^`\n]*`)", re.DOTALL | re.MULTILINE)
PICTURE = re.compile(r"!\[([^]]*)\]\((?![a-z]+:)([^)\s]+)\)\n*")
LINK = re.compile(r"(?<!!)\[([^]]*)\]\((?![a-z]+:|#)([^)\s]+)\)")


def for_package(text: str, repository: str, version: str) -> str:
    """Return a page with links that do not depend on where it is shown.

    Parameters
    ----------
    text : the page, in Markdown
    repository : address of the repository, or "" if there is none
    version : version whose tag the links lead to

    Examples
    --------
    >>> for_package("See [the tutorial](docs/tutorial.md).", "", "1.0")
    'See the tutorial.'
    >>> for_package("See [the tutorial](docs/tutorial.md).", "https://example.org/us/it", "1.0")
    'See [the tutorial](https://example.org/us/it/blob/v1.0/docs/tutorial.md).'
    """
    base = repository.rstrip("/")
    picture = rf"![\1]({base}/raw/v{version}/\2)\n\n" if repository else ""
    link = rf"[\1]({base}/blob/v{version}/\2)" if repository else r"\1"
    text = PICTURE.sub(picture, text)
    # Code is hidden while links are replaced: it may look like a link, and may be part of one.
    kept: list[str] = []

    def hide(match: re.Match[str]) -> str:
        kept.append(match[0])
        return f"\x00{len(kept) - 1}\x00"

    text = LINK.sub(link, CODE.sub(hide, text))
    return re.sub("\x00(\\d+)\x00", lambda match: kept[int(match[1])], text)


class ReadmeHook(MetadataHookInterface):
    """Sets the description of the package."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the field `readme` to the metadata."""
        repository = metadata.get("urls", {}).get("Repository", "")
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        text = for_package(text, repository, metadata["version"])
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
