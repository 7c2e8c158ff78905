"""A client of scheme deniable-1, encoder and ledger, written from docs/reference/wire.md alone."""

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


def local_number(token, m, cohort, names):
    """The token's number with local hashing; None for no answer."""
    g, lines = m["values"], m["values"] ** (m["digits"] - 1)
    if token is None:
        return None
    token = token.encode() if isinstance(token, str) else token
    family, line = divmod(cohort, lines)
    (cell,) = bloom(token, g ** m["digits"], 1, family, names)
    number, cell = cell % g, cell // g
    for _ in range(m["digits"] - 1):
        number, cell, line = number + line % g * (cell % g), cell // g, line // g
    return number % g


def move(number, g, own, other, u):
    """The number, or another; `u` is the random number."""
    if number is None:
        return u * g >> 32
    return number if u < own else (number + 1 + (u - own) // other) % g


def subset(v, m, u):
    """The categories that are sent for category `v`; `u` is the random number."""
    d, w, all_numbers = len(m["options"]) + 1, m["members"], 2 ** (8 * m["random_bytes"])
    limit = m["q"] * all_numbers // 2**32
    others = [i for i in range(d) if i != v]
    if u < limit:
        index, left = u * comb(d - 1, w - 1) // limit, w - 1
    else:
        index, left = (u - limit) * comb(d - 1, w) // (all_numbers - limit), w
    return {*next(islice(combinations(others, left), index, None)), *([v] if u < limit else [])}


def cohort_count(m):
    if "values" in m:
        return m["families"] * m["values"] ** (m["digits"] - 1)
    return m.get("cohorts", 1)


def number_size(m):
    return ((m["values"] - 1).bit_length() + 7) // 8


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
    if protocol["name"] == "bins" and value is not None:
        inner = [float(edge) for edge in protocol["edges"][1:-1]]
        value = protocol["mechanism"]["options"][sum(value >= edge for edge in inner)]
    if protocol["name"] in ("single", "bins"):
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


def noiseless(survey_json: bytes, secret: bytes, values: dict):
    """A report's first bytes; then for each question its clear bytes and its slots as (mechanism,
    what `noised` needs, the key of the permanent noise, loss)."""
    survey = json.loads(survey_json)

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
    questions = []
    for question in survey["questions"]:
        name, value = question["name"], values.get(question["name"])
        clear, slots = split(question["protocol"], value, lambda w, b, n=name: draw(w, b, n))
        found = []
        for (slot, m, token), encoding, loss in zip(
            slots, question["encodings"], question["loss"], strict=True
        ):
            names, c = [survey["name"], name, slot], cohort % cohort_count(m)
            thresholds = m["flip"].to_bytes(4, "big")
            thresholds += m["keep"].to_bytes(4, "big") if "keep" in m else b""
            seed = name, slot, bytes.fromhex(encoding)
            if "values" in m:
                number = local_number(None if value is None else token, m, c, names)
                key = None
                if m["kind"] == "localhash-permanent":
                    if number is None:
                        number = int.from_bytes(mac("no-answer", *seed), "big") % m["values"]
                    packed = number.to_bytes(number_size(m), "little")
                    key = mac("prr", *seed, thresholds, c.to_bytes(4, "big"), packed)
                found.append((m, number, key, loss))
                continue
            if m["kind"] == "subset":
                category = m["options"].index(token) if token in m["options"] else len(m["options"])
                found.append((m, category, None, loss))
                continue
            options = m.get("options", [True])  # a boolean is a choice with one option, true
            k, flip = m.get("bits", len(options)), m["flip"]
            bits = {i for i, option in enumerate(options) if value is not None and option == token}
            if "hashes" in m and value is not None:
                token = token.encode() if isinstance(token, str) else token
                bits = set(bloom(token, k, m["hashes"], c, names))
            key = mac("prr", *seed, thresholds, c.to_bytes(4, "big"), pack(bits, k))
            found.append((m, (bits, k), key if flip else None, loss))
        questions.append((bytes(clear), found))
    return out, questions


def noised(m, what, key, fresh):
    if m["kind"] == "subset":
        u = int.from_bytes(fresh.read(m["random_bytes"]), "little")
        return pack(subset(what, m, u), len(m["options"]) + 1)
    stream = b""
    if key:
        blocks = range(what[1] if "values" not in m else 1)
        stream = b"".join(hmac.digest(key, n.to_bytes(4, "big"), "sha256") for n in blocks)
    if "values" in m:
        number, g = what, m["values"]
        if key:
            number = move(number, g, m["keep"], m["flip"], int.from_bytes(stream[:4], "little"))
        sent = move(number, g, m["q"], m["p"], int.from_bytes(fresh.read(4), "little"))
        return sent.to_bytes(number_size(m), "little")
    bits, k = what
    if key:
        kept = m.get("keep", 2**32 - m["flip"])
        bits = randomise(bits, k, m["flip"], kept, io.BytesIO(stream))
    return pack(randomise(bits, k, m["p"], m["q"], fresh), k)


def report(survey_json: bytes, secret: bytes, values: dict, rand: bytes) -> bytes:
    out, questions = noiseless(survey_json, secret, values)
    fresh = io.BytesIO(rand)
    for clear, slots in questions:
        out += clear
        for m, what, key, _ in slots:
            out += noised(m, what, key, fresh)
    if fresh.read(1):
        raise ValueError("too many random bytes")
    return out


def pay(book: dict, survey_json: bytes, secret: bytes, values: dict) -> bool:
    """Whether the answer is within the budget; `book` is name → entry → [sum of once, limit]."""
    survey = json.loads(survey_json)
    page = {k: list(v) for k, v in book.setdefault(survey["name"], {}).items()}
    for number, (_, slots) in enumerate(noiseless(survey_json, secret, values)[1]):
        for place, (_, _, key, loss) in enumerate(slots):
            entry = page.setdefault(key or (number, place), [0, 0])
            entry[0] += loss["once"]
            entry[1] = max(entry[1], loss["forever"]) if key else float("inf")
    if spent(page) > survey["budget"]:
        return False
    book[survey["name"]] = page
    return True


def spent(page: dict) -> int:
    return sum(min(entry) for entry in page.values())
