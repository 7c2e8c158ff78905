"""The definitions, one bit at a time in plain Python: what every kernel must equal."""

import hashlib

CERTAIN = 1 << 32
MASK = (1 << 64) - 1


def levels_of(if_zero: int, if_one: int, digits: int = 32) -> int:
    open_ones = [t for t in (if_zero, if_one) if 0 < t < 1 << digits]
    zeros = [len(bin(t)) - len(bin(t).rstrip("0")) for t in open_ones]
    return digits - min(zeros) if zeros else 0


class Xoshiro:
    """xoshiro256++, from its authors' description."""

    def __init__(self, seed: list[int]) -> None:
        self.s = list(seed)

    def next(self) -> int:
        s = self.s
        result = (_rotl((s[0] + s[3]) & MASK, 23) + s[0]) & MASK
        t = s[1] << 17 & MASK
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = _rotl(s[3], 45)
        return result


def _rotl(x: int, by: int) -> int:
    return (x << by | x >> (64 - by)) & MASK


class Block:
    """Sixty-four generators that randomise sixty-four words together, one word each per level."""

    def __init__(self, seed: list[int]) -> None:
        self.sources = [Xoshiro(seed[i::64]) for i in range(64)]

    def noise(self, words: list[int], if_zero: int, if_one: int, digits: int) -> list[int]:
        """Randomise up to 64 words; all generators draw while any lane of any word is undecided."""
        thresholds = [[if_one if w >> i & 1 else if_zero for i in range(64)] for w in words]
        out = [sum((t == 1 << digits) << i for i, t in enumerate(row)) for row in thresholds]
        waiting = {
            (w, i)
            for w, row in enumerate(thresholds)
            for i, t in enumerate(row)
            if 0 < t < 1 << digits
        }
        for level in range(levels_of(if_zero, if_one, digits)):
            if not waiting:
                break
            drawn = [source.next() for source in self.sources]
            for w, i in list(waiting):
                u, digit = drawn[w] >> i & 1, thresholds[w][i] >> (digits - 1 - level) & 1
                if u != digit:
                    out[w] |= (u < digit) << i
                    waiting.discard((w, i))
        return out


def noise_reports(
    reports: list[int], k: int, if_zero: int, if_one: int, seed: list[int], digits: int = 32
) -> list[int]:
    """Reports of one chunk with thresholds of 2^digits, in blocks of 64 words."""
    per_report = -(-k // 64)
    words = [r >> 64 * w & MASK for r in reports for w in range(per_report)]
    block = Block(seed)
    for first in range(0, len(words), 64):
        part = words[first : first + 64]
        words[first : first + 64] = block.noise(part, if_zero, if_one, digits)
    rows = [words[first : first + per_report] for first in range(0, len(words), per_report)]
    return [sum(w << 64 * i for i, w in enumerate(row)) & ((1 << k) - 1) for row in rows]


def bloom_bits(header: bytes, value: bytes, cohort: int, hashes: int, k: int) -> list[int]:
    digest = hashlib.sha256(header + value).digest()
    x = int.from_bytes(digest[:8], "little")
    y = int.from_bytes(digest[8:16], "little") | 1
    positions = []
    for j in range(hashes):
        z = (x + (cohort * hashes + j + 1) * y) & MASK
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
        z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
        z ^= z >> 31
        positions.append((z >> 32) * k >> 32)
    return positions
