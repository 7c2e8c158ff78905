"""Probabilities of the next symbol of strings that consist of words and of single characters.

The model is a hidden Markov model with two states: the start of a piece, and within a run of
characters. At the start of a piece the string continues with a word (probability WORD), with a run
of characters (RUN), or ends (END). Within a run, characters follow a character model, and the run
continues with probability STAY. The probability of a prefix is the sum over all sequences of
pieces, computed from left to right.

With probability ASTRAY the next character follows the character model alone, whatever came before.
So a string that begins like a word and then differs from it loses only a few nats.
"""

import numpy as np

from deniable.kernels.array_types import Bytes, Floats, Int32s, Int64s, Singles
from deniable.kernels.compiled import compiled

WORD, RUN, END, STAY = 0.5, 0.4, 0.1, 0.85
ASTRAY = 0.05


@compiled
def next_symbols(
    rows: Bytes,
    context: Int64s,
    length: int,
    log_p: Singles,
    child: Int32s,
    below: Floats,
    ends: Floats,
    out: Singles,
) -> None:
    """Compute log-probabilities of the symbol that follows each prefix.

    out[i, s] = log P(symbol s | first `length` symbols of rows[i]); the last s is the end.
    rows : u8[n, M], no padding among the first `length`; context : int64[n, length + 1], row of
    log_p for the character at each position; log_p : float32[contexts, A + 1], the character model;
    the words are a tree with root 0: child : int32[nodes, A], -1 for none; below, ends :
    float64[nodes], probability of all words through a node, and of the word that ends there;
    out : float32[n, A + 1]
    """
    symbols = child.shape[1]
    start, run = np.empty(length + 1), np.empty(length + 1)
    node = np.empty(length + 1, np.int32)
    following = np.empty(symbols + 1)
    for i in range(len(rows)):
        start[:] = 0.0
        run[:] = 0.0
        start[0] = 1.0
        for at in range(length):
            written = (RUN * start[at] + run[at]) * np.exp(log_p[context[i, at], rows[i, at]])
            start[at + 1] += (1 - STAY) * written
            run[at + 1] = STAY * written
            # Words that begin at this symbol; node[at] is where they are after the whole prefix.
            n = np.int32(0)
            for j in range(at, length):
                n = child[n, rows[i, j]]
                if n < 0:
                    break
                start[j + 1] += WORD * start[at] * ends[n]
            node[at] = n
        node[length] = 0
        alone = RUN * start[length] + run[length]
        for s in range(symbols):
            following[s] = alone * np.exp(log_p[context[i, length], s])
        following[symbols] = alone * np.exp(log_p[context[i, length], symbols])
        following[symbols] += END * start[length]
        for at in range(length + 1):
            if node[at] < 0 or start[at] == 0.0:
                continue
            for s in range(symbols):
                n = child[node[at], s]
                if n >= 0:
                    following[s] += WORD * start[at] * below[n]
        total = following.sum()
        for s in range(symbols + 1):
            astray = np.exp(log_p[context[i, length], s])
            out[i, s] = np.log((1 - ASTRAY) * following[s] / total + ASTRAY * astray)
