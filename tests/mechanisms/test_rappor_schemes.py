"""google/rappor's published test vectors, and the parameters that its clients do not support."""

from __future__ import annotations

from itertools import cycle, islice

import pytest

from deniable.errors import InputError
from deniable.mechanisms import Bloom, Domain, Noise, prf
from deniable.mechanisms.rappor_schemes import (
    RapporCpp,
    RapporJava,
    RapporPython,
    hmac_drbg,
    prr_masks,
)

HALF = 2**30  # φ of f = .5


def test_python_client() -> None:
    bloom = Bloom(
        noise=Noise.of(p=0.5, q=0.75, f=0.5), bits=16, hashes=2, cohorts=1,
        scheme_name="rappor-python",
    )  # fmt: skip
    assert set(bloom.positions(b"abc", 0)) == {6, 13}
    assert bloom.true_bits(b"abc", 0) == 8256
    stream = RapporPython().stream(8256, 16, b"", b"secret")
    assert prr_masks(stream, 16, HALF) == (50360, 56237)
    assert bloom.permanent(8256, 0, b"secret") == 57576
    draws = b"".join(int(x * 2**32).to_bytes(4, "big") for x in islice(cycle((0, 0.6, 0)), 32))
    got = bloom.encode(b"abc", cohort=0, secret=b"secret", rand=draws)
    assert int.from_bytes(got, "little") == 64493


@pytest.mark.parametrize(
    ("message", "masks"), [(b"v1", (17, 58)), (b"v2", (3, 159)), (b"v3", (150, 202))]
)
def test_python_prr_masks(message: bytes, masks: tuple[int, int]) -> None:
    assert prr_masks(prf.prf(b"secret", message), 8, HALF) == masks


@pytest.mark.parametrize(
    ("word", "row"),
    [
        ("apple", [5, 1, 26, 26, 38, 34, 63, 62]),
        ("banana", [12, 14, 28, 24, 37, 34, 62, 49]),
        ("carrot", [4, 12, 25, 21, 48, 38, 61, 54]),
    ],
)
def test_map_rows(word: str, row: list[int]) -> None:
    """Their map files count bits from 1, one cohort after the other."""
    scheme = RapporPython()
    got = [
        cohort * 16 + bit + 1
        for cohort in range(4)
        for bit in scheme.positions(word.encode(), cohort, 16, 2, b"")
    ]
    assert got == row


CPP = RapporCpp()
CPP_NOISE = Noise.of(p=0.75, q=0.5, f=0.25)
RANDOM = bytes(17 * i % 256 for i in range(128))


def cpp(bits: int, width: int) -> int:
    """Return the bits with permanent and fresh noise of their C++ client named "metric-name"."""
    stream = CPP.stream(bits, width, b"metric-name", b"client-secret")
    uniform, mask = prr_masks(stream, width, CPP_NOISE.flip)
    permanent = (bits & ~mask) | (uniform & mask)
    return CPP.fresh(permanent, width, CPP_NOISE, RANDOM[: 2 * width])


def cpp_filter(value: bytes, cohort: int, width: int) -> int:
    bits = 0
    for position in CPP.positions(value, cohort, width, 2, b""):
        bits |= 1 << position
    return bits


def test_cpp_client_of_32_bits() -> None:
    cohort = int.from_bytes(prf.prf(b"client-secret", b"")[:4], "little") & 127
    assert cohort == 3
    assert cpp(cpp_filter(b"foo", 3, 32), 32) == 3892252415
    assert cpp(cpp_filter(b"foo", 4, 32), 32) == 2751400319
    assert cpp(0x123, 32) == 2279542015


def test_cpp_client_of_64_bits() -> None:
    out = cpp(cpp_filter(b"foo", 93, 64), 64)
    assert list(out.to_bytes(8, "big")) == [167, 255, 14, 255, 248, 127, 240, 255]


def test_cpp_cohort_with_hmac_drbg() -> None:
    assert int.from_bytes(hmac_drbg(b"client-secret", b"", 32)[:4], "little") & 127 == 93


def test_java_client_hashes_two_bytes_big_endian() -> None:
    assert sorted(RapporJava().positions(b"Whizbang", 3, 12, 2, b"")) == [6, 7]


def test_inside_a_survey_slots_do_not_share_noise() -> None:
    """Their clients would share noise; ours derive one secret per question and slot."""
    bloom = Bloom(
        noise=Noise.of(p=0.25, q=0.75, f=0.5), bits=32, hashes=2, scheme_name="rappor-python"
    )
    one, other = (bloom.within(Domain("s", "q", slot)) for slot in ("gram:0", "gram:1"))
    assert one.permanent(5, 0, b"secret") != other.permanent(5, 0, b"secret")
    assert one.positions(b"abc", 0) == other.positions(b"abc", 0)


@pytest.mark.parametrize(
    ("scheme", "changes", "says"),
    [
        ("rappor-python", {"bits": 64}, "at most 32 bits"),
        ("rappor-python", {"f": 0.3}, "multiple of 1/128"),
        ("rappor-cpp", {"p": 0.1}, "multiples of 1/256"),
        ("rappor-cpp", {"hashes": 17}, "at most 16 hashes"),
        ("rappor-cpp", {"bits": 1024, "hashes": 9}, "at most 8 hashes"),
        ("rappor-java", {"hashes": 9}, "8 hashes"),
        ("rappor-cobol", {}, "unknown scheme"),
    ],
)
def test_unsupported_parameters_are_refused(
    scheme: str, changes: dict[str, float], says: str
) -> None:
    given = {"p": 0.25, "q": 0.75, "f": 0.0, "bits": 32, "hashes": 2} | changes
    noise = Noise.of(p=given["p"], q=given["q"], f=given["f"])
    with pytest.raises(InputError, match=says):
        Bloom(noise=noise, bits=int(given["bits"]), hashes=int(given["hashes"]), scheme_name=scheme)
