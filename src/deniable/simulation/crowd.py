"""Reports of many clients at once, by compiled kernels.

Distinct answers are hashed once. A client's cohort and clear bytes are drawn from `rng`, or, where
`secrets` are given, from its secret exactly as its own client would; so is permanent noise. Fresh
noise always comes from `rng`: a simulation protects nobody, and can be repeated. Tests tie this to
`client.Client` on the same secrets and random words, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.columns import ReportBatch
from deniable.errors import InputError
from deniable.kernels.hashing.positions import hash_pairs, row_positions
from deniable.kernels.noise.crowd_rows import encode_rows
from deniable.kernels.noise.noisy_rows import noise_rows
from deniable.kernels.noise.permanent_bits import permanent_rows
from deniable.kernels.noise.sampler import CERTAIN
from deniable.mechanisms import BitMechanism, Bloom, LocalHash, Mechanism, prf
from deniable.mechanisms.noise import ONE
from deniable.mechanisms.schemes import DENIABLE_1
from deniable.protocols import NGrams, Part, Prefixes
from deniable.simulation.coded import NO_ANSWER, Coded
from deniable.simulation.numbers import family_of, noise_packed, packed, true_numbers
from deniable.survey import Question, Survey

ROWS = 1 << 17
Values = Mapping[str, Coded | Iterable[Any]] | Coded | Iterable[Any]
Bits = NDArray[np.uint8]
Fresh = Callable[[Bits, Mechanism], Bits]
"""Fresh noise: packed rows in, noised rows out (they may be the same memory)."""


def simulate(
    survey: Survey, values: Values, *, rng: np.random.Generator, secrets: Bits | None = None
) -> ReportBatch:
    """One report from each client.

    values : for each question its clients' answers in one order, also as a pandas or polars frame;
        a single sequence for a survey of one question. None is no answer.
    secrets : u8[N, 32], to draw what a client draws from its secret as it would
    """
    crowd, codes = _crowd_of(survey, values)
    return crowd.report(codes, rng=rng, secrets=secrets)


def simulate_days(
    survey: Survey,
    values: Values,
    days: int,
    *,
    rng: np.random.Generator,
    secrets: Bits | None = None,
) -> Iterator[ReportBatch]:
    """The same clients, with the same answers, on several days: permanent noise is kept."""
    crowd, codes = _crowd_of(survey, values)
    permanent = crowd.permanent(codes, rng=rng, secrets=secrets)
    for _ in range(days):
        yield fresh_report(permanent, _fresh(rng))


def simulate_stream(
    survey: Survey,
    draw: Callable[[int, np.random.Generator], Mapping[str, Coded]],
    clients: int,
    *,
    rng: np.random.Generator,
    rows: int = ROWS,
) -> Iterator[ReportBatch]:
    """Any number of clients in bounded memory; `draw(n, rng)` gives the next n clients' answers."""
    crowd: Crowd | None = None
    for start in range(0, clients, rows):
        values = draw(min(rows, clients - start), rng)
        levels = {name: coded.levels for name, coded in values.items()}
        if crowd is None or crowd.levels != levels:
            crowd = Crowd(survey, levels)
        yield crowd.report({name: c.codes for name, c in values.items()}, rng=rng)


