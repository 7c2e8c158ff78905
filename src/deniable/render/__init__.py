"""Results as text, plots and web pages."""

from deniable.extras import needs_packages

with needs_packages("deniable.render"):
    from deniable.render.view import View, shows, view_of

__all__ = ["View", "shows", "view_of"]
