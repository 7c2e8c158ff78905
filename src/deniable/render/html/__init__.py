"""Results as pages: one self-contained file, and the parts that a served page is made of."""

from deniable.render.html.report_page import report

__all__ = ["report"]
