"""False strings: how many runs name one, on populations made to bring them out.

    python -m experiments.false_strings --protocol prefixes --population urls [--seeds 200]
        [-o FOLDER]

N = 10⁵ clients, total ε = 4.394, α = .05. `ngrams` has ε/3 a report (p = .25, q = .40945, two
hashes, bigrams); `prefixes` has local hashing; `whole` has it too, with strings of five letters, so
that every string is looked at. Every run is appended to FOLDER/false_strings.jsonl at once, and a
run that is already there is not made again, so a campaign can be interrupted.

| population | what |
| --- | --- |
| urls | the 100 domains, weights ∝ exp(−rank/25): heavy and light strings, similar endings |
| flat | 100 strings of eight letters (five with `whole`, also below), equally common |
| tail | half the mass on ten strings, the other half on 5,000 light ones |
| alike | 50 strings of eight letters: all but the first or the last three are shared with others |
| many | uniform over 10⁶ strings: nothing can be found, and nothing may be |
| silence | nobody answers |
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
from experiments.dictionaries import ngram_survey

from deniable import Survey, discover, simulate
from deniable.simulation import Population, exponential, random_strings, top_domains, uniform, zipf
from deniable.simulation.records import arguments, text_table

CLIENTS = 100_000
PREFIXES = """
name = "false"
version = 1
owner = "experiments"
description = "false strings"
expires = 2999-12-31
collect = "once"
[questions.value]
kind = "string"
mechanism = "localhash"
epsilon = 4.394449
[questions.value.dictionary]
protocol = "prefixes"
max_length = {length}
alphabet = "{alphabet}"
"""
LENGTHS = {"prefixes": 8, "ngrams": 8, "whole": 5}
POPULATIONS = ("urls", "flat", "tail", "alike", "many", "silence")


def population_of(name: str, length: int, rng: np.random.Generator) -> Population | None:
    """The strings of a run; new ones for every seed, but for the domains."""
    if name == "urls":
        return Population(top_domains(), exponential(100, 25.0))
    if name == "flat":
        return Population(random_strings(100, length, rng), uniform(100))
    if name == "tail":
        weights = np.concatenate([zipf(10) / 2, uniform(5_000) / 2])
        return Population(random_strings(5_010, length, rng), weights)
    if name == "alike":
        heads, tails = random_strings(5, length - 3, rng), random_strings(5, 3, rng)
        other_tails, other_heads = random_strings(5, length - 3, rng), random_strings(5, 3, rng)
        values = [h + t for h in heads for t in tails]
        values += [h + t for h in other_heads for t in other_tails]
        return Population(tuple(values), zipf(50))
    if name == "many":
        return Population(random_strings(1_000_000, length, rng), uniform(1_000_000))
    return None


def survey_of(protocol: str, population: str) -> Survey:
    """The domains have their own alphabet and length."""
    length, alphabet = (20, "a-z0-9._-") if population == "urls" else (LENGTHS[protocol], "a-z")
    if protocol == "ngrams":
        return ngram_survey(q=0.40945, length=length, gram=2, alphabet=alphabet)
    return Survey.from_toml(PREFIXES.format(length=length, alphabet=alphabet))


def run(protocol: str, reading: str | None, population: str, seed: int) -> dict[str, object]:
    """One crowd: how many strings were found, and which of them nobody said."""
    rng = np.random.default_rng([seed, POPULATIONS.index(population)])
    survey = survey_of(protocol, population)
    truth = population_of(population, LENGTHS[protocol], rng)
    values = truth.draw(CLIENTS, rng) if truth else [None] * CLIENTS
    reports = simulate(survey, values, rng=rng)
    start = time.perf_counter()
    found = discover(survey, reports, "value", reading=reading)
    there = frozenset(truth.values) if truth and population != "many" else frozenset()
    false = [s for s in found.strings if s not in there]
    return {
        "protocol": protocol, "reading": reading or "", "population": population, "seed": seed,
        "found": len(found.strings) - len(false), "false": false,
        "seconds": round(time.perf_counter() - start, 2),
    }  # fmt: skip


def main() -> None:
    """Make the runs that are missing, then say how all of them went."""
    options = arguments(
        __doc__, seed=1,
        protocol={"default": "prefixes", "choices": list(LENGTHS)},
        reading={"default": None, "choices": ["paper", "fused"]},
        population={"default": "urls", "choices": POPULATIONS},
        seeds={"type": int, "default": 200},
    )  # fmt: skip
    key = (options.protocol, options.reading or "", options.population)
    path = (options.output or Path("demo")) / "false_strings.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = path.read_text().splitlines() if path.exists() else []
    rows = [
        r for r in map(json.loads, lines) if (r["protocol"], r["reading"], r["population"]) == key
    ]
    made = {r["seed"] for r in rows}
    seeds = 2 if options.quick else options.seeds
    for seed in range(options.seed, options.seed + seeds):
        if seed in made:
            continue
        rows.append(run(options.protocol, options.reading, options.population, seed))
        with path.open("a") as file:
            file.write(json.dumps(rows[-1]) + "\n")
        wrong = sum(bool(r["false"]) for r in rows)
        print(f"{len(rows)} runs, {wrong} with a false string; last: {rows[-1]}", flush=True)
    found = np.array([r["found"] for r in rows])
    summary = {
        "protocol": " ".join(key[:2]).strip(), "population": key[2], "runs": len(rows),
        "with a false string": sum(bool(r["false"]) for r in rows),
        "false strings": sum(len(r["false"]) for r in rows),
        "found": float(found.mean()), "least": int(found.min()), "most": int(found.max()),
    }  # fmt: skip
    print(text_table([summary]))


if __name__ == "__main__":
    main()
