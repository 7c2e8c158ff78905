"""Draw the clear fields of many clients: cohorts, positions of n-grams, prefix lengths."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from deniable.client.secret import SECRET_SIZE
from deniable.errors import InputError
from deniable.kernels.array_types import Bytes, UInt16s
from deniable.mechanisms.noise import ONE
from deniable.protocols import NGrams, Prefixes, Protocol
from deniable.simulation.parts import CLIENTS_PER_CHUNK
from deniable.survey import Survey


def fields_of_secrets(survey: Survey, secrets: Bytes) -> tuple[UInt16s, list[Bytes]]:
    """Return cohorts uint16[N] and clear fields per question, as clients draw them from secrets."""
    if secrets.dtype != np.uint8 or secrets.shape != (len(secrets), SECRET_SIZE):
        got = f"{secrets.dtype}{list(secrets.shape)}"
        raise InputError(f"secrets must be uint8[N, {SECRET_SIZE}], got {got}")
    drawn = [survey.draw(secret.tobytes()) for secret in secrets]
    fields = [
        np.array([draws[i] for _, draws in drawn], np.uint8).reshape(len(drawn), -1)
        for i in range(len(survey.questions))
    ]
    return np.array([cohort for cohort, _ in drawn], np.uint16), fields


def drawn_fields(protocol: Protocol, clients: int, rng: np.random.Generator) -> Bytes:
    """Draw the clear fields of one question, uint8[N, fields], from the generator."""
    if not protocol.clear:
        return np.empty((clients, 0), np.uint8)
    return DRAWS.get(protocol.name, _of_random_secrets)(protocol, clients, rng)


def _positions(protocol: NGrams, clients: int, rng: np.random.Generator) -> Bytes:
    """Draw distinct positions in increasing order; each set of positions is equally likely."""
    fields = len(protocol.clear)
    out = np.empty((clients, fields), np.uint8)
    for start in range(0, clients, CLIENTS_PER_CHUNK):
        part = out[start : start + CLIENTS_PER_CHUNK]
        order = rng.random((len(part), protocol.positions), np.float32)
        part[:] = np.sort(np.argpartition(order, fields - 1, axis=1)[:, :fields], axis=1)
    return out


def _prefix_lengths(protocol: Prefixes, clients: int, rng: np.random.Generator) -> Bytes:
    """Draw the index of one prefix length per client, with the probability of its weight."""
    uniform = rng.integers(0, ONE, clients, dtype=np.uint64)
    tops = np.array(protocol.cumulative_weights, np.uint64)
    return np.searchsorted(tops, uniform, side="right").astype(np.uint8)[:, np.newaxis]


def _of_random_secrets(protocol: Protocol, clients: int, rng: np.random.Generator) -> Bytes:
    """Draw the clear fields of any protocol by its own `draw`, client by client."""
    drawn = [protocol.draw(rng.bytes(32), "", "") for _ in range(clients)]
    return np.array(drawn, np.uint8).reshape(clients, -1)


DRAWS: dict[str, Callable[[Any, int, np.random.Generator], Bytes]] = {
    "ngrams": _positions,
    "prefixes": _prefix_lengths,
}
"""Functions that draw clear fields, by name of the protocol; others use `_of_random_secrets`."""
