"""Add up chosen rows of a matrix in vector registers.

Numba has no type for vectors, and compiles a loop that adds to a row of an array with a load and a
store for each row that is added. `add_rows` is therefore written in LLVM's intermediate language,
which keeps the sums in registers: twice the speed. Import this module only where a kernel is about
to run, because it loads Numba.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

TILE = 64
"""Columns that are added at a time: four registers of AVX-512, eight of AVX2."""
_LANES = 16
"""Columns per vector; LLVM splits it where registers are smaller."""

_INDEX, _SINGLE = ir.IntType(64), ir.FloatType()
_VECTOR = ir.VectorType(_SINGLE, _LANES)
_UNDEFINED = ir.Constant(_VECTOR, ir.Undefined)
_ZEROS = ir.Constant(_VECTOR, [0.0] * _LANES)
_FIRST_LANE = ir.Constant(ir.VectorType(ir.IntType(32), _LANES), [0] * _LANES)


@intrinsic
def add_rows(_context, values, starts, first, last, matrix, out, start):  # type: ignore[no-untyped-def]
    """Add Σ_k values[k] · matrix[starts[k] : starts[k] + TILE] to out[start : start + TILE].

    The sum starts at 0, so that its rounding does not depend on how large `out` already is.

    values  float32[K]; k runs from `first` to `last` − 1
    starts  int64[K], places in `matrix` as if it had one dimension
    matrix  float32, contiguous
    out     float32, contiguous; `start` is a place in it as if it had one dimension
    """
    signature = types.void(values, starts, first, last, matrix, out, start)
    return signature, _build


def _build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Write the instructions of `add_rows`."""
    values, starts, matrix, out = (
        context.make_array(signature.args[i])(context, builder, arguments[i]).data
        for i in (0, 1, 4, 5)
    )
    first, last, start = arguments[2], arguments[3], arguments[6]
    places = [_vector_at(builder, out, start, v) for v in range(TILE // _LANES)]
    entry, loop, end = builder.block, *(builder.append_basic_block(n) for n in ("rows", "end"))
    builder.cbranch(builder.icmp_signed("<", first, last), loop, end)

    builder.position_at_end(loop)
    k = builder.phi(_INDEX)
    sums = [builder.phi(_VECTOR) for _ in places]
    value = builder.load(builder.gep(values, [k]))
    value = builder.insert_element(_UNDEFINED, value, _INDEX(0))
    value = builder.shuffle_vector(value, _UNDEFINED, _FIRST_LANE)
    row = builder.load(builder.gep(starts, [k]))
    after = []
    for v, total in enumerate(sums):
        term = builder.load(_vector_at(builder, matrix, row, v), align=4)
        term = builder.fmul(value, term, flags=("contract",))
        after.append(builder.fadd(total, term, flags=("contract",)))
    following = builder.add(k, _INDEX(1))
    builder.cbranch(builder.icmp_signed("<", following, last), loop, end)
    for phi, initial, next_one in zip(
        [k, *sums], [first, *[_ZEROS] * len(sums)], [following, *after], strict=True
    ):
        phi.add_incoming(initial, entry)
        phi.add_incoming(next_one, loop)

    builder.position_at_end(end)
    totals = [builder.phi(_VECTOR) for _ in places]
    for total, last_one in zip(totals, after, strict=True):
        total.add_incoming(_ZEROS, entry)
        total.add_incoming(last_one, loop)
    for total, place in zip(totals, places, strict=True):
        builder.store(builder.fadd(builder.load(place, align=4), total), place, align=4)
    return context.get_dummy_value()


def _vector_at(builder: Any, array: Any, start: Any, vector: int) -> Any:
    """Return a pointer to the given vector of a tile that begins at `start`."""
    place = builder.gep(array, [builder.add(start, _INDEX(_LANES * vector))])
    return builder.bitcast(place, _VECTOR.as_pointer())
