"""Web pages: self-contained reports, and the files of the pages that a collector serves."""

from deniable.render.html.report_page import report

__all__ = ["report"]
