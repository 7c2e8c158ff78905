"""Reports reach the collector once each: through failures, page ends and several tabs.

The collector is on another origin than the page, as collectors are.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.browser.conftest import result_in_page, run_in_node, run_in_page, start_in_page
from tests.browser.servers import Collector, collecting
from tests.surveys import make_survey

SURVEY = make_survey(
    """
[questions.dark]
kind = "boolean"
epsilon = 1.0
""",
    name="sending",
    budget=1000,
)


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting(SURVEY) as made:
        yield made


def arguments(collector: Collector, reports: int, again: int = 0, aged: int = 0) -> dict[str, Any]:
    return {
        "canonical": SURVEY.canonical.decode(), "sha256": SURVEY.sha256.hex(),
        "values": {"dark": True}, "collector": collector.address,
        "reports": reports, "again": again, "aged": aged,
    }  # fmt: skip


def keys(collector: Collector) -> list[str]:
    return [key for _, key, _ in collector.seen]


def test_each_report_is_an_upload_of_its_own(run: Any, collector: Collector) -> None:
    found = run("sending.js", arguments(collector, reports=3))
    assert found["tallies"] == [{"sent": 1, "refused": [], "waiting": 0}] * 3
    assert found["queue"] == 0
    assert len(collector.kept) == len(set(keys(collector))) == 3
    for _, key, headers in collector.seen:
        assert set(key) <= set("0123456789abcdef") and len(key) == 32
        assert headers["authorization"] == "Bearer ingest"
        assert not {"cookie", "referer"} & headers.keys()


FAILURES: list[int | str] = ["lose the request", "lose the answer", 503, 500, 401, 403]


def test_failures_keep_the_key_and_are_counted_once(run: Any, collector: Collector) -> None:
    collector.script.extend(FAILURES)
    found = run("sending.js", arguments(collector, reports=1, again=len(FAILURES)))
    assert [tally["sent"] for tally in found["tallies"]] == [0] * len(FAILURES) + [1]
    assert found["queue"] == 0
    assert len(collector.kept) == 1 and set(keys(collector)) == set(collector.kept)
    assert len(keys(collector)) == len(FAILURES) + 1


def test_pauses_grow_with_jitter(run: Any, collector: Collector) -> None:
    collector.script.extend([500] * 40)
    found = run("sending.js", arguments(collector, reports=1, again=5))
    assert [tries for tries, _ in found["waits"]] == [1, 2, 3, 4, 5, 6]
    for tries, wait in found["waits"]:
        assert 2**tries - 10 < wait <= 2 ** (tries + 1)  # 10 s for a slow machine
    assert len({round(wait / 2**tries, 2) for tries, wait in found["waits"]}) > 1


@pytest.mark.parametrize("status", [429, 503, 507])
def test_no_try_before_retry_after(run: Any, collector: Collector, status: int) -> None:
    collector.script.append(status)
    found = run("sending.js", arguments(collector, reports=3))
    assert found["tallies"][-1] == {"sent": 0, "refused": [], "waiting": 3}
    assert len(keys(collector)) == 1
    assert all(tries == 1 and 500 < wait <= 600 for tries, wait in found["waits"])


def test_what_can_never_be_accepted_is_dropped(run: Any, collector: Collector) -> None:
    statuses = [400, 404, 409, 410, 413, 415]
    collector.script.extend(statuses)
    found = run("sending.js", arguments(collector, reports=len(statuses), again=1))
    expected = [{"sent": 0, "refused": [status], "waiting": 0} for status in statuses]
    assert found["tallies"][:-1] == expected
    assert found["queue"] == 0 and len(keys(collector)) == len(statuses)


@pytest.mark.parametrize("status", [400, 404, 409, 410, 413, 415, 422])
def test_a_page_of_a_portal_does_not_drop_a_report(collector: Collector, status: int) -> None:
    """Only a collector knows that it will never accept it; its answers are problems in JSON."""
    collector.script.append(f"portal {status}")
    found = run_in_node("sending.js", arguments(collector, reports=1, again=1))
    waits, sent = ({"sent": n, "refused": [], "waiting": 1 - n} for n in (0, 1))
    assert found["tallies"] == [waits, sent]
    assert len(collector.kept) == 1 and len(set(keys(collector))) == 1


def test_what_waits_too_long_is_dropped(run: Any, collector: Collector) -> None:
    collector.script.extend([500] * 2)
    week = 7 * 24 * 3600 * 1000
    found = run("sending.js", arguments(collector, reports=1, again=1, aged=week))
    assert found["queue"] == 0 and len(keys(collector)) == 1


def test_a_page_tries_again_by_itself(new_page: Callable[[], Any], collector: Collector) -> None:
    collector.script.append(500)
    run_in_page(new_page(), "sending.js", arguments(collector, reports=1))
    assert collector.kept == {}
    collector.wait_for(1)
    assert len(set(keys(collector))) == 1


def test_a_page_that_ends_sends_what_waits_and_the_next_page_counts_it_once(
    new_page: Callable[[], Any], collector: Collector
) -> None:
    """The first of three is slow, so that the others still wait when the page ends."""
    collector.script.extend([503, "slow"])
    page = new_page()
    start_in_page(page, "sending.js", arguments(collector, reports=3, again=1))
    until = time.monotonic() + 20
    while len(collector.kept) < 1 and time.monotonic() < until:
        page.wait_for_timeout(20)
    page.goto("about:blank")
    collector.wait_for(3)
    sent = set(collector.kept)
    found = run_in_page(new_page(), "sending.js", arguments(collector, reports=0, again=1))
    assert found["queue"] == 0
    assert set(collector.kept) == sent == set(keys(collector)) and len(sent) == 3
    assert len(keys(collector)) > 4  # sent again by the next page, and not counted again


def test_two_tabs_share_the_work(new_page: Callable[[], Any], collector: Collector) -> None:
    collector.script.append(503)
    past = new_page()
    run_in_page(past, "sending.js", arguments(collector, reports=6))
    past.close()
    pages = [new_page(), new_page()]
    pages[0].evaluate(
        """async () => {
          const store = (await import("/clients/js/deniable.js")).browserStore();
          for (const { key } of await store.all("queue/"))
            await store.update(`queue/${key}`, (old) => ({ ...old, after: 0 }));
        }"""
    )
    before = len(collector.seen)
    for page in pages:
        start_in_page(page, "sending.js", arguments(collector, reports=1))
    sent = [result_in_page(page)["tallies"][0]["sent"] for page in pages]
    assert sum(sent) == len(collector.seen) - before == len(collector.kept) == 8
