"""A hundred domain names that web pages load from, most common first."""

from __future__ import annotations

from importlib.resources import files


def top_domains() -> tuple[str, ...]:
    """The names; the trial with URLs gives them weights ∝ exp(−rank/25).

    >>> top_domains()[:2]
    ('google.com', 'facebook.com')
    """
    text = files("deniable.simulation").joinpath("data/top100_domains.txt").read_text("utf-8")
    return tuple(text.split())
