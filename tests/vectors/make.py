"""Writes the vectors: python -m tests.vectors.make

Every client, in any language, must reproduce them from docs/reference/wire.md. They pin scheme
deniable-1: a test fails when this release would write others.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import deniable.conformance
from deniable.client import Client, Ledger, encode_report
from deniable.client.encoder import Encoder
from deniable.errors import BudgetExceeded
from deniable.mechanisms import Bloom, Domain, Noise, randomise
from deniable.mechanisms.noise import digits_needed
from deniable.privacy import NANO
from deniable.survey import Survey, to_batch
from tests.replayed import replayed_client

HERE = Path(__file__).parent
VECTORS = Path(deniable.conformance.__file__).parent / "vectors"
SECRETS = [bytes(range(32)), bytes(32), hashlib.sha256(b"vector").digest()]
VALUES: list[str | None] = [
    None, "", "a", "abc", "example.com", "Ünïcødé ☃ 🐈", "\ud800lone", "a" * 300, "aaaa", " pad ",
]  # fmt: skip

# Edges, their neighbours among the doubles, and numbers outside the bins.
NUMBERS: list[float | None] = [
    None, 0, 0.1, 0.09999999999999999, 0.30000000000000004, 0.3, -5, 1e300, 10, 9.999999999999998,
]  # fmt: skip


def stretch(label: str, size: int) -> bytes:
    """Bytes that anyone can make again; the vectors carry them in full all the same."""
    out, n = b"", 0
    while len(out) < size:
        out += hashlib.sha256(f"{label}/{n}".encode()).digest()
        n += 1
    return out[:size]


def hashing() -> list[dict[str, Any]]:
    rows = []
    for bits, hashes, cohorts in ((128, 2, 64), (20, 3, 8), (65536, 1, 1), (2, 1, 2)):
        domain = Domain("survey", "question", "full")
        noise = Noise.of(p=0.25, q=0.75)
        bloom = Bloom(noise=noise, domain=domain, bits=bits, hashes=hashes, cohorts=cohorts)
        for value in ("", "abc", "Ünïcødé ☃"):
            for cohort in sorted({0, 1 % cohorts, cohorts - 1}):
                rows.append(
                    {
                        "survey": "survey", "question": "question", "slot": "full",
                        "bits": bits, "hashes": hashes, "cohort": cohort,
                        "token": value.encode().hex(), "header": bloom.header.hex(),
                        "positions": list(bloom.positions(value.encode(), cohort)),
                    }
                )  # fmt: skip
    return rows


def permanent() -> list[dict[str, Any]]:
    rows = []
    for bits, f in ((128, 0.5), (20, 0.3), (8, 0.75), (300, 0.123)):
        domain = Domain("survey", "question", "gram:3", hashlib.sha256(b"encoding").digest())
        bloom = Bloom(noise=Noise.of(p=0.25, q=0.75, f=f), domain=domain, bits=bits, cohorts=4)
        for secret in SECRETS:
            true = bloom.true_bits(b"abc", 3)
            rows.append(
                {
                    "survey": "survey", "question": "question", "slot": "gram:3",
                    "encoding": domain.encoding.hex(), "bits": bits,
                    "flip": bloom.noise.flip, "cohort": 3,
                    "secret": secret.hex(), "filter": true.to_bytes(bloom.size, "little").hex(),
                    "message": bloom.permanent_message(true, 3).hex(),
                    "permanent": bloom.permanent(true, 3, secret)
                    .to_bytes(bloom.size, "little").hex(),
                }
            )  # fmt: skip
    return rows


def instantaneous() -> list[dict[str, Any]]:
    rows = []
    thresholds = ((2**30, 3 * 2**30), (3 * 2**30, 2**31), (52428800, 2**31), (1, 2**32 - 1),
                  (0, 2**32), (2**32, 2**31), (123456789, 3987654321))  # fmt: skip
    for width in (1, 8, 20, 64, 129):
        for if_zero, if_one in thresholds:
            size, count = (width + 7) // 8, digits_needed(if_zero, if_one)
            rand = stretch(f"irr/{width}/{if_zero}/{if_one}", size * count)
            bits = int.from_bytes(stretch(f"bits/{width}", size), "little") & ((1 << width) - 1)
            words = [rand[i * size : (i + 1) * size] for i in range(count)]
            out = randomise(
                bits, width, if_zero, if_one, lambda n, w=words: int.from_bytes(w[n], "little")
            )
            rows.append(
                {
                    "width": width, "if_zero": if_zero, "if_one": if_one,
                    "bits": bits.to_bytes(size, "little").hex(), "rand": rand.hex(),
                    "output": out.to_bytes(size, "little").hex(),
                }
            )  # fmt: skip
    return rows


def surveys() -> list[Survey]:
    return [Survey.load(path) for path in sorted(HERE.glob("survey-*.toml"))]


def published() -> list[dict[str, Any]]:
    return [
        {"name": s.name, "canonical": s.canonical.decode(), "sha256": s.sha256.hex()}
        for s in surveys()
    ]


def slots() -> list[dict[str, Any]]:
    rows = []
    for survey in surveys():
        for secret in SECRETS:
            cohort, draws = survey.draw(secret)
            for question, draw in zip(survey.questions, draws, strict=True):
                if question.kind != "string":
                    continue
                for value in VALUES:
                    tokens = question.protocol.tokens(value, draw)
                    rows.append(
                        {
                            "survey": survey.name, "secret": secret.hex(),
                            "question": question.name, "value": value,
                            "cohort": cohort, "clear": list(draw),
                            "slots": [s.name for s in question.protocol.slots(draw)],
                            "tokens": [None if t is None else t.hex() for t in tokens],
                        }
                    )  # fmt: skip
    return rows


def answers(survey: Survey, value: str | None, number: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for question in survey.questions:
        options = getattr(question.protocol.mechanisms[0], "options", None)
        if question.kind == "string":
            found[question.name] = value
        elif question.kind == "choice":
            odd = [None, "none of these", "\ud83d\ude00"]  # a pair that some languages keep apart
            found[question.name] = [*odd, *options][number % (len(options) + 3)]
        elif question.kind == "number":
            found[question.name] = NUMBERS[number % len(NUMBERS)]
        else:
            found[question.name] = (True, False, None)[number % 3]
    return found


def reports() -> list[dict[str, Any]]:
    rows = []
    for survey in surveys():
        for secret in SECRETS:
            for number, value in enumerate(VALUES):
                rand = stretch(f"report/{number}", Encoder(survey, secret).rand_size)
                values = answers(survey, value, number)
                report = bytes(encode_report(survey, values, secret=secret, rand=rand))
                rows.append(
                    {
                        "survey": survey.name, "digest": survey.digest.hex(),
                        "secret": secret.hex(), "values": values,
                        "rand": rand.hex(), "report": report.hex(),
                    }
                )  # fmt: skip
    return rows


def batches() -> list[dict[str, Any]]:
    rows = []
    for survey in surveys():
        made = []
        for secret in SECRETS:
            client = replayed_client(survey, secret=secret, entropy=lambda n: stretch("batch", n))
            made.append(client.answer(answers(survey, "example.com", 0)))
        rows.append(
            {
                "survey": survey.name,
                "reports": [bytes(r).hex() for r in made],
                "batch": to_batch(made).hex(),
            }
        )
    return rows


def dated(body: str, collect: str = "repeatedly", version: int = 1, budget: float = 0) -> Survey:
    return Survey.from_toml(
        f'name = "paid"\nversion = {version}\nowner = "tests"\ndescription = "what it costs"\n'
        f'expires = 2999-12-31\ncollect = "{collect}"\n'
        + (f"budget = {budget}\n" if budget else "")
        + body
    )


DARK = '[questions.dark]\nkind = "boolean"\nepsilon = 1.0\n'
WORD = '[questions.word]\nkind = "string"\nepsilon = 2.0\n'
COLOUR = '[questions.colour]\nkind = "choice"\nepsilon = 1.0\noptions = {}\n'
PREFIX = (
    '[questions.word]\nkind = "string"\nepsilon = 2.0\n[questions.word.dictionary]\n'
    'protocol = "prefixes"\nmax_length = 4\nalphabet = "a-z"\nlevels = [2, 4]\n'
)
HASHED = WORD.replace("epsilon", 'mechanism = "localhash"\nvalues = 5\nepsilon')
UNEVEN = WORD + "epsilon_per_report = 0.8\n"
LOCAL = PREFIX.replace("epsilon", 'mechanism = "localhash"\nepsilon')


def payments() -> list[tuple[list[Survey], list[tuple[int, int, dict[str, Any]]]]]:
    """Surveys, and answers in turn: (which survey, which secret, values)."""
    word = dated(WORD, budget=5.0)
    first, second = COLOUR.format('["red", "blue"]'), COLOUR.format('["red", "blue", "green"]')
    raised = [dated(DARK, "once"), dated(DARK, "once", version=2, budget=2.5)]
    recoded = [dated(first, budget=3.0), dated(second, version=2, budget=3.0)]
    return [
        # Once is once, for another answer and another secret too.
        ([dated(DARK + WORD, "once")], [(0, s, {"dark": True, "word": w}) for s, w in
                                        ((0, "a"), (0, "a"), (1, "b"))]),
        # An unchanging value is charged at most its loss in total; a new value is charged anew.
        ([word], [(0, 0, {"word": w}) for w in 4 * ["a"] + 4 * ["b"] + ["c", "c", "a", None]]),
        # No answer costs what an answer does.
        ([word], [(0, 0, {}) for _ in range(6)] + [(0, 0, {"word": ""})]),
        # A new secret draws new noise for the same value.
        ([word], [(0, s, {"word": "a"}) for s in (0, 0, 0, 0, 1, 1, 2, 0, 2)]),
        # The budget is that of the version being answered.
        (raised, [(v, 0, {"dark": True}) for v in (0, 0, 1, 0, 1)]),
        # A version that sets other bits charges every value anew.
        (recoded, [(v, 0, {"colour": "red"}) for v in (0, 0, 0, 1, 1, 1, 0, 1)]),
        # Only the drawn prefix is told: four letters with secret 0, two with secret 1.
        ([dated(PREFIX, budget=5.0)], [(0, s, {"word": w}) for s in (0, 1)
                                       for w in ("aaaa", "aabb", "aazz")]),
        # One number a report, no permanent noise: each is paid in full.
        ([dated(LOCAL, "once", budget=4.5)], [(0, 0, {"word": "a"}) for _ in range(3)]),
        # Each number with permanent noise is paid in full at its first report, then never again.
        ([dated(HASHED, budget=6.5)], [(0, 0, {"word": w}) for w in (*"aaabcdefghij", None, "a")]),
        # Asymmetric noise: two reports of a value cost twice as much as one, up to the total.
        ([dated(UNEVEN, budget=3.5)], [(0, 0, {"word": w}) for w in "aaaaabbca"]),
        # All protocols at once.
        ([s for s in surveys() if s.name == "vectors"],
         [(0, 0, {"word": w, "grams": w, "prefix": w, "colour": "red", "dark": None})
          for w in 4 * ["a"] + ["b"] + 4 * ["a"]]),
        # Subsets have no permanent noise either: an answer and no answer cost the same.
        ([dated(first.replace("options", 'mechanism = "subset"\noptions'), "once", budget=2.5)],
         [(0, 0, {"colour": c}) for c in ("red", None, "blue")]),
    ]  # fmt: skip


def ledger() -> list[dict[str, Any]]:
    rows = []
    for versions, answers in payments():
        book = Ledger()
        accepted, spent = [], []
        for which, secret, values in answers:
            survey = versions[which]
            try:
                Client(survey, secret=SECRETS[secret], ledger=book).answer(values)
                accepted.append(True)
            except BudgetExceeded:
                accepted.append(False)
            spent.append(round(book.spent(survey.name) * NANO))
        rows.append(
            {
                "surveys": [survey.canonical.decode() for survey in versions],
                "answers": [
                    {"survey": which, "secret": SECRETS[secret].hex(), "values": values}
                    for which, secret, values in answers
                ],
                "accepted": accepted, "spent": spent,
            }
        )  # fmt: skip
    return rows


FILES = {
    "surveys.json": published,
    "hashing.json": hashing, "permanent.json": permanent, "instantaneous.json": instantaneous,
    "slots.json": slots, "reports.json": reports, "batches.json": batches,
    "ledger.json": ledger,
}  # fmt: skip


def text(rows: list[dict[str, Any]]) -> str:
    return "[\n" + ",\n".join(json.dumps(row, sort_keys=True) for row in rows) + "\n]\n"


if __name__ == "__main__":
    for name, make in FILES.items():
        (VECTORS / name).write_text(text(make()))
