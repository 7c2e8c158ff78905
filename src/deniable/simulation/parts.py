"""Simulate one part of a question for many clients at once: what all simulators share.

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
from deniable.simulation.coded import NO_ANSWER

M = TypeVar("M", bound=Mechanism)

CLIENTS_PER_CHUNK = 1 << 17
"""Number of clients that are encoded in one step; bounds the memory for positions of bits."""


@dataclass(frozen=True, eq=False)
class Clients:
    """Clients that report one part of a question, one row per client.

    answer : int32[N], index into the distinct answers to the question, −1 for no answer
    slot : uint8[N], slot of the part that the client reports
    cohort : uint16[N], cohort of the mechanism
    secrets : uint8[N, 32], or None if everything is drawn from the generator
    """

    answer: Int32s
    slot: Bytes
    cohort: UInt16s
    secrets: Bytes | None

    def __len__(self) -> int:
        return len(self.cohort)

    def chunks(self) -> Iterator[tuple[slice, Clients]]:
        """Yield slices of bounded size and their clients, without secrets."""
        for start in range(0, len(self), CLIENTS_PER_CHUNK):
            rows = slice(start, start + CLIENTS_PER_CHUNK)
            yield rows, Clients(self.answer[rows], self.slot[rows], self.cohort[rows], None)


class ClientStates(Interface):
    """State that clients keep from report to report, such as permanent noise."""

    def report(self, rng: np.random.Generator) -> Bytes:
        """Return one more report per client, uint8[N, size]."""
        ...


class PartSimulator(ABC, Generic[M]):
    """Simulates one part of a question whose distinct answers are known.

    mechanisms : one mechanism per slot; all have the same kind, size and noise
    tokens : tokens[slot][i] is what the slot reports about answer i
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
        """Mechanism of the first slot."""
        return self.mechanisms[0]

    @abstractmethod
    def states(self, clients: Clients, rng: np.random.Generator) -> ClientStates:
        """Draw what clients keep from report to report."""

    def single_reports(self, clients: Clients, rng: np.random.Generator) -> Bytes:
        """Draw one report per client, uint8[N, size], of clients that report only once."""
        return self.states(clients, rng).report(rng)

    def clients_of_part(self, clients: Clients, fields: Bytes) -> Clients:
        """Return the clients with the slots of this part and the cohorts of its mechanism.

        fields : uint8[N, fields], clear fields of the question
        """
        chosen = self.part.chosen_by
        slot = clients.slot if chosen is None else fields[:, chosen]
        return replace(clients, slot=slot, cohort=self.mechanism.own_cohort(clients.cohort))

    def token_index(self, clients: Clients) -> Int64s:
        """Return int64[N]: index of slot and answer among the tokens of all slots, −1 for none."""
        answer = clients.answer.astype(np.int64)
        if len(self.tokens) == 1:
            return answer
        index = answer + clients.slot.astype(np.int64) * len(self.tokens[0])
        return np.where(answer < 0, NO_ANSWER, index)


@dataclass(frozen=True, eq=False)
class EncodingStates:
    """Clients whose mechanism has no simulator; secrets : uint8[N, 32]."""

    simulator: EncodingPart
    clients: Clients
    secrets: Bytes

    def report(self, rng: np.random.Generator) -> Bytes:
        """Return one more report per client, made by the mechanism's encoder."""
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
    """Simulator of any mechanism, by its encoder."""

    def states(self, clients: Clients, rng: np.random.Generator) -> EncodingStates:
        """Draw a secret per client, unless secrets are given."""
        secrets = clients.secrets
        if secrets is None:
            secrets = rng.integers(0, 256, (len(clients), 32), dtype=np.uint8)
        return EncodingStates(self, clients, secrets)
