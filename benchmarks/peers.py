"""Compare with RAPPOR in pure-ldp: python -m benchmarks.peers   (needs: pip install pure-ldp)

The same population (100 values, Zipf) and Bloom filters (128 bits, two hashes, 8 cohorts), with
permanent noise f = .5 only, since pure-ldp has no other. Three results: how often a set bit is sent
as 0 (correct is f/2 = .25; otherwise a report rules values out with certainty), the time per
report, and the time and accuracy of decoding N = 20,000 reports. Processor time.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np

from deniable import Client, decode, simulate
from deniable.client import new_secret
from deniable.reproduction.trials import bloom, survey_of
from deniable.simulation import Population, zipf

CLIENTS, REPORTS = 2_000, 20_000
VALUES = Population(tuple(f"value{i}" for i in range(100)), zipf(100))


def ours() -> dict[str, float]:
    """Measure our client, one report at a time, and our decoder."""
    # p = f/2 and q = 1 - f/2 drawn afresh is what permanent noise f = .5 does to one report.
    survey = survey_of(value=bloom(p=0.25, q=0.75, cohorts=8))
    question = survey.question("value")
    mechanism: Any = question.protocol.mechanisms[0]
    lost = sets = 0
    start = time.process_time()
    reports = [Client(survey, secret=new_secret()).answer({"value": "value1"})
               for _ in range(CLIENTS)]  # fmt: skip
    seconds = time.process_time() - start
    for report in reports:
        for bit in set(mechanism.positions(b"value1", report.cohort)):
            sets += 1
            lost += not (report.answers[0].slots[0][bit // 8] >> bit % 8) & 1
    rng = np.random.default_rng(1)
    crowd = simulate(survey, VALUES.draw(REPORTS, rng), rng=rng)
    decode(survey, crowd, "value", VALUES.values)
    start = time.process_time()
    marginal = decode(survey, crowd, "value", VALUES.values)
    decoding = time.process_time() - start
    return {
        "set bits sent as 0": lost / sets, "microseconds per report": 1e6 * seconds / CLIENTS,
        "seconds to decode": decoding,
        "summed error of the top 10": float(np.abs(marginal.estimate - VALUES.weights)[:10].sum()),
    }  # fmt: skip


def theirs() -> dict[str, float]:
    """Measure the client and the server of pure-ldp."""
    from pure_ldp.frequency_oracles.rappor import (  # type: ignore[import-not-found]
        RAPPORClient,
        RAPPORServer,
    )

    server = RAPPORServer(f=0.5, m=128, k=2, d=100, num_of_cohorts=8)
    client = RAPPORClient(f=0.5, m=128, hash_funcs=server.get_hash_funcs(), num_of_cohorts=8)
    start = time.process_time()
    reports = [client.privatise(2) for _ in range(CLIENTS)]
    seconds = time.process_time() - start
    lost = sets = 0
    for bits, cohort in reports:
        for place in {f(str(1)) for f in server.get_hash_funcs()[cohort]}:
            sets += 1
            lost += bits[place] == 0
    codes = VALUES.draw(REPORTS, np.random.default_rng(1)).codes
    for code in codes:
        server.aggregate(client.privatise(int(code) + 1))
    start = time.process_time()
    found = np.array([server.estimate(i + 1, suppress_warnings=True) for i in range(100)])
    decoding = time.process_time() - start
    return {
        "set bits sent as 0": lost / sets, "microseconds per report": 1e6 * seconds / CLIENTS,
        "seconds to decode": decoding,
        "summed error of the top 10":
            float(np.abs(found / REPORTS - VALUES.weights)[:10].sum()),
    }  # fmt: skip


def main() -> None:
    """Both, side by side."""
    mine = ours()
    try:
        peer = theirs()
    except ModuleNotFoundError:
        sys.exit(f"deniable alone: {mine}\nfor the comparison: pip install pure-ldp")
    print(f"{'':30}{'deniable':>12}{'pure-ldp':>12}")
    for name, value in mine.items():
        print(f"{name:30}{value:12.4g}{peer[name]:12.4g}")


if __name__ == "__main__":
    main()
