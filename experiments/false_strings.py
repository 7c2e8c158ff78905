"""Count the runs with a false string, on populations designed to provoke them.

    python -m experiments.false_strings --protocol prefixes --population urls [--seeds 200]
        [--reading paper] [--listed] [--executor dask://HOST:PORT] [-o FOLDER]

N = 10⁵ clients, α = .05. At a rate of exactly .05, more than 16 of 200 runs with a false string
occur once in 50 times. Settings by protocol:

* `prefixes`: local hashing at ε = 4.394;
* `whole`: the same with strings of five letters, so that every string is tested;
* `ngrams`: bigrams, two hashes, p = .25; for the domains ε/3 = 1.46 per slot (q = .40945), for
  short strings q = .75 as in the paper's hash experiment.

Each run is appended to FOLDER/false_strings.jsonl at once, and runs that are already there are
skipped, so a campaign can be interrupted. `--listed` gives `discover` a misleading list: half of
the strings that clients hold (at most 50), six times as many made of the beginning of one such
string and the end of another, and 500 random strings.

| population | strings |
| --- | --- |
| urls | the 100 domains, weights ∝ exp(−rank/25): common and rare strings, similar endings |
| flat | 100 equally common strings of eight letters (`whole`: five, also below) |
| tail | half of the clients hold one of ten strings, half one of 5,000 rare ones |
| alike | 50 strings of eight letters: all but the first or last three are shared with others |
| many | uniform over 10⁶ strings: none is common enough to be found |
| silence | no client answers |
| hashes | the hash experiment: 100 strings of six letters, weights i^20 plus .001 |
| square | 36 strings of six bigrams per position, any two of which occur together as if by |
| | chance, although only a sixth of the 216 possible strings exist |
"""

from __future__ import annotations

import json
import time
from itertools import product
from pathlib import Path

import numpy as np

from deniable import Survey, discover, simulate
from deniable.simulation import (
    Coded,
    Population,
    exponential,
    power,
    random_strings,
    top_domains,
    uniform,
    zipf,
)
from experiments.options import arguments
from experiments.paper.dictionaries import ngram_survey, prefix_survey
from experiments.text_tables import text_table

CLIENTS = 100_000
POPULATIONS = ("urls", "flat", "tail", "alike", "many", "silence", "hashes", "square")
SIX_LETTERS = ("hashes", "square")


def client_strings(name: str, length: int, rng: np.random.Generator) -> Coded:
    """Draw the strings of the clients; of a million, only those that clients hold are made."""
    if name == "silence":
        return Coded((), np.full(CLIENTS, -1, np.int32))
    if name == "many":
        held, client = np.unique(rng.integers(0, 1_000_000, CLIENTS), return_inverse=True)
        return Coded(random_strings(len(held), length, rng), client.astype(np.int32))
    return population_of(name, length, rng).draw(CLIENTS, rng)


def population_of(name: str, length: int, rng: np.random.Generator) -> Population:
    """Return the population of a run; except for the domains, every seed has new strings."""
    if name == "hashes":
        return Population(random_strings(100, length, rng), power(100, floor=0.001))
    if name == "square":
        first, second, third = (random_strings(6, 2, rng) for _ in range(3))
        places = product(range(6), repeat=2)
        values = [first[i] + second[j] + third[(i + j) % 6] for i, j in places]
        return Population(tuple(values), uniform(36))
    if name == "urls":
        return Population(top_domains(), exponential(100, 25.0))
    if name == "flat":
        return Population(random_strings(100, length, rng), uniform(100))
    if name == "tail":
        weights = np.concatenate([zipf(10) / 2, uniform(5_000) / 2])
        return Population(random_strings(5_010, length, rng), weights)
    heads, tails = random_strings(5, length - 3, rng), random_strings(5, 3, rng)
    other_tails, other_heads = random_strings(5, length - 3, rng), random_strings(5, 3, rng)
    values = [h + t for h in heads for t in tails]
    values += [h + t for h in other_heads for t in other_tails]
    return Population(tuple(values), zipf(50))


