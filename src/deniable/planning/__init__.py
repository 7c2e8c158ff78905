"""Predictions of what a survey can detect. `recommend.plan` chooses its parameters."""

from deniable.planning.thresholds import (
    clients_to_move,
    detectable,
    discoverable,
    expected_found,
    noise_sd,
)

__all__ = ["clients_to_move", "detectable", "discoverable", "expected_found", "noise_sd"]
