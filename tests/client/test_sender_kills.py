"""Killed senders: a short run of tests/faults/campaign_sender.py, and of broken variants."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.campaign_sender import campaign
from tests.faults.cutting_server import CUT_AFTER, CUT_BEFORE, Act


@pytest.mark.slow
@pytest.mark.parametrize("batch", [1, 5])
def test_killed_senders_lose_nothing_and_send_nothing_anew(tmp_path: Path, batch: int) -> None:
    found = campaign(tmp_path, kills=6, batch=batch, seed=batch)
    assert found.fine, found
    assert found.arrived >= found.queued > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "act", "what"), [("new-keys", CUT_AFTER, "doubled"), ("hasty", CUT_BEFORE, "lost")]
)
def test_a_broken_outbox_is_noticed(tmp_path: Path, kind: str, act: Act, what: str) -> None:
    found = campaign(tmp_path, kills=4, batch=1, seed=3, kind=kind, acts=[act])
    assert getattr(found, what), found