@dataclass(frozen=True, eq=False)
class Crowd:
    """A survey and the distinct answers that its clients give, hashed once."""

    survey: Survey
    levels: Mapping[str, tuple[Any, ...]]

    def __post_init__(self) -> None:
        for name, levels in self.levels.items():
            question = self.survey.question(name)
            for level in levels:
                question.checked(level)

    @cached_property
    def _tables(self) -> dict[tuple[str, int], _Positions]:
        """One for each part of each question that is answered."""
        return {
            (q.name, i): _positions(q, i, part, self.levels[q.name])
            for q in self.survey.questions
            if q.name in self.levels
            for i, part in enumerate(q.protocol.parts)
        }

    def report(
        self,
        codes: Mapping[str, NDArray[np.int32]],
        *,
        rng: np.random.Generator,
        secrets: Bits | None = None,
    ) -> ReportBatch:
        """One report from each client; codes are indices into `levels`."""
        if secrets is not None:
            permanent = self.permanent(codes, rng=rng, secrets=secrets)
            return fresh_report(permanent, _fresh(rng))
        return self._encoded(codes, rng, None, with_fresh=True)

    def permanent(
        self,
        codes: Mapping[str, NDArray[np.int32]],
        *,
        rng: np.random.Generator,
        secrets: Bits | None = None,
    ) -> ReportBatch:
        """What each client keeps: clear bytes and permanent responses, before any fresh noise."""
        return self._encoded(codes, rng, secrets, with_fresh=False)

    def _encoded(
        self,
        codes: Mapping[str, NDArray[np.int32]],
        rng: np.random.Generator,
        secrets: Bits | None,
        *,
        with_fresh: bool,
    ) -> ReportBatch:
        n = _number_of_clients(codes, secrets)
        cohort = _cohorts(self.survey, n, rng, secrets)
        clear, bits = [], []
        for question in self.survey.questions:
            drawn = _clear(self.survey, question, n, rng, secrets)
            clear.append(drawn)
            code = codes.get(question.name)
            rows = []
            for i, part in enumerate(question.protocol.parts):
                m = part.slots[0].mechanism
                slot = None if part.chosen_by is None else drawn[:, part.chosen_by]
                own = cohort % np.uint16(m.cohorts) if m.cohorts < self.survey.cohorts else cohort
                positions = self._tables.get((question.name, i))
                if isinstance(m, LocalHash):
                    out = _number_rows(m, positions, code, slot, own)
                    rows.append(noise_packed(m, out, rng) if with_fresh else out)
                    continue
                flip = m.noise.flip if secrets is None else 0
                p, q = (m.noise.p, m.noise.q) if with_fresh else (0, CERTAIN)
                out = np.empty((n, m.size), np.uint8)
                for start in range(0, n, ROWS):
                    some = slice(start, start + ROWS)
                    value, table, places = _looked_up(positions, code, slot, own, some, n)
                    encode_rows(
                        value, table, places, m.width,
                        if_zero=p, if_one=q, phi=flip, rng=rng, out=out[some],
                    )  # fmt: skip
                if secrets is not None and m.noise.flip:
                    out = _keyed_permanent(part, out, slot, own, secrets)
                rows.append(out)
            bits.append(tuple(rows))
        return ReportBatch(
            self.survey, cohort, tuple(clear), tuple(bits), _origin(rng), trusted=True
        )


def fresh_report(permanent: ReportBatch, fresh: Fresh) -> ReportBatch:
    """One day's reports of the clients whose permanent responses these are."""
    bits = tuple(
        tuple(fresh(b, m) for b, m in zip(parts, q.protocol.mechanisms, strict=True))
        for parts, q in zip(permanent.bits, permanent.survey.questions, strict=True)
    )
    return ReportBatch(
        permanent.survey, permanent.cohort, permanent.clear, bits, permanent.origin, trusted=True
    )


def _origin(rng: np.random.Generator) -> str:
    """The seed that the generator was made from, so that a result can name it."""
    seed = getattr(rng.bit_generator.seed_seq, "entropy", None)
    return f"simulated, seed {seed}"


def _fresh(rng: np.random.Generator) -> Fresh:
    def fresh(bits: Bits, m: Mechanism) -> Bits:
        if isinstance(m, LocalHash):
            return noise_packed(m, bits, rng)
        return noise_rows(bits, m.width, m.noise.p, m.noise.q, rng)

    return fresh


def _crowd_of(survey: Survey, values: Values) -> tuple[Crowd, dict[str, NDArray[np.int32]]]:
    frame: Any = values
    if hasattr(frame, "columns"):  # pandas or polars
        values = {str(name): frame[name].to_list() for name in frame.columns}
    if not isinstance(values, Mapping):
        if len(survey.questions) != 1:
            names = ", ".join(q.name for q in survey.questions)
            raise InputError(f"expected answers by question, a mapping of {names}")
        values = {survey.questions[0].name: values}
    coded = {name: Coded.of(v) for name, v in values.items()}
    crowd = Crowd(survey, {name: c.levels for name, c in coded.items()})
    return crowd, {name: c.codes for name, c in coded.items()}


