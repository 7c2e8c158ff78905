"""Results of the verbs: immutable, with their uncertainty and provenance; no drawing."""

from deniable.extras import needs_packages

with needs_packages("deniable.results"):
    from deniable.results.association import AssociationTest, Correlation, EffectSize
    from deniable.results.base import Provenance, Result
    from deniable.results.change import Change
    from deniable.results.consistent import ConsistentShares
    from deniable.results.covariance import Covariance, Interval
    from deniable.results.discovery import Discovery, GramGraph, Stage
    from deniable.results.fit_check import FitCheck
    from deniable.results.histogram import Histogram, Quantity
    from deniable.results.joint import Joint
    from deniable.results.marginal import Marginal, Measured
    from deniable.results.mechanism_table import MechanismRow, MechanismTable
    from deniable.results.periods import Trend
    from deniable.results.rows import CellRow, ChangeRow, ShareRow, ValueRow
    from deniable.results.survey_plan import Plan, QuestionDesign

__all__ = [
    "AssociationTest",
    "CellRow",
    "Change",
    "ChangeRow",
    "ConsistentShares",
    "Correlation",
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
    "MechanismRow",
    "MechanismTable",
    "Plan",
    "Provenance",
    "Quantity",
    "QuestionDesign",
    "Result",
    "ShareRow",
    "Stage",
    "Trend",
    "ValueRow",
]
