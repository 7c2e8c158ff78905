"""Reports of one part of a question from many clients at once: what every simulator shares.

There is one simulator per kind of mechanism, chosen in `crowd`. A mechanism of any other kind
is simulated by its own `encode`, one client after the other.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar, cast
from typing import Protocol as Interface

import numpy as np

from deniable.kernels.array_types import Bytes, Int32s, Int64s, UInt16s
from deniable.mechanisms import Mechanism
from deniable.protocols import Protocol

M = TypeVar("M", bound=Mechanism)

NO_ANSWER = -1
ROWS = 1 << 17
"""Clients that are encoded in one step, which bounds the memory for their bits' positions."""


@dataclass(frozen=True, eq=False)
class Clients:
    """What one part of a question is reported from, a row per client.

    answer : int32[N], index into the question's distinct answers, −1 for no answer
    slot : uint8[N], which of the part's slots the client reports
    cohort : uint16[N], of the mechanism
    secrets : uint8[N, 32], or None where everything is drawn from the generator
    """

    answer: Int32s
    slot: Bytes
    cohort: UInt16s
    secrets: Bytes | None

    def __len__(self) -> int:
        return len(self.cohort)

    def pieces(self) -> Iterator[tuple[slice, Clients]]:
        """Yield slices of bounded size, and their clients without secrets."""
        for start in range(0, len(self), ROWS):
            rows = slice(start, start + ROWS)
            yield rows, Clients(self.answer[rows], self.slot[rows], self.cohort[rows], None)


class Kept(Interface):
    """What clients keep between their reports, permanent noise included."""

    def report(self, rng: np.random.Generator) -> Bytes:
        """Draw one more report from each client: uint8[N, size]."""
        ...


class PartSimulator(ABC, Generic[M]):
    """Simulates one part of a question whose distinct answers are known.

    mechanisms : one per slot; all have the same kind, size and noise
    tokens : what each slot reports of each answer
    """

    def __init__(self, protocol: Protocol, index: int, answers: Sequence[object]) -> None:
        self.part = protocol.parts[index]
        slots = self.part.slots
        self.mechanisms = cast(list[M], [slot.mechanism for slot in slots])
        self.tokens = [
            [protocol.token(answer, index, slot) for answer in answers]
            for slot in range(len(slots))
        ]

    @property
    def mechanism(self) -> M:
        """The first slot's."""
        return self.mechanisms[0]

    @abstractmethod
    def keep(self, clients: Clients, rng: np.random.Generator) -> Kept:
        """Draw what clients keep."""

    def once(self, clients: Clients, rng: np.random.Generator) -> Bytes:
        """Draw the only report of each client: uint8[N, size]."""
        return self.keep(clients, rng).report(rng)

    def own_view(self, crowd: Clients, fields: Bytes) -> Clients:
        """The crowd with this part's slots, by its clear bytes, and its mechanism's cohorts."""
        chosen = self.part.chosen_by
        slot = crowd.slot if chosen is None else fields[:, chosen]
        return replace(crowd, slot=slot, cohort=self.mechanism.own_cohort(crowd.cohort))

    def row(self, clients: Clients) -> Int64s:
        """Where a client's slot and answer stand in a table of all slots' answers; −1 for none."""
        row = clients.answer.astype(np.int64)
        if len(self.tokens) == 1:
            return row
        return np.where(
            row < 0, NO_ANSWER, row + clients.slot.astype(np.int64) * len(self.tokens[0])
        )


@dataclass(frozen=True, eq=False)
class KeptSecrets:
    """Clients of a mechanism that has no simulator of its own."""

    simulator: EncodingPart
    clients: Clients
    secrets: Bytes

    def report(self, rng: np.random.Generator) -> Bytes:
        """Call the mechanism's own encoder for each client."""
        mechanisms, tokens = self.simulator.mechanisms, self.simulator.tokens
        size = mechanisms[0].rand_size
        rand = rng.bytes(size * len(self.clients))
        columns = (self.clients.answer, self.clients.slot, self.clients.cohort)
        reports = [
            mechanisms[slot].encode(
                None if answer == NO_ANSWER else tokens[slot][answer],
                cohort=cohort,
                secret=secret.tobytes(),
                rand=rand[size * i : size * (i + 1)],
            )
            for i, (answer, slot, cohort, secret) in enumerate(
                zip(*(column.tolist() for column in columns), self.secrets, strict=True)
            )
        ]
        return np.frombuffer(b"".join(reports), np.uint8).reshape(-1, mechanisms[0].size)


class EncodingPart(PartSimulator[Mechanism]):
    """Any mechanism, by its own encoder."""

    def keep(self, clients: Clients, rng: np.random.Generator) -> KeptSecrets:
        secrets = clients.secrets
        if secrets is None:
            secrets = rng.integers(0, 256, (len(clients), 32), dtype=np.uint8)
        return KeptSecrets(self, clients, secrets)