def _number_of_clients(codes: Mapping[str, NDArray[np.int32]], secrets: Bits | None) -> int:
    lengths = {name: len(code) for name, code in codes.items()}
    if secrets is not None:
        lengths["secrets"] = len(secrets)
    if len(set(lengths.values())) != 1:
        raise InputError(f"expected one answer a client for each question, got {lengths or 'none'}")
    return next(iter(lengths.values()))


# --- where bits stand ------------------------------------------------------------------------

_Positions = Callable[[NDArray[np.int32], NDArray[np.uint8] | None, NDArray[np.uint16]], Any]
"""(codes, slot or None, cohort) → (row index, cohort index, positions int32[C, V, h])."""


def _positions(question: Question, i: int, part: Part, levels: tuple[Any, ...]) -> _Positions:
    mechanism = part.slots[0].mechanism
    protocol = question.protocol
    if isinstance(mechanism, Bloom | LocalHash) and mechanism.scheme is DENIABLE_1:
        pairs = [
            _seeds(slot.mechanism, [protocol.token(v, i, s) for v in levels])
            for s, slot in enumerate(part.slots)
        ]
        x, y = (np.concatenate([pair[j] for pair in pairs]) for j in (0, 1))
        hashes, width = _hashes_and_places(mechanism)

        def seeded(
            code: NDArray[np.int32], slot: NDArray[np.uint8] | None, cohort: NDArray[np.uint16]
        ) -> Any:
            row = _row(code, slot, len(levels))
            positions = row_positions(x, y, row, cohort, hashes, width)
            one_each = np.arange(len(code), dtype=np.int32)
            return one_each, np.zeros(len(code), np.uint16), positions[np.newaxis]

        return seeded
    # Known options, and google/rappor's schemes: every slot's own tokens, slot after slot.
    assert isinstance(mechanism, BitMechanism)
    slots, most = len(part.slots), _most_bits(mechanism)
    table = np.full((mechanism.cohorts, slots * len(levels), most), NO_ANSWER, np.int32)
    for s in range(slots):
        for v, level in enumerate(levels):
            token = protocol.token(level, i, s)
            for c in range(mechanism.cohorts):
                bits = mechanism.filter(token, c)
                set_bits = [b for b in range(mechanism.width) if bits >> b & 1]
                table[c, s * len(levels) + v, : len(set_bits)] = set_bits

    def listed(
        code: NDArray[np.int32], slot: NDArray[np.uint8] | None, cohort: NDArray[np.uint16]
    ) -> Any:
        return _row(code, slot, len(levels)).astype(np.int32), cohort, table

    return listed


def _row(code: NDArray[np.int32], slot: NDArray[np.uint8] | None, levels: int) -> NDArray[np.int64]:
    """Where a client's slot and value stand in a table of all slots' values; -1 for no answer."""
    row = code.astype(np.int64)
    if slot is None:
        return row
    return np.where(code < 0, NO_ANSWER, row + slot.astype(np.int64) * levels)


def _hashes_and_places(mechanism: Bloom | LocalHash) -> tuple[int, int]:
    if isinstance(mechanism, Bloom):
        return mechanism.hashes, mechanism.bits
    return 1, mechanism.cells


def _number_rows(
    m: LocalHash,
    positions: _Positions | None,
    code: NDArray[np.int32] | None,
    slot: NDArray[np.uint8] | None,
    cohort: NDArray[np.uint16],
) -> Bits:
    """True numbers, packed; g where there is no answer."""
    out = np.empty((len(cohort), m.size), np.uint8)
    family = family_of(m, cohort)
    for start in range(0, len(cohort), ROWS):
        some = slice(start, start + ROWS)
        cell = np.full(len(cohort[some]), NO_ANSWER, np.int32)
        if positions is not None and code is not None:
            looked_up = positions(code[some], None if slot is None else slot[some], family[some])
            cell = looked_up[2][0, :, 0]
        out[some] = packed(true_numbers(m, cell, cohort[some]), m.size)
    return out


def _most_bits(mechanism: Mechanism) -> int:
    return mechanism.hashes if isinstance(mechanism, Bloom) else 1


