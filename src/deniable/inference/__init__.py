"""What the reports say: pure functions of arrays."""

from deniable.inference.marginal.bit_counts import BitCounts, count_bits

__all__ = ["BitCounts", "count_bits"]
