"""Results of the verbs: immutable, with their uncertainty and provenance; no drawing.

Names are imported on first use: an analysis needs the classes of its own results only.
"""

from typing import TYPE_CHECKING

from deniable.lazy import lazy_exports

if TYPE_CHECKING:
    from deniable.results.association import AssociationTest, EffectSize
    from deniable.results.base import Provenance, Result
    from deniable.results.change import Change
    from deniable.results.covariance import Covariance, Interval
    from deniable.results.discovery import Discovery, GramGraph, Stage
    from deniable.results.fit_check import FitCheck
    from deniable.results.histogram import Histogram, Quantity
    from deniable.results.joint import Joint
    from deniable.results.marginal import Marginal, Measured
    from deniable.results.periods import Trend
    from deniable.results.rows import CellRow, ChangeRow, ValueRow
    from deniable.results.survey_plan import Plan, QuestionDesign

__all__ = [
    "AssociationTest",
    "CellRow",
    "Change",
    "ChangeRow",
    "Covariance",
    "Discovery",
    "EffectSize",
    "FitCheck",
    "GramGraph",
    "Histogram",
    "Interval",
    "Joint",
    "Marginal",
    "Measured",
    "Plan",
    "Provenance",
    "Quantity",
    "QuestionDesign",
    "Result",
    "Stage",
    "Trend",
    "ValueRow",
]

_LATER = {
    "deniable.results.association": ["AssociationTest", "EffectSize"],
    "deniable.results.base": ["Provenance", "Result"],
    "deniable.results.change": ["Change"],
    "deniable.results.covariance": ["Covariance", "Interval"],
    "deniable.results.discovery": ["Discovery", "GramGraph", "Stage"],
    "deniable.results.fit_check": ["FitCheck"],
    "deniable.results.histogram": ["Histogram", "Quantity"],
    "deniable.results.joint": ["Joint"],
    "deniable.results.marginal": ["Marginal", "Measured"],
    "deniable.results.periods": ["Trend"],
    "deniable.results.rows": ["CellRow", "ChangeRow", "ValueRow"],
    "deniable.results.survey_plan": ["Plan", "QuestionDesign"],
}
__getattr__ = lazy_exports(__name__, _LATER)
