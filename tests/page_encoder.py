"""A single-report client encoder for scheme deniable-1, written from docs/wire.md alone."""

import hashlib
import hmac
import io
import json
from itertools import accumulate, combinations, islice
from math import comb, lcm


def fields(*items):
    items = [item.encode() if isinstance(item, str) else item for item in items]
    return b"".join(len(item).to_bytes(4, "big") + item for item in items)


def bloom(token, k, h, c, names):
    header = hashlib.sha256(fields("deniable-1/hash", *names)).digest()
    seed = hashlib.sha256(header + token).digest()
    x, y = int.from_bytes(seed[:8], "little"), int.from_bytes(seed[8:16], "little") | 1
    for j in range(h):
        z = (x + (c * h + j + 1) * y) % 2**64
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
        yield ((z ^ z >> 31) >> 32) * k >> 32


def local_number(token, m, cohort, names, u):
    """What a local hash sends: the token's number, or another; `u` is the random number."""
    g, lines = m["values"], m["values"] ** (m["digits"] - 1)
    if token is None:
        return u * g >> 32
    family, line = divmod(cohort, lines)
    (cell,) = bloom(token, g ** m["digits"], 1, family, names)
    number, cell = cell % g, cell // g
    for _ in range(m["digits"] - 1):
        number, cell, line = number + line % g * (cell % g), cell // g, line // g
    return number % g if u < m["q"] else (number + 1 + (u - m["q"]) // m["p"]) % g


def cohort_count(m):
    if m["kind"] == "localhash":
        return m["families"] * m["values"] ** (m["digits"] - 1)
    return m.get("cohorts", 1)


def pack(bits, k):
    return sum(1 << i for i in bits).to_bytes((k + 7) // 8, "little")


def randomise(bits, k, t0, t1, stream):
    count = max((33 - (t & -t).bit_length() for t in (t0, t1) if 0 < t < 2**32), default=0)
    words = [stream.read((k + 7) // 8) for _ in range(count)]
    if any(len(word) < (k + 7) // 8 for word in words):
        raise ValueError("too few random bytes")
    u = [sum((w[i // 8] >> i % 8 & 1) << 31 - n for n, w in enumerate(words)) for i in range(k)]
    return {i for i in range(k) if u[i] < (t1 if i in bits else t0)}


def split(protocol, value, draw):
    """The clear numbers of a question, and its slots as (name, mechanism, token)."""
    if isinstance(value, str):  # a pair of surrogates is one character, a lone one is U+FFFD
        value = value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if protocol["name"] == "single":
        return [], [("full", protocol["mechanism"], value)]
    length, alphabet, row = protocol["max_length"], protocol["alphabet"], (value or "").encode()
    if alphabet is not None:
        row = bytes(alphabet.index(c) if c in alphabet else 0xFE for c in value or "")
    row = row[:length].ljust(length, b"\xff")
    if protocol["name"] == "prefixes":
        x, sums = draw("level", 2**32), accumulate(weight for _, weight in protocol["levels"])
        level = next(i for i, total in enumerate(sums) if x < total)
        cut = protocol["levels"][level][0]
        return [level], [(f"level:{level}:{cut}", protocol["mechanism"], row[:cut])]
    n, parts = protocol["gram"], protocol["grams"]
    starts = range(0, length - n + 1, 1 if protocol["overlap"] else n)
    x = draw("positions", comb(len(starts), len(parts)))
    chosen = next(islice(combinations(range(len(starts)), len(parts)), x, None))
    grams = [(f"gram:{g}", m, row[starts[g] :][:n]) for g, m in zip(chosen, parts, strict=True)]
    return chosen, [("full", protocol["full"], row), *grams]


def report(survey_json: bytes, secret: bytes, values: dict, rand: bytes) -> bytes:
    survey, fresh = json.loads(survey_json), io.BytesIO(rand)

    def mac(label, *items):
        return hmac.digest(secret, fields("deniable-1/" + label, survey["name"], *items), "sha256")

    def draw(what, bound, name=""):
        return int.from_bytes(mac("clear", name, what), "big") % bound

    ways = [q["protocol"] for q in survey["questions"]]
    mechanisms = [m for w in ways for m in [w.get("full") or w["mechanism"], *w.get("grams", [])]]
    cohorts = lcm(*map(cohort_count, mechanisms))
    cohort = draw("cohort", cohorts)
    out = b"dn\x01\x01" + hashlib.sha256(survey_json.removesuffix(b"\n")).digest()[:16]
    out += cohort.to_bytes(2, "little") if cohorts > 1 else b""
    for question in survey["questions"]:
        name, value = question["name"], values.get(question["name"])
        clear, slots = split(question["protocol"], value, lambda w, b, n=name: draw(w, b, n))
        out += bytes(clear)
        for (slot, m, token), encoding in zip(slots, question["encodings"], strict=True):
            if m["kind"] == "localhash":
                names, u = [survey["name"], name, slot], int.from_bytes(fresh.read(4), "little")
                known = None if value is None else token
                sent = local_number(known, m, cohort % cohort_count(m), names, u)
                out += sent.to_bytes(((m["values"] - 1).bit_length() + 7) // 8, "little")
                continue
            options = m.get("options", [True])  # a boolean is a choice with one option, true
            k, c, flip = m.get("bits", len(options)), cohort % m.get("cohorts", 1), m["flip"]
            bits = {i for i, option in enumerate(options) if value is not None and option == token}
            if m["kind"] == "bloom" and value is not None:
                token = token.encode() if isinstance(token, str) else token
                bits = set(bloom(token, k, m["hashes"], c, [survey["name"], name, slot]))
            if flip > 0:
                numbers = flip.to_bytes(4, "big"), c.to_bytes(4, "big")
                key = mac("prr", name, slot, bytes.fromhex(encoding), *numbers, pack(bits, k))
                stream = (hmac.digest(key, n.to_bytes(4, "big"), "sha256") for n in range(k))
                bits = randomise(bits, k, flip, 2**32 - flip, io.BytesIO(b"".join(stream)))
            out += pack(randomise(bits, k, m["p"], m["q"], fresh), k)
    if fresh.read(1):
        raise ValueError("too many random bytes")
    return out
