"""Results as text, plots and web pages."""

from deniable.extras import needs_packages

with needs_packages("deniable.render"):
    from deniable.render.view import View, shows, view_of
    from deniable.render.views import joint_view, plan_view, trend_view, values_view  # noqa: F401

__all__ = ["View", "shows", "view_of"]
