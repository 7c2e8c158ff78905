"""Unusual strings: Unicode as bytes, truncated characters, trailing spaces, unknown characters."""

from __future__ import annotations

import numpy as np
import pytest

from deniable import associate, decode, discover, simulate
from deniable.columns import ReportBatch
from deniable.protocols import Alphabet
from deniable.results import Discovery, Result
from deniable.simulation import Population
from deniable.survey import Survey
from tests.surveys import survey_toml

# These strings are too long, or have characters outside the alphabet, on purpose.
pytestmark = pytest.mark.filterwarnings("ignore::deniable.errors.LossyAnswerWarning")
TOML = survey_toml(
    """
[questions.s]
kind = "string"
{mechanism}
[questions.s.dictionary]
{protocol}
max_length = {length}
alphabet = "{alphabet}"
[questions.b]
kind = "boolean"
epsilon = 3.0
""",
    name="alphabets",
)
WHOLE = ('mechanism = "localhash"\nepsilon = 4.4', 'protocol = "prefixes"')
PREFIXES = (WHOLE[0], 'protocol = "prefixes"\nlevels = [2, 3, 3]')
NGRAMS = ("p = 0.05\nq = 0.9\nbits = 64\ncohorts = 16", 'protocol = "ngrams"\ngram = 1\ngrams = 2')
# 2, 3, 4, 4, 2 and 3 bytes; the third and fourth are cut at 3, inside a character.
UNICODE = {"ν": 0.25, "€": 0.2, "να": 0.2, "😀": 0.15, "ok": 0.12, "ok ": 0.08}
SHOWN = {"να": "ν\\xce", "😀": "\\xf0\\x9f\\x98"}


def survey(settings: tuple[str, str], alphabet: str, length: int) -> Survey:
    mechanism, protocol = settings
    return Survey.from_toml(
        TOML.format(mechanism=mechanism, protocol=protocol, length=length, alphabet=alphabet)
    )


def reports(s: Survey, shares: dict[str, float], clients: int, seed: int = 1) -> ReportBatch:
    rng = np.random.default_rng(seed)
    drawn = Population(tuple(shares), np.array(list(shares.values()))).draw(clients, rng)
    return simulate(s, {"s": drawn, "b": [True, False] * (clients // 2)}, rng=rng)


@pytest.mark.slow
@pytest.mark.parametrize("settings", [WHOLE, PREFIXES, NGRAMS])
def test_unicode_is_found_as_bytes(settings: tuple[str, str]) -> None:
    """6 strings, two estimates, three times: 4.5 standard errors are exceeded once in 4,000."""
    s = survey(settings, "bytes", 3)
    batch = reports(s, UNICODE, 10_000)
    found = discover(s, batch, "s")
    truth = {SHOWN.get(text, text): share for text, share in UNICODE.items()}
    assert set(found.strings) == set(truth), "a cut character is shown; blanks are no padding"
    assert found.mass_at_end is not None
    assert found.mass_at_end.low < 0.2 + 0.2 + 0.15 + 0.08 < found.mass_at_end.high
    again = Result.from_json(found.to_json())
    assert isinstance(again, Discovery)
    # A text cannot represent a truncated character; symbols can.
    decoded = decode(s, batch, "s", again)
    shares = np.array([truth[text] for text in found.strings])
    assert decoded.detected.all()
    for estimate, error in (
        (found.estimate, found.standard_error),
        (decoded.estimate, decoded.standard_error),
    ):
        assert (np.abs(estimate - shares) < 4.5 * error).all()
    joint = associate(s, batch, ["s", "b"], candidates={"s": found})
    assert "ν\\xce" in joint.labels[0] and joint.margin("s").estimate[:6].sum() > 0.9
    assert "'ok '" in str(found), "blanks at the end are seen"


@pytest.mark.slow
def test_characters_outside_the_alphabet_are_one_symbol() -> None:
    """n-grams discover such strings; prefixes do not, but count them if they are listed."""
    shares = {"na\N{LATIN SMALL LETTER I WITH DIAERESIS}f": 0.4, "cafe": 0.4, "\N{SNOWMAN}": 0.2}
    shown = {"na\N{REPLACEMENT CHARACTER}f", "cafe", "\N{REPLACEMENT CHARACTER}"}
    s = survey(NGRAMS, "a-z", 4)
    batch = reports(s, shares, 20_000)
    found = discover(s, batch, "s")
    assert set(found.strings) == shown
    assert decode(s, batch, "s", found).estimate == pytest.approx(found.estimate)
    s = survey(WHOLE, "a-z", 4)
    batch = reports(s, shares, 20_000)
    assert discover(s, batch, "s").strings == ("cafe",)
    listed = decode(s, batch, "s", tuple(shares))
    truth = np.array(list(shares.values()))
    # 4.5 standard errors for each of three: once in 50,000.
    assert (np.abs(listed.estimate - truth) < 4.5 * listed.standard_error).all()


def test_cut_characters_of_all_lengths_are_shown() -> None:
    whole = Alphabet(None).symbols("é€😀", 9)
    shown = [Alphabet(None).text(whole[:n]) for n in range(10)]
    assert shown == ["", "\\xc3", "é", "é\\xe2", "é\\xe2\\x82", "é€", "é€\\xf0", "é€\\xf0\\x9f",
                     "é€\\xf0\\x9f\\x98", "é€😀"]  # fmt: skip
