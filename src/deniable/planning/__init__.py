"""Predictions of what a survey can detect. `recommend.plan` chooses its parameters."""

from deniable.extras import needs_packages

with needs_packages("deniable.planning"):
    from deniable.planning.thresholds import (
        clients_to_move,
        detectable,
        discoverable,
        expected_found,
        noise_sd,
    )

__all__ = ["clients_to_move", "detectable", "discoverable", "expected_found", "noise_sd"]
