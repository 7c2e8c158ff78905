"""Surveys, which analysts and clients agree on, and the bytes of reports."""

from deniable.survey.example import example_survey
from deniable.survey.report import Answer, Report, from_batch, from_bytes, to_batch, to_bytes
from deniable.survey.survey import Question, Survey
from deniable.survey.survey import SurveyOrPath as SurveyOrPath

__all__ = [
    "Answer",
    "Question",
    "Report",
    "Survey",
    "example_survey",
    "from_batch",
    "from_bytes",
    "to_batch",
    "to_bytes",
]
