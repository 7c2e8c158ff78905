"""Results as text, plots and web pages."""

from deniable.render.view import View, shows, view_of
from deniable.render.views import joint_view, plan_view, trend_view, values_view

__all__ = ["View", "joint_view", "plan_view", "shows", "trend_view", "values_view", "view_of"]
