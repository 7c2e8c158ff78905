"""Compare a store with a simple model after any sequence of operations (hypothesis)."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from datetime import date, timedelta
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, rule

import deniable.store
from deniable.store import Outcome, Upload
from tests.uploads import DAY, MARKS, kept, reports_of, survey, upload

SURVEYS = (MARKS, survey(2))
DAYS = [DAY + timedelta(days=i) for i in range(3)]
some_survey, some_day = st.sampled_from(SURVEYS), st.sampled_from(DAYS)


class AnyStore(RuleBasedStateMachine):
    """A store and its model: a list of stored uploads and a dictionary of keys."""

    sent = Bundle("sent")

    @initialize()
    def make(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.url = str(Path(self.folder.name) / "reports.db")
        self.store = deniable.store.open(self.url, create=True)
        for each in SURVEYS:
            self.store.add_survey(each)
        self.counted: list[Upload] = []
        self.keys: dict[bytes, Upload] = {}

    @rule(target=sent, size=st.integers(1, 30), day=some_day, of=some_survey)
    def append(self, size: int, day: date, of: deniable.Survey) -> Upload:
        one = upload(size, day, of)
        assert self.store.append([one]) == [Outcome.STORED]
        self.counted.append(one)
        self.keys[one.key] = one
        return one

    @rule(one=sent)
    def send_again(self, one: Upload) -> None:
        known = one.key in self.keys
        assert self.store.append([one]) == [Outcome.REPEATED if known else Outcome.STORED]
        if not known:
            self.counted.append(one)
            self.keys[one.key] = one

    @rule(one=sent)
    def send_another_under_its_key(self, one: Upload) -> None:
        if one.key in self.keys:
            assert self.store.append([upload(2, key=one.key)]) == [Outcome.CONFLICT]

    @rule(at_least=st.integers(1, 60))
    def compact(self, at_least: int) -> None:
        self.store.compact(at_least=at_least, today=date.min)  # no day is over: none is moved

    @rule(of=some_survey, before=st.none() | some_day)
    def delete(self, of: deniable.Survey, before: date | None) -> None:
        gone = [u for u in self.counted if u.digest == of.digest and u.day < (before or date.max)]
        assert self.store.delete(of, before=before) == sum(u.reports for u in gone)
        self.counted = [u for u in self.counted if u not in gone]

    @rule(before=some_day)
    def forget(self, before: date) -> None:
        gone = [key for key, u in self.keys.items() if u.day < before]
        assert self.store.forget(before) == len(gone)
        for key in gone:
            del self.keys[key]

    @rule()
    def reopen(self) -> None:
        self.store.close()
        self.store = deniable.store.open(self.url)

    @rule(of=some_survey, since=st.none() | some_day, until=st.none() | some_day)
    def read(self, of: deniable.Survey, since: date | None, until: date | None) -> None:
        first, last = since or date.min, until or date.max
        chosen = [u for u in self.counted if u.digest == of.digest and first <= u.day <= last]
        assert kept(self.store, of, since=since, until=until) == reports_of(chosen)

    def teardown(self) -> None:
        if hasattr(self, "store"):
            for of in SURVEYS:
                mine = [u for u in self.counted if u.digest == of.digest]
                assert kept(self.store, of) == reports_of(mine)
                days: Counter[date] = Counter()
                for one in mine:
                    days[one.day] += one.reports
                assert self.store.days(of) == dict(days)
            assert self.store.check() == []
            self.store.close()
            self.folder.cleanup()


@pytest.mark.slow
def test_any_sequence() -> None:
    from hypothesis.stateful import run_state_machine_as_test

    examples = int(os.environ.get("STORE_EXAMPLES", "12"))
    run_state_machine_as_test(
        AnyStore, settings=settings(max_examples=examples, stateful_step_count=25, deadline=None)
    )
