"""Web pages: self-contained reports, and the files of the pages that a collector serves."""

from typing import TYPE_CHECKING

from deniable.lazy import lazy_exports

if TYPE_CHECKING:
    from deniable.render.html.report_page import report

__all__ = ["report"]

# The views read the style of the pages, and a report is made of views.
__getattr__ = lazy_exports(__name__, {"deniable.render.html.report_page": __all__})
