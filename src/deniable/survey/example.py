"""A small survey for trying things out, and for the examples of docstrings."""

from deniable.survey.survey import Survey

EXAMPLE = """
name = "example"
version = 1
owner = "docs"
description = "an example"
expires = 2099-12-31
collect = "once"
[questions.dark_mode]
kind = "boolean"
epsilon = 1.0
"""


def example_survey() -> Survey:
    """Return a survey with one yes-or-no question, `dark_mode`, at ε = 1.

    Returns
    -------
    Survey
        The survey; it has the same digest every time.

    Examples
    --------
    >>> [question.name for question in example_survey().questions]
    ['dark_mode']
    """
    return Survey.from_toml(EXAMPLE)
