"""Surveys for tests: a header that nobody has to read, and the questions that matter."""

from __future__ import annotations

import math

from deniable.client import SurveyLimits
from deniable.survey import Survey

ANY_SURVEY = SurveyLimits(epsilon=math.inf, groups=math.inf)
"""Limits of a device that answers surveys beyond what programs should accept."""

EDITOR_AND_PAGE = """
[questions.editor]
kind = "choice"
options = ["vim", "emacs"]
epsilon = 1
[questions.page]
kind = "string"
epsilon = 2
[questions.page.dictionary]
protocol = "prefixes"
max_length = 4
alphabet = "a-z"
levels = [2, 4]
"""
"""Questions whose reports lose answers that are no option, too long, or not in the alphabet."""


def survey_toml(questions: str = "", **header: object) -> str:
    """Return the text of a survey file with these questions.

    Parameters
    ----------
    questions : str
        The tables `[questions.NAME]` as in a survey file.
    header : object
        Settings that differ from version 1, collected once: name, version, owner, description,
        expires (as text), collect or budget. They may hold fields for `str.format`; None leaves a
        setting out.
    """
    settings = {
        "name": "tests",
        "version": 1,
        "owner": "tests",
        "description": "made by tests",
        "expires": "2999-12-31",
        "collect": "once",
        **header,
    }
    quoted = ("name", "owner", "description", "collect")
    lines = [
        f'{key} = "{value}"' if key in quoted else f"{key} = {value}"
        for key, value in settings.items()
        if value is not None
    ]
    return "\n".join(lines) + "\n" + questions


def make_survey(questions: str, **header: object) -> Survey:
    """Return a survey with these questions; see `survey_toml`."""
    return Survey.from_toml(survey_toml(questions, **header))
