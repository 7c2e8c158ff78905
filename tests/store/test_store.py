"""Test the behaviour that all stores share, on every kind of store."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import pytest

import deniable.store
from deniable.errors import InputError, StoreError, UnknownSurvey
from deniable.store import Compacted, Outcome, Store, base
from tests.uploads import DAY, MARKS, NEXT, again, kept, reports_of, survey, upload

STORED, REPEATED, CONFLICT = Outcome.STORED, Outcome.REPEATED, Outcome.CONFLICT


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with deniable.store.open(url, create=True) as found:
        found.add_survey(MARKS)
        yield found


def test_everything_appended_is_read_once(store: Store) -> None:
    first, second = [upload(3), upload(1)], [upload(2500, NEXT)]
    assert store.append(first) == [STORED, STORED]
    assert store.append(second) == [STORED]
    assert kept(store) == reports_of(first + second)
    assert store.days(MARKS) == {DAY: 4, NEXT: 2500}
    assert all(len(batch) <= 7 for batch in store.scan(MARKS, rows=7))
    assert store.append([]) == []
    assert store.check() == []


def test_an_upload_counts_once_however_often_it_comes(store: Store) -> None:
    one = upload(5)
    other = upload(5, key=one.key)
    assert store.append([one, one, other]) == [STORED, REPEATED, CONFLICT]
    later = again(one, day=NEXT)  # tried again after midnight
    assert store.append([other, later, upload()]) == [CONFLICT, REPEATED, STORED]
    assert store.days(MARKS) == {DAY: 6}


def test_the_same_key_for_another_survey_is_a_conflict(store: Store) -> None:
    one, second = upload(), survey(2)
    store.add_survey(second)
    assert store.append([one, again(one, digest=second.digest)]) == [STORED, CONFLICT]


def test_an_older_store_is_brought_up_to_date(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    one = upload(60)
    with deniable.store.open(url, create=True) as older:
        older.add_survey(MARKS)
        older.append([one])
    newer = (*base.VERSIONS, ("ALTER TABLE staged ADD COLUMN later BIGINT",))
    monkeypatch.setattr(base, "VERSIONS", newer)
    for _ in range(2):
        with deniable.store.open(url) as store:
            assert store.append([one]) == [REPEATED]
            assert store._rows("SELECT later FROM staged") == [(None,)]
            assert kept(store) == reports_of([one]) and store.check() == []


def test_what_is_appended_survives(url: str) -> None:
    one = upload(5)
    with deniable.store.open(url, create=True) as store:
        store.add_survey(MARKS)
        store.append([one])
    with deniable.store.open(url) as store:
        assert store.surveys() == [MARKS]
        assert store.append([one, upload(key=one.key)]) == [REPEATED, CONFLICT]
        assert kept(store) == reports_of([one])


def test_surveys_stay_apart(store: Store) -> None:
    second, another = survey(2), survey(1, "another")
    for each in (second, another, second):
        store.add_survey(each)
    assert store.surveys() == [another, MARKS, second]
    uploads = {s: upload(40, of=s) for s in store.surveys()}
    store.append(list(uploads.values()) + [upload(30, of=s) for s in uploads])
    store.compact(at_least=10)
    for each, one in uploads.items():
        assert kept(store, each) > reports_of([one])
        assert sum(kept(store, each).values()) == 70


def test_test_data_and_real_reports_of_a_survey_are_kept_apart(store: Store) -> None:
    """Whoever decodes the survey by its name gets the newest version."""
    for version in (1, 2):
        with pytest.raises(InputError, match="test data in a separate store"):
            store.add_survey(survey(version).for_testing())
    testing = survey(1, "another").for_testing()
    store.add_survey(testing)
    with pytest.raises(InputError, match="v2 and v1, which is for testing"):
        store.add_survey(survey(2, "another"))
    assert store.surveys() == [testing, MARKS]


def test_a_changed_survey_needs_a_new_version(store: Store) -> None:
    with pytest.raises(InputError, match="new version"):
        store.add_survey(survey(1, description="changed"))
    assert store.surveys() == [MARKS]


def test_what_is_not_of_a_known_survey_is_refused_whole(store: Store) -> None:
    with pytest.raises(UnknownSurvey, match="marks v1"):
        store.append([upload(), upload(of=survey(7))])
    with pytest.raises(InputError, match="expected 32 bytes for 2 reports"):
        store.append([upload(), again(upload(2), reports=2, bodies=bytes(30))])
    for ask in (store.days, store.snapshot, store.delete):
        with pytest.raises(UnknownSurvey):
            ask(survey(7))
    assert store.days(MARKS) == {}


def test_days_are_chosen_with_both_ends(store: Store) -> None:
    days = [DAY + timedelta(days=i) for i in range(5)]
    uploads = [upload(60 + i, day) for i, day in enumerate(days)]
    store.append(uploads + [upload(50, day) for day in days[:2]])
    store.compact(at_least=50, today=DAY)  # the first two days become segments
    found = kept(store, since=days[1], until=days[3])
    assert found > reports_of(uploads[1:4])
    assert sum(found.values()) == 61 + 50 + 62 + 63
    assert sum(kept(store, since=days[4]).values()) == 64
    assert sum(kept(store, until=days[0]).values()) == 110
    assert kept(store, since=days[3], until=days[2]) == Counter()


# --- compaction ----------------------------------------------------------------------------------


def test_compaction_keeps_every_report_once(store: Store) -> None:
    uploads = [upload(1 + i % 7, DAY) for i in range(100)] + [upload(3, NEXT)]
    store.append(uploads)
    reports = sum(u.reports for u in uploads)
    done = store.compact(at_least=100, today=DAY)
    assert done == Compacted(segments=1, reports=reports - 3, waiting=3)
    assert kept(store) == reports_of(uploads)
    assert store.days(MARKS) == {DAY: reports - 3, NEXT: 3}
    assert store.check() == []
    assert store.append(uploads[:1] + uploads[-1:]) == [REPEATED, REPEATED]
    assert store.compact(at_least=100, today=DAY) == Compacted(0, 0, 3)


def test_no_batch_is_compacted_without_company(store: Store) -> None:
    """An upload must be shuffled with reports of others, however large it is."""
    store.append([upload(500), upload(99)])
    assert store.compact(at_least=100, today=DAY) == Compacted(0, 0, 599)
    store.append([upload(1)])
    assert store.compact(at_least=100, today=DAY) == Compacted(1, 600, 0)
    with pytest.raises(InputError, match="1 or more"):
        store.compact(at_least=0)


def test_batches_are_broken_up(store: Store) -> None:
    """Of 200 uploads of 5 reports, any stays together by chance with probability below 1e-6."""
    uploads = [upload(5) for _ in range(200)]
    store.append(uploads)
    store.compact(at_least=500)
    order = [report for batch in store.scan(MARKS) for report in rows(batch)]
    place = {report: i for i, report in enumerate(order)}
    for one in uploads:
        own = sorted(place[report] for report in reports_of([one]))
        assert own[-1] - own[0] > 4


def rows(batch: object) -> list[bytes]:
    from deniable.columns.batch import to_bodies

    return [row.tobytes() for row in to_bodies(batch)]  # type: ignore[arg-type]


def test_the_rest_of_a_day_joins_a_batch_of_the_next_day(store: Store) -> None:
    uploads = [upload(60), upload(60)]
    store.append(uploads)
    store.compact(at_least=50, today=DAY)
    released = segment_names(store)
    rest = [upload(7), upload(7, NEXT)]
    store.append(rest)
    assert store.compact(at_least=50, today=NEXT) == Compacted(0, 0, 14)
    assert segment_names(store) == released, "what analysts have seen does not grow by 7"
    late = [upload(60, NEXT), upload(60, NEXT + timedelta(days=1))]
    store.append(late)
    assert store.compact(at_least=50, today=DAY) == Compacted(0, 0, 134), "no day is over"
    assert store.compact(at_least=60, today=NEXT) == Compacted(0, 0, 134)
    assert store.compact(at_least=14, today=NEXT) == Compacted(1, 74, 60)
    assert store.days(MARKS) == {DAY: 120, NEXT: 74, NEXT + timedelta(days=1): 60}
    assert kept(store) == reports_of(uploads + rest + late)
    assert store.append(rest) == [REPEATED, REPEATED]
    assert store.check() == []


def test_analysts_read_segments_only(url: str) -> None:
    with deniable.store.open(url, create=True) as store:
        store.add_survey(MARKS)
        store.append(shuffled := [upload(60), upload(60)])
        store.compact(at_least=50, today=DAY)
        store.append([upload(7)])
        with deniable.store.open(url, compacted_only=True) as view:
            assert kept(view) == reports_of(shuffled)
            assert (view.days(MARKS), view.waiting(MARKS)) == ({DAY: 120}, 7)
        assert (store.days(MARKS), store.waiting(MARKS)) == ({DAY: 127}, 7)


@pytest.mark.parametrize("seed", range(3))
def test_what_analysts_see_grows_by_whole_batches(url: str, seed: int) -> None:
    """Whatever arrives on whichever day, no difference of two views is smaller than a batch."""
    rng, sent = random.Random(seed), []
    with deniable.store.open(url, create=True) as store:
        store.add_survey(MARKS)
        with deniable.store.open(url, compacted_only=True) as view:
            before: Counter[bytes] = Counter()
            for step in range(25):
                day = DAY + timedelta(days=step // 5 - rng.randrange(2))
                sent += (new := [upload(rng.choice((1, 2, 9)), day) for _ in range(3)])
                store.append(new)
                done = store.compact(at_least=20, today=DAY + timedelta(days=step // 5))
                now = kept(view)
                assert not before - now and (now - before).total() == done.reports
                assert done.reports == 0 or done.reports > 20 * done.segments
                assert done.waiting == view.waiting(MARKS)
                before = now
        assert kept(store) == reports_of(sent) and before.total() > 60


def test_a_scan_under_way_outlives_a_compaction(url: str) -> None:
    with deniable.store.open(url, create=True) as store:
        store.add_survey(MARKS)
        store.append(uploads := [upload(60), upload(60)])
        snapshot = store.snapshot(MARKS)
        assert store.compact(at_least=50, today=NEXT).segments == 1
        found = Counter(r for b in snapshot.batches() for r in rows(b))
        assert found == reports_of(uploads)


def test_large_amounts_become_several_segments(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deniable.store.compaction.MAX_SEGMENT_BYTES", 16 * 300)
    uploads = [upload(50) for _ in range(20)]
    for one in uploads:
        store.append([one])
    done = store.compact(at_least=100, today=DAY)
    assert done.segments >= 3 and done.reports + done.waiting == 1000
    assert kept(store) == reports_of(uploads)


def test_a_snapshot_stays_what_it_was(store: Store) -> None:
    uploads = [upload(20) for _ in range(10)]
    store.append(uploads)
    snapshot = store.snapshot(MARKS)
    scan = store.scan(MARKS, rows=10)
    first = next(scan)
    store.append([upload(300)])
    store.compact(at_least=10)
    for _ in range(2):
        assert Counter(r for b in snapshot.batches(64) for r in rows(b)) == reports_of(uploads)
    assert Counter(rows(first) + [r for b in scan for r in rows(b)]) == reports_of(uploads)
    assert snapshot.days == {DAY: 200} and len(snapshot) == 200


# --- deleting and forgetting ---------------------------------------------------------------------


def test_deleting_leaves_the_rest(store: Store) -> None:
    other = survey(2)
    store.add_survey(other)
    staged, segment = [upload(3, DAY), upload(4, NEXT)], [upload(60, DAY), upload(60, DAY)]
    rest = upload(5, of=other)
    store.append([*segment])
    store.compact(at_least=50, today=DAY)
    store.append([*staged, rest])
    assert store.delete(MARKS, before=NEXT) == 123
    assert store.days(MARKS) == {NEXT: 4}
    assert store.delete(MARKS) == 4 and store.delete(MARKS) == 0
    assert store.days(MARKS) == {} and kept(store) == Counter()
    assert kept(store, other) == reports_of([rest])
    assert store.surveys() == [MARKS, other]
    assert store.check() == []
    # What was deleted does not come back by being sent again.
    assert set(store.append([*staged, *segment])) == {REPEATED}


def test_keys_are_forgotten_by_day(store: Store) -> None:
    compacted, early, late = [upload(60), upload(60)], upload(1, DAY), upload(1, NEXT)
    store.append(compacted)
    store.compact(at_least=50, today=DAY)
    store.append([early, late])
    assert store.forget(DAY) == 0
    assert store.append([compacted[0], early, late]) == [REPEATED] * 3
    assert store.forget(NEXT) == 3
    assert store.append([late]) == [REPEATED]
    assert store.append([compacted[0], early]) == [STORED] * 2
    assert store.days(MARKS) == {DAY: 182, NEXT: 1}


# --- many at once --------------------------------------------------------------------------------


def test_threads_that_send_the_same_uploads_count_once(store: Store) -> None:
    uploads = [upload(3) for _ in range(40)]
    outcomes: list[Outcome] = []

    def send(start: int) -> None:
        for i in range(0, len(uploads), 5):
            some = [uploads[(start + i + j) % len(uploads)] for j in range(5)]
            outcomes.extend(store.append(some))

    threads = [threading.Thread(target=send, args=(7 * i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        store.compact(at_least=20, today=DAY)
    for thread in threads:
        thread.join()
    assert outcomes.count(STORED) == 40 and CONFLICT not in outcomes
    assert kept(store) == reports_of(uploads)
    assert store.check() == []


def test_two_openings_of_one_store_agree(store: Store, url: str) -> None:
    one, two = upload(), upload()
    with deniable.store.open(url) as other:
        assert other.append([one]) == [STORED]
        assert store.append([one, two]) == [REPEATED, STORED]
        store.add_survey(survey(2))
        assert other.append([upload(of=survey(2)), two]) == [STORED, REPEATED]
        assert kept(other) == kept(store) == reports_of([one, two])


def test_a_backup_made_meanwhile_is_a_store(store: Store, tmp_path: Path) -> None:
    to = tmp_path / "copy.db"
    compacted, staged = [upload(60), upload(60)], [upload(7)]
    store.append(compacted)
    store.compact(at_least=50, today=DAY)
    store.append(staged)
    meanwhile = [upload(2) for _ in range(30)]
    thread = threading.Thread(target=lambda: [store.append([u]) for u in meanwhile])
    thread.start()
    store.backup(to)
    thread.join()
    with deniable.store.open(to) as copy:
        assert copy.check() == []
        found = kept(copy)
        assert reports_of(compacted + staged) <= found <= kept(store)
        arrived = [u for u in meanwhile if reports_of([u]) <= found]
        assert found == reports_of(compacted + staged + arrived)
        assert copy.append([*compacted, *staged, *arrived]) == [REPEATED] * (3 + len(arrived))
    with pytest.raises(StoreError, match="empty"):
        store.backup(to)


# --- what is not there ---------------------------------------------------------------------------


def test_a_store_must_exist_unless_it_is_made(url: str) -> None:
    with pytest.raises(StoreError, match="there is no store"):
        deniable.store.open(url)
    deniable.store.open(url, create=True).close()
    deniable.store.open(url).close()


def test_damage_to_a_segment_is_found(url: str) -> None:
    with deniable.store.open(url, create=True) as store:
        store.add_survey(MARKS)
        store.append([upload(60), upload(60)])
        store.compact(at_least=50)
        place, name = store._location, segment_names(store)[0]
        whole = place.get(name)
        footer = whole[:-500] + bytes(492) + whole[-8:]
        for damaged in (whole[:-20], b"", footer):
            place.put(name, damaged)
            assert [text for text in store.check() if name in text]
            with pytest.raises(StoreError, match="damaged"):
                kept(store)
        place.remove(name)
        assert [text for text in store.check() if name in text]
        place.put(name, whole)
        assert store.check() == []


def segment_names(store: Store) -> list[str]:
    return list(store.snapshot(MARKS)._segments)


def test_room_is_a_number_of_bytes_or_unknown(store: Store) -> None:
    room = store.room()
    assert room is None or room > 0


def test_days_are_dates(store: Store) -> None:
    store.append([upload(day=date(1999, 1, 1))])
    assert list(store.days(MARKS)) == [date(1999, 1, 1)]