def _seeds(mechanism: Mechanism, tokens: list[bytes]) -> tuple[NDArray[np.uint64], ...]:
    assert isinstance(mechanism, Bloom | LocalHash)
    offsets = np.cumsum([0, *map(len, tokens)], dtype=np.int64)
    data = np.frombuffer(b"".join(tokens), np.uint8)
    return hash_pairs(mechanism.header, data, offsets)


def _looked_up(
    positions: _Positions | None,
    code: NDArray[np.int32] | None,
    slot: NDArray[np.uint8] | None,
    cohort: NDArray[np.uint16],
    rows: slice,
    n: int,
) -> Any:
    """The kernel's inputs for these rows; nobody answered where there are no positions."""
    if positions is None or code is None:
        count = len(range(*rows.indices(n)))
        nothing = np.full(count, NO_ANSWER, np.int32)
        return nothing, np.zeros(count, np.uint16), np.full((1, 1, 1), NO_ANSWER, np.int32)
    return positions(code[rows], None if slot is None else slot[rows], cohort[rows])


# --- what is drawn once ----------------------------------------------------------------------


def _cohorts(
    survey: Survey, n: int, rng: np.random.Generator, secrets: Bits | None
) -> NDArray[np.uint16]:
    if secrets is None:
        return rng.integers(0, survey.cohorts, n, dtype=np.uint16)
    return np.array([survey.draw(s.tobytes())[0] for s in secrets], np.uint16)


def _clear(
    survey: Survey,
    question: Question,
    n: int,
    rng: np.random.Generator,
    secrets: Bits | None,
) -> NDArray[np.uint8]:
    protocol = question.protocol
    fields = len(protocol.clear)
    if fields == 0:
        return np.empty((n, 0), np.uint8)
    if secrets is not None:
        drawn = [protocol.draw(s.tobytes(), survey.name, question.name) for s in secrets]
        return np.array(drawn, np.uint8).reshape(n, fields)
    if isinstance(protocol, NGrams):
        out = np.empty((n, fields), np.uint8)
        for start in range(0, n, ROWS):
            part = out[start : start + ROWS]
            order = rng.random((len(part), protocol.positions), np.float32)
            part[:] = np.sort(np.argpartition(order, fields - 1, axis=1)[:, :fields], axis=1)
        return out
    assert isinstance(protocol, Prefixes)
    uniform = rng.integers(0, ONE, n, dtype=np.uint64)
    tops = np.array(protocol.cumulated, np.uint64)
    return np.searchsorted(tops, uniform, side="right").astype(np.uint8)[:, np.newaxis]


def _keyed_permanent(
    part: Part,
    bits: Bits,
    slot: NDArray[np.uint8] | None,
    cohort: NDArray[np.uint16],
    secrets: Bits,
) -> Bits:
    """Permanent responses as the clients that hold these secrets compute them."""
    out = np.empty_like(bits)
    for s, chosen in enumerate(part.slots):
        rows = slice(None) if slot is None else np.flatnonzero(slot == s)
        m = chosen.mechanism
        assert isinstance(m, BitMechanism)
        true, own, keys = bits[rows], cohort[rows], secrets[rows]
        if m.scheme is not DENIABLE_1:
            out[rows] = _one_by_one(m, true, own, keys)
            continue
        head = np.frombuffer(prf.fields(bytes(4))[:4], np.uint8)
        number = own.astype(">u4").view(np.uint8).reshape(-1, 4)
        size = np.frombuffer(m.size.to_bytes(4, "big"), np.uint8)
        ends = [np.broadcast_to(head, (len(true), 4)), number,
                np.broadcast_to(size, (len(true), 4)), true]  # fmt: skip
        message_end = np.concatenate(ends, axis=1)
        out[rows] = permanent_rows(
            true, m.width, m.noise.flip, keys, m.permanent_prefix, message_end
        )
    return out


def _one_by_one(m: BitMechanism, bits: Bits, cohort: NDArray[np.uint16], secrets: Bits) -> Bits:
    rows = [
        m.permanent(int.from_bytes(b.tobytes(), "little"), int(c), s.tobytes())
        for b, c, s in zip(bits, cohort, secrets, strict=True)
    ]
    packed = b"".join(row.to_bytes(m.size, "little") for row in rows)
    return np.frombuffer(packed, np.uint8).reshape(bits.shape)
