"""Results as text, plots and web pages."""

from deniable.extras import needs_packages

with needs_packages("deniable.render"):
    from deniable.render.view import View, shows, view_of
    from deniable.render.views import (  # noqa: F401
        histogram_view,
        joint_view,
        mechanism_view,
        plan_view,
        shares_view,
        trend_view,
        values_view,
    )

__all__ = ["View", "shows", "view_of"]
