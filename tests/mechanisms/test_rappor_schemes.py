"""google/rappor's hash functions against its vectors, and parameters beyond its clients."""

from __future__ import annotations

import hashlib

import pytest

from deniable.errors import InputError
from deniable.mechanisms import Bloom, Noise
from deniable.mechanisms.rappor_schemes import RapporCpp, RapporJava, RapporPython


def test_python_client() -> None:
    assert set(RapporPython().positions(b"abc", 0, 16, 2, b"")) == {6, 13}


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


def test_cpp_client_takes_two_bytes_per_hash_above_256_bits() -> None:
    """Little-endian; up to 256 bits it hashes as the Python client does."""
    md5 = hashlib.md5(b"\0\0\0\3foo").digest()
    expected = tuple(int.from_bytes(md5[i : i + 2], "little") % 1000 for i in (0, 2))
    assert RapporCpp().positions(b"foo", 3, 1000, 2, b"") == expected
    cpp, python = (each.positions(b"foo", 3, 32, 2, b"") for each in (RapporCpp(), RapporPython()))
    assert cpp == python == (md5[0] % 32, md5[1] % 32)


def test_java_client_hashes_two_bytes_big_endian() -> None:
    assert sorted(RapporJava().positions(b"Whizbang", 3, 12, 2, b"")) == [6, 7]


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
