"""An adapter for `deniable conformance`: this package's own client replays the vectors.

    deniable conformance -- python examples/conformance/python_client.py

docs/how-to/other-languages.md describes the lines that are read and written. An adapter for a
client in another language is about as long; a step that the client does not show is answered with
"unsupported".
"""

from __future__ import annotations

import json
import sys
from typing import Any

from deniable.client import Client, Ledger, encode_report
from deniable.errors import BudgetExceeded
from deniable.mechanisms import Bloom, Domain, Noise, randomise
from deniable.survey import Survey, from_bytes, to_batch

NANO = 10**9
"""Units of the ledger per nat."""


def surveys(canonical: str, **_: Any) -> dict[str, Any]:
    """Return the hash of a published survey."""
    return {"sha256": Survey.from_json(canonical.encode()).sha256.hex()}


def hashing(
    survey: str, question: str, slot: str, bits: int, hashes: int, cohort: int, token: str
) -> dict[str, Any]:
    """Return the header of the hash and the positions of a token in the Bloom filter."""
    bloom = Bloom(
        noise=Noise.of(p=0.25, q=0.75), domain=Domain(survey, question, slot),
        bits=bits, hashes=hashes, cohorts=cohort + 1,
    )  # fmt: skip
    positions = list(bloom.positions(bytes.fromhex(token), cohort))
    return {"header": bloom.header.hex(), "positions": positions}


def permanent(
    survey: str, question: str, slot: str, encoding: str, bits: int, flip: int, cohort: int,
    secret: str, filter: str,
) -> dict[str, Any]:  # fmt: skip
    """Return the bits after permanent noise, and the message that keys it."""
    bloom = Bloom(
        noise=Noise(p=0, q=2**32, flip=flip), bits=bits, cohorts=cohort + 1,
        domain=Domain(survey, question, slot, bytes.fromhex(encoding)),
    )  # fmt: skip
    true = int.from_bytes(bytes.fromhex(filter), "little")
    noised = bloom.permanent(true, cohort, bytes.fromhex(secret))
    return {
        "message": bloom.permanent_message(true, cohort).hex(),
        "permanent": noised.to_bytes(bloom.size, "little").hex(),
    }


def instantaneous(width: int, if_zero: int, if_one: int, bits: str, rand: str) -> dict[str, Any]:
    """Return the bits after fresh noise."""
    size, data = (width + 7) // 8, bytes.fromhex(rand)
    true = int.from_bytes(bytes.fromhex(bits), "little")
    out = randomise(
        true, width, if_zero, if_one,
        lambda n: int.from_bytes(data[n * size : (n + 1) * size], "little"),
    )  # fmt: skip
    return {"output": out.to_bytes(size, "little").hex()}


def slots(canonical: str, secret: str, question: str, value: Any, **_: Any) -> dict[str, Any]:
    """Return the clear fields of a client, its slots, and the tokens of a value."""
    survey = Survey.from_json(canonical.encode())
    cohort, draws = survey.draw(bytes.fromhex(secret))
    asked = survey.question(question).protocol
    draw = draws[[q.name for q in survey.questions].index(question)]
    return {
        "cohort": cohort, "clear": list(draw), "slots": [s.name for s in asked.slots(draw)],
        "tokens": [None if t is None else bytes(t).hex() for t in asked.tokens(value, draw)],
    }  # fmt: skip


def reports(canonical: str, secret: str, values: dict[str, Any], rand: str, **_: Any) -> Any:
    """Return a whole report."""
    survey = Survey.from_json(canonical.encode())
    keys = {"secret": bytes.fromhex(secret), "rand": bytes.fromhex(rand)}
    return {"report": bytes(encode_report(survey, values, **keys)).hex()}


def batches(canonical: str, reports: list[str], **_: Any) -> dict[str, Any]:
    """Return reports as one batch."""
    survey = Survey.from_json(canonical.encode())
    return {"batch": to_batch([from_bytes(bytes.fromhex(r), survey) for r in reports]).hex()}


def ledger(surveys: list[str], answers: list[dict[str, Any]]) -> dict[str, Any]:
    """Return which answers the ledger accepts, and how much ε is spent after each."""
    book, accepted, spent = Ledger(), [], []
    for each in answers:
        survey = Survey.from_json(surveys[each["survey"]].encode())
        client = Client(survey, secret=bytes.fromhex(each["secret"]), ledger=book)
        try:
            client.answer(each["values"])
            accepted.append(True)
        except BudgetExceeded:
            accepted.append(False)
        spent.append(round(book.spent(survey.name) * NANO))
    return {"accepted": accepted, "spent": spent}


STEPS = {
    "surveys": surveys, "hashing": hashing, "permanent": permanent,
    "instantaneous": instantaneous, "slots": slots, "reports": reports, "batches": batches,
    "ledger": ledger,
}  # fmt: skip

if __name__ == "__main__":
    for line in sys.stdin:
        asked = json.loads(line)
        step: Any = STEPS.get(asked["vector"])
        reply = {"output": step(**asked["input"])} if step else {"unsupported": "unknown vector"}
        print(json.dumps({"id": asked["id"], **reply}), flush=True)
