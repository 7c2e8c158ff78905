"""Models of strings: probabilities by hand, by enumeration, and compared with each other."""

import itertools

import numpy as np
import pytest

from deniable.discovery.shared.string_models import CharacterModel, Lexicon
from deniable.errors import InputError
from deniable.kernels.search.spelling import ASTRAY, END, RUN, STAY, WORD
from deniable.protocols.alphabet import Alphabet
from tests.discovery.inputs import rows_of

ABC = Alphabet("abc")
WORDS = {"ab": 3.0, "abc": 1.0, "b": 1.0}


def written(text: str, words: dict[str, float], ended: bool = True) -> float:
    """Return the probability of exactly this text, or of this beginning, summed over all ways."""
    whole = sum(words.values())

    def start(rest: str) -> float:
        if not rest:
            return END + RUN * run("") if ended else 1.0
        total = RUN * run(rest)
        for word, weight in words.items():
            if rest.startswith(word):
                total += WORD * weight / whole * start(rest[len(word) :])
            elif word.startswith(rest) and not ended:
                total += WORD * weight / whole
        return total

    def run(rest: str) -> float:
        """Return uniform probabilities: a quarter for each of three characters and the end."""
        if not rest:
            return 0.25 if ended else 1.0
        return 0.25 * (STAY * run(rest[1:]) + (1 - STAY) * start(rest[1:]))

    return start(text)


def astray(text: str, words: dict[str, float]) -> float:
    """Return the same if any character, and the end, may come from the character model."""
    begins = [written(text[:n], words, ended=False) for n in range(len(text) + 1)]
    steps = [after / before for before, after in itertools.pairwise(begins)]
    steps.append(written(text, words) / begins[-1])
    return float(np.prod([(1 - ASTRAY) * step + ASTRAY * 0.25 for step in steps]))


@pytest.mark.parametrize("text", ["", "a", "b", "ab", "abc", "abab", "babc", "cabbab", "ccc"])
def test_probability_of_a_string_sums_over_all_ways_to_write_it(text: str) -> None:
    lexicon = Lexicon.of_words(ABC, WORDS, 8)
    code = lexicon.description_length(rows_of(ABC, [text], 8))
    assert np.exp(-code)[0] == pytest.approx(astray(text, WORDS), rel=1e-4)


def test_a_string_that_deviates_from_a_word_is_little_less_likely() -> None:
    alphabet = Alphabet("abcdefghijklmnopqrstuvwxyz")
    plain = CharacterModel.uniform(alphabet)
    lexicon = Lexicon.of_words(alphabet, ["ottering", "otterino", "otterina"], 8)
    rows = rows_of(alphabet, ["otterinx", "xotterin"], 8)
    assert (lexicon.description_length(rows) - plain.description_length(rows) < 3.5).all()


@pytest.mark.slow
def test_the_next_symbols_sum_to_one_after_any_prefix() -> None:
    lexicon = Lexicon.of_words(ABC, WORDS, 8).trained(rows_of(ABC, ["abba", "cab"], 8))
    for length in range(4):
        rows = rows_of(ABC, ["".join(c) for c in itertools.product("abc", repeat=length)], 8)
        np.testing.assert_allclose(
            np.exp(lexicon.next_symbol(rows, length)).sum(axis=1), 1, rtol=1e-5
        )


def test_words_are_likelier_than_by_characters_alone() -> None:
    alphabet = Alphabet("abcdefghijklmnopqrstuvwxyz")
    plain = CharacterModel.uniform(alphabet)
    lexicon = Lexicon.of_words(alphabet, ["otter", "badger", "lynx"], 12)
    rows = rows_of(alphabet, ["otter", "otterlynx", "qzvvkx"], 12)
    saved = plain.description_length(rows) - lexicon.description_length(rows)
    assert saved[0] > 10
    assert saved[1] > 18
    assert saved[2] > -3


def test_words_outside_the_alphabet_are_left_out_and_weights_are_checked() -> None:
    lexicon = Lexicon.of_words(ABC, ["ab", "xyz", ""], 8)
    assert lexicon.ends.sum() == pytest.approx(1)
    with pytest.raises(InputError, match="expected a positive number"):
        Lexicon.of_words(ABC, {"ab": 0.0}, 8)
