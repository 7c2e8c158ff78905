"""Results as pages: one self-contained file, and the parts that a served page is made of."""

from deniable.pages.report import report

__all__ = ["report"]
