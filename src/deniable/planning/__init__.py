"""What a survey can see before anyone answers it; `recommend.plan` chooses its parameters."""

from deniable.planning.thresholds import (
    Split,
    best_split,
    clients_to_move,
    detectable,
    discoverable,
    expected_found,
    noise_sd,
    split_threshold,
    whole_share,
)

__all__ = [
    "Split",
    "best_split",
    "clients_to_move",
    "detectable",
    "discoverable",
    "expected_found",
    "noise_sd",
    "split_threshold",
    "whole_share",
]