def length_of(protocol: str, population: str) -> int:
    """Return the maximum length of strings in the survey."""
    if population == "urls":
        return 20
    return 6 if population in SIX_LETTERS else 5 if protocol == "whole" else 8


def survey_for(protocol: str, population: str) -> Survey:
    """Return the survey of a protocol; domains have another alphabet than random strings."""
    urls, length = population == "urls", length_of(protocol, population)
    alphabet = "a-z0-9._-" if urls else "a-z"
    if protocol == "ngrams":
        return ngram_survey(q=0.40945 if urls else 0.75, length=length, gram=2, alphabet=alphabet)
    return prefix_survey(epsilon=4.394449, length=length, alphabet=alphabet)


def misleading_list(held: tuple[str, ...], length: int, rng: np.random.Generator) -> list[str]:
    """Return a list of strings, most of which only begin and end like strings of clients."""
    held = held[:100]
    out = [*random_strings(500, length, rng), *held[::2]]
    for _ in range(3 * len(held)):
        first, second = rng.choice(len(held), 2)
        at = int(rng.integers(1, length))
        out.append(held[first][:at] + held[second][at:])
    return out


def run(
    protocol: str,
    reading: str | None,
    population: str,
    seed: int,
    listed: bool = False,
    executor: str | None = None,
) -> dict[str, object]:
    """Run one trial; return the number of true strings, and the false ones."""
    rng = np.random.default_rng([seed, POPULATIONS.index(population)])
    survey = survey_for(protocol, population)
    clients = client_strings(population, length_of(protocol, population), rng)
    reports = simulate(survey, clients, rng=rng)
    words = misleading_list(clients.levels, length_of(protocol, population), rng) if listed else ()
    start = time.perf_counter()
    found = discover(survey, reports, "value", reading=reading, words=words, executor=executor)
    there = frozenset(clients.levels if population != "many" else ())
    false = [s for s in found.strings if s not in there]
    return {
        "protocol": protocol,
        "reading": reading or "",
        "population": population,
        "seed": seed,
        "listed": listed,
        "found": len(found.strings) - len(false),
        "false": false,
        "seconds": round(time.perf_counter() - start, 2),
    }


def main() -> None:
    """Make the runs that are missing, and summarise all of them."""
    options = arguments(
        __doc__,
        seed=1,
        protocol={"default": "prefixes", "choices": ["prefixes", "whole", "ngrams"]},
        reading={"default": None, "choices": ["paper", "fused"]},
        population={"default": "urls", "choices": POPULATIONS},
        seeds={"type": int, "default": 200, "help": "number of runs"},
        listed={"action": "store_true", "help": "give discover a misleading list"},
        executor={"default": "threads", "help": "threads, or the address of a cluster"},
    )
    key = (options.protocol, options.reading or "", options.population, options.listed)
    path = (options.output or Path("demo")) / "false_strings.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = path.read_text().splitlines() if path.exists() else []
    fields = ("protocol", "reading", "population", "listed")
    rows = [r for r in map(json.loads, lines) if tuple(r.get(f, False) for f in fields) == key]
    made = {r["seed"] for r in rows}
    seeds = 2 if options.quick else options.seeds
    for seed in range(options.seed, options.seed + seeds):
        if seed in made:
            continue
        setting = (options.protocol, options.reading, options.population)
        rows.append(run(*setting, seed, options.listed, options.executor))
        with path.open("a") as file:
            file.write(json.dumps(rows[-1]) + "\n")
        wrong = sum(bool(r["false"]) for r in rows)
        print(f"{len(rows)} runs, {wrong} with a false string; last: {rows[-1]}", flush=True)
    found = np.array([r["found"] for r in rows])
    summary = {
        "protocol": " ".join(key[:2]).strip(),
        "population": key[2],
        "listed": key[3],
        "runs": len(rows),
        "with a false string": sum(bool(r["false"]) for r in rows),
        "false strings": sum(len(r["false"]) for r in rows),
        "found": float(found.mean()),
        "least": int(found.min()),
        "most": int(found.max()),
    }
    print(text_table([summary]))


if __name__ == "__main__":
    main()
