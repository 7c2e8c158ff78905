"""Sending: every report arrives once, whatever the network and the collector do."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deniable.client import Client, Outbox, Sender, fetch_survey
from deniable.client import sender as sender_module
from deniable.client.outbox import MAX_WAIT, RETRY_PERIOD
from deniable.errors import BudgetExceeded, InputError, OutboxError, TransferError
from deniable.survey import Report, Survey, from_batch, from_bytes
from tests.faults import cutting_server as faults
from tests.faults.cutting_server import ACCEPT, Act, Server, refuse, reply
from tests.surveys import ANY_SURVEY, make_survey

SURVEY = make_survey(
    """
[questions.word]
kind = "string"
epsilon = 1.0
""",
    name="sent",
    budget=1e6,
)


class Clock:
    """A clock that tests advance."""

    def __init__(self) -> None:
        self.now = 1_000_000_000.0

    def __call__(self) -> float:
        return self.now


def reports(count: int, survey: Survey = SURVEY) -> list[Report]:
    client = Client(survey, secret=bytes(32), limits=ANY_SURVEY)
    return [client.answer({}) for _ in range(count)]


@pytest.fixture
def outbox(tmp_path: Path) -> Outbox:
    return Outbox(tmp_path / "box" / "outbox.db", clock=Clock())


def pass_time(outbox: Outbox, seconds: float) -> None:
    assert isinstance(outbox.clock, Clock)
    outbox.clock.now += seconds


def script(*acts: Act) -> Callable[[int], Act]:
    """Return a server that acts as listed, then accepts everything."""
    return lambda n: acts[n] if n < len(acts) else ACCEPT


# --- delivery of reports ------------------------------------------------------------------------


def test_answer_queue_send(tmp_path: Path) -> None:
    client = Client.open(SURVEY, tmp_path, limits=ANY_SURVEY)
    made = {bytes(client.answer_and_queue({"word": "abc"})) for _ in range(5)}
    with Server() as server:
        sent = Client.open(SURVEY, tmp_path, limits=ANY_SURVEY).send(server.url)
    assert set(server.stored.values()) == made
    assert (sent.accepted, sent.waiting, sent.refused, sent.problem) == (5, 0, 0, None)
    assert client.send("http://127.0.0.1:9").accepted == 0, "nothing is left to send"


def test_a_client_without_a_folder_says_so() -> None:
    client = Client(SURVEY, secret=bytes(32), limits=ANY_SURVEY)
    with pytest.raises(InputError, match=r"Client\.open"):
        client.answer_and_queue({})
    assert client.ledger.spent("sent") == 0


def test_a_refused_answer_is_not_queued(tmp_path: Path) -> None:
    once = make_survey(
        """
[questions.dark]
kind = "boolean"
epsilon = 1.0
""",
        name="s",
    )
    client = Client.open(once, tmp_path)
    client.answer_and_queue({"dark": True})
    with pytest.raises(BudgetExceeded):
        client.answer_and_queue({"dark": True})
    assert client.outbox is not None
    assert client.outbox.counts().waiting == 1


def test_an_outbox_that_cannot_be_written_costs_nothing(tmp_path: Path) -> None:
    client = Client.open(SURVEY, tmp_path, limits=ANY_SURVEY)
    (tmp_path / "outbox-sent.db").write_bytes(b"not a database" * 100)
    with pytest.raises(OutboxError, match="move the file away"):
        client.answer_and_queue({})
    assert client.ledger.spent("sent") == 0


def test_an_outbox_of_a_later_release_is_left_alone(outbox: Outbox) -> None:
    outbox.put(*reports(1))
    with outbox._transaction() as db:
        db.execute("PRAGMA user_version = 9")
    with pytest.raises(OutboxError, match="format 1 of outboxes, not 9"):
        outbox.counts()


def test_outbox_is_private(outbox: Outbox) -> None:
    outbox.put(*reports(1))
    assert outbox.path.stat().st_mode & 0o777 == 0o600
    assert [p.name for p in outbox.path.parent.iterdir()] == ["outbox.db"]


def test_one_report_an_upload_an_own_key_and_connection(outbox: Outbox) -> None:
    made = reports(6)
    outbox.put(*made)
    with Server() as server:
        Sender(outbox, server.url).send()
    assert server.connections == len(server.requests) == len(server.stored) == 6
    assert {from_bytes(r.body, SURVEY) for r in server.requests} == set(made)
    assert all(len(bytes.fromhex(r.key)) == 16 for r in server.requests)


def test_order_says_nothing_of_when_a_report_was_made(tmp_path: Path) -> None:
    """Eight reports stay in order by chance once in 40,320; in three runs never: 1.5e-14."""
    orders = []
    for run in range(3):
        outbox = Outbox(tmp_path / f"{run}.db")
        made = [bytes(report) for report in reports(8)]
        for report in made:
            outbox.put(from_bytes(report, SURVEY))
        with Server() as server:
            Sender(outbox, server.url).send()
        orders.append([r.body for r in server.requests] == made)
    assert orders != [True] * 3


def test_headers_are_the_same_for_everyone(outbox: Outbox) -> None:
    outbox.put(*reports(1))
    with Server() as server:
        Sender(outbox, server.url, token="ingest-7").send()
    (request,) = server.requests
    assert request.line == "POST /v1/reports HTTP/1.1"
    assert dict(request.headers) == {
        "Host": f"127.0.0.1:{server.port}",
        "User-Agent": "deniable",
        "Connection": "close",
        "Content-Length": str(len(request.body)),
        "Content-Type": "application/octet-stream",
        "Idempotency-Key": request.key,
        "Authorization": "Bearer ingest-7",
    }


def test_a_batch_is_as_old_as_its_oldest_report(outbox: Outbox) -> None:
    """It is dropped in the place of that report if the outbox is full."""
    outbox.put(*reports(5))
    upload = outbox.next(batch=5)
    assert upload is not None and (upload.id, upload.reports) == (1, 5)


def test_a_gateway_batches_by_survey(outbox: Outbox) -> None:
    second = Survey.from_json(SURVEY.canonical.replace(b'"version":1', b'"version":2'))
    made = {SURVEY.digest: reports(25), second.digest: reports(7, second)}
    outbox.put(*made[SURVEY.digest], *made[second.digest])
    with Server() as server:
        sent = Sender(outbox, server.url, token="gateway", batch=10).send()
    assert sent.accepted == 32
    assert sorted(
        len(from_batch(body, {SURVEY.digest: SURVEY, second.digest: second}))
        for body in server.stored.values()
    ) == [5, 7, 10, 10]
    for survey in (SURVEY, second):
        arrived = [
            report
            for body in server.stored.values()
            if body[4:20] == survey.digest
            for report in from_batch(body, survey)
        ]
        assert arrived != made[survey.digest], "mixed"
        assert set(arrived) == set(made[survey.digest])


# --- inconclusive attempts ----------------------------------------------------------------------

FAILURES = {
    "cut at once": faults.CUT_AT_ONCE,
    "cut before it is kept": faults.CUT_BEFORE,
    "cut after it is kept": faults.CUT_AFTER,
    "half an answer": faults.HALF_AN_ANSWER,
    "not HTTP": Act(keep=False, answer=b"220 mail.example ESMTP\r\n"),
    "429": refuse(429),
    "500": refuse(500),
    "503": refuse(503),
    "507": refuse(507),
    "401": refuse(401, "no such token"),
    "403": refuse(403),
    "a portal's page": Act(
        keep=False, answer=b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<h1>Hotel"
    ),
    "a proxy's 404": Act(
        keep=False, answer=b"HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\n\r\n<h1>no"
    ),
    "a redirection": Act(
        keep=False, answer=b"HTTP/1.1 307 Moved\r\nLocation: http://127.0.0.1:9/\r\n\r\n"
    ),
}


@pytest.mark.parametrize("act", FAILURES.values(), ids=FAILURES.keys())
def test_the_same_upload_is_sent_until_it_is_accepted(outbox: Outbox, act: Act) -> None:
    (report,) = reports(1)
    outbox.put(report)
    with Server(choose=script(act, act)) as server:
        for tries in (1, 2):
            sent = Sender(outbox, server.url).send()
            assert (sent.accepted, sent.waiting, sent.refused) == (0, 1, 0)
            assert sent.problem
            assert server.connections == tries, "one try, then a pause"
            pass_time(outbox, 3600)
        assert Sender(outbox, server.url).send().accepted == 1
    assert not server.conflicts
    assert list(server.stored.values()) == [bytes(report)]
    assert len({(r.key, r.body) for r in server.requests}) == 1


@pytest.mark.parametrize(
    ("act", "says"),
    [
        (refuse(401, "no such token"), "token: 401 Unauthorized: no such token"),
        (FAILURES["a redirection"], "redirects to http://127.0.0.1:9/; use its own address"),
        (FAILURES["a proxy's 404"], "404 Not Found: this response is not from a collector"),
        (refuse(507, "disk nearly full"), "disk nearly full"),
        (refuse(503, "\x1b]0;gotcha\x07 \n\x1b[2J"), "503 Service Unavailable:  ]0;gotcha    [2J"),
        (faults.CUT_BEFORE, "no response from 127.0.0.1"),
    ],
)
def test_problems_are_explained(outbox: Outbox, act: Act, says: str) -> None:
    outbox.put(*reports(1))
    with Server(choose=script(act)) as server:
        problem = Sender(outbox, server.url).send().problem
    assert problem is not None
    assert says in problem


def test_a_silent_server_is_left_in_time(outbox: Outbox) -> None:
    outbox.put(*reports(1))
    with Server(choose=script(faults.SILENT)) as server:
        sent = Sender(outbox, server.url, timeout=0.2).send()
    assert (sent.waiting, sent.accepted) == (1, 0)
    assert sent.problem


def test_a_server_that_dribbles_is_left_in_time(outbox: Outbox) -> None:
    """Each byte arrives in time, but not the whole response: the total deadline ends it."""
    import socket

    outbox.put(*reports(1))
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def dribble() -> None:
            client, _ = listener.accept()
            try:
                for _ in range(1000):
                    client.send(b"H")
                    time.sleep(0.02)
            except OSError:
                client.close()

        thread = threading.Thread(target=dribble, daemon=True)
        thread.start()
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        sent = Sender(outbox, address, timeout=0.3).send()
        thread.join()
    assert sent.waiting == 1


# --- time between attempts ----------------------------------------------------------------------


def test_waits_grow_with_full_jitter() -> None:
    for failures, bound in ((0, 1.0), (5, 32.0), (12, 3600.0), (10**6, 3600.0)):
        waits = [sender_module.backoff(failures) for _ in range(300)]
        assert all(0 <= wait < bound for wait in waits)
        # Each of 300 fair draws falls in the lower half by chance: 2^-300, and the upper.
        assert min(waits) < bound / 2 < max(waits)


def test_failures_are_remembered_by_the_outbox(outbox: Outbox) -> None:
    seen: list[int] = []

    def wait(failures: int) -> float:
        seen.append(failures)
        return 10.0

    for _ in range(3):
        Outbox(outbox.path, clock=outbox.clock).hold(wait)
    assert seen == [0, 1, 2]
    assert outbox.wait() == 10
    outbox.put(*reports(1))
    upload = outbox.next()
    assert upload is not None
    outbox.accept(upload)
    outbox.hold(wait)
    assert seen == [0, 1, 2, 0]


@pytest.mark.parametrize(
    ("headers", "least"),
    [
        ({"Retry_After": "100"}, 100),
        ({"Retry_After": "Wed, 01 Jan 2020 00:10:00 GMT",
          "Date": "Wed, 01 Jan 2020 00:00:00 GMT"}, 600),
        ({"Retry_After": "soon"}, 0),
        ({"Retry_After": "-5"}, 0),
        ({"Retry_After": "Wed, 01 Jan 2020 00:10:00 GMT",
          "Date": "Wed, 01 Jan 2025 00:00:00 GMT"}, 0),
        ({"Retry_After": "9" * 400}, MAX_WAIT - 1),
    ],
)  # fmt: skip
def test_retry_after_is_honoured(outbox: Outbox, headers: dict[str, str], least: float) -> None:
    outbox.put(*reports(2))
    with Server(choose=script(refuse(503, **headers))) as server:
        sent = Sender(outbox, server.url).send()
        assert least <= sent.wait <= least + 1
        pass_time(outbox, least - 0.001 if least else 0)
        if least:
            assert Sender(outbox, server.url).send().accepted == 0
        pass_time(outbox, 2)
        assert Sender(outbox, server.url).send().accepted == 2
    assert server.connections == 3


def test_retry_after_a_date_without_the_servers_clock(outbox: Outbox) -> None:
    outbox.put(*reports(1))
    with Server(choose=script(refuse(503, Retry_After="Wed, 01 Jan 2098 00:00:00 GMT"))) as server:
        assert Sender(outbox, server.url).send().wait == MAX_WAIT


def test_a_clock_that_was_set_back_does_not_silence(outbox: Outbox) -> None:
    outbox.put(*reports(1))
    outbox.hold(lambda n: 60)
    pass_time(outbox, -20 * 365 * 86400)
    assert outbox.wait() == 0


@pytest.mark.slow
def test_days_offline(outbox: Outbox) -> None:
    """Without a connection nothing was sent, so no upload is ever set aside."""
    for day in range(40):
        outbox.put(*reports(1))
        sent = Sender(outbox, "http://127.0.0.1:9", timeout=1).send()
        assert sent.waiting == day + 1
        assert sent.problem
        pass_time(outbox, 86400)
    with Server() as server:
        assert Sender(outbox, server.url).send().accepted == 40
    assert len(server.stored) == 40


def test_now_tries_at_once_and_once(outbox: Outbox) -> None:
    outbox.put(*reports(2))
    outbox.hold(lambda n: 1000)
    with Server(choose=script(refuse(503, Retry_After="500"))) as server:
        assert Sender(outbox, server.url).send().problem is None
        assert server.connections == 0
        assert Sender(outbox, server.url).send(now=True).waiting == 2
        assert server.connections == 1


def test_spread_sends_one_and_waits(outbox: Outbox) -> None:
    outbox.put(*reports(3))
    waits = []
    with Server() as server:
        for _ in range(3):
            sent = Sender(outbox, server.url, spread=600).send()
            assert sent.accepted == 1
            waits.append(sent.wait)
            pass_time(outbox, 600)
    assert all(0 < wait < 600 for wait in waits)
    assert len(set(waits)) == 3


def test_one_that_the_server_chokes_on_does_not_hold_up_the_others(outbox: Outbox) -> None:
    """The bad one is drawn first 60 times running by chance less than once in 2^60."""
    outbox.put(*reports(2))
    bad = outbox.next()
    assert bad is not None

    class Choking(Server):
        def _talk(self, client: Any, act: Act) -> None:
            request = faults._read(client)
            assert request is not None
            if request.body == bad.body:
                client.sendall(reply(500))
            else:
                self.stored[request.key] = request.body
                client.sendall(reply(202))

    with Choking() as server:
        for _ in range(60):
            Sender(outbox, server.url).send()
            pass_time(outbox, 3600)
            if server.stored:
                break
    assert len(server.stored) == 1
    assert outbox.counts().waiting == 1


def test_run_until_told_to_stop(tmp_path: Path) -> None:
    outbox, stop = Outbox(tmp_path / "o.db"), threading.Event()
    with Server(choose=script(refuse(503, Retry_After="0"))) as server:
        sender = Sender(outbox, server.url)
        thread = threading.Thread(target=sender.run, args=(stop,), kwargs={"every": 0.01})
        thread.start()
        outbox.put(*reports(2))
        deadline = time.monotonic() + 60
        while len(server.stored) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        stop.set()
        thread.join(60)
    assert not thread.is_alive()
    assert len(server.stored) == 2


# --- permanent refusals ---------------------------------------------------------------------------


@pytest.mark.parametrize("status", [400, 404, 409, 410, 413, 415])
def test_refused_for_good_is_set_aside(outbox: Outbox, status: int) -> None:
    outbox.put(*reports(3))
    with Server(choose=script(refuse(status, "because"))) as server:
        sent = Sender(outbox, server.url).send()
        assert (sent.accepted, sent.refused, sent.waiting) == (2, 1, 0)
        assert sent.problem is not None
        assert sent.problem.endswith("because")
        pass_time(outbox, 1e6)
        assert Sender(outbox, server.url).send().problem is None
        assert server.connections == 3, "never tried again"
        assert [(k.split()[0], n) for k, n in outbox.refusals().items()] == [(str(status), 1)]
        assert outbox.counts().refused == 1
        assert outbox.try_again() == 1
        assert Sender(outbox, server.url).send().accepted == 1
    assert len(server.stored) == 3


@pytest.mark.parametrize("act", [faults.CUT_AFTER, refuse(429, "quota")])
def test_not_accepted_as_long_as_a_key_is_remembered_is_set_aside(outbox: Outbox, act: Act) -> None:
    """The collector may have stored it and forgotten its key: it would be counted twice."""
    outbox.put(*reports(1))
    with Server(choose=script(act)) as server:
        Sender(outbox, server.url).send()
        pass_time(outbox, RETRY_PERIOD + 1)
        sent = Sender(outbox, server.url).send()
    assert (sent.accepted, sent.waiting) == (0, 0)
    assert server.connections == 1
    assert list(outbox.refusals()) == ["not accepted in the 6 days since the first attempt"]


def test_an_outbox_restored_from_a_backup_is_counted_once(outbox: Outbox) -> None:
    outbox.put(*reports(3))
    backup = outbox.path.read_bytes()
    with Server() as server:
        assert Sender(outbox, server.url).send().accepted == 3
        outbox.path.write_bytes(backup)
        assert Sender(outbox, server.url).send().accepted == 3
    assert len(server.stored) == 3


# --- batches need a gateway key -----------------------------------------------------------------


def test_batches_without_a_gateway_key_fail_before_anything_is_sent(outbox: Outbox) -> None:
    outbox.put(*reports(3))
    with Server() as server:
        with pytest.raises(InputError, match="keys add --role gateway"):
            Sender(outbox, server.url, batch=2)
        assert server.connections == 0
        assert Sender(outbox, server.url).send().accepted == 3, "no batch was formed"
    assert {len(body) for body in server.stored.values()} == {len(bytes(reports(1)[0]))}


def test_a_key_that_is_no_gateway_key_keeps_the_reports(outbox: Outbox) -> None:
    outbox.put(*reports(3))
    with Server(choose=script(refuse(403, "needs a gateway key"))) as server:
        sent = Sender(outbox, server.url, token="ingest", batch=3).send()
        assert (sent.accepted, sent.refused, sent.waiting) == (0, 0, 3)
        assert "needs a gateway key" in (sent.problem or "")
        assert Sender(outbox, server.url, token="gateway", batch=3).send(now=True).accepted == 3


def test_batches_that_are_too_large_are_split(outbox: Outbox) -> None:
    """The collector allows two reports per upload; none is lost, or sent under two keys."""
    made = reports(9)
    outbox.put(*made)
    too_large = refuse(413, "may send 2 reports per upload")
    with Server(choose=script(too_large, too_large)) as server:  # 9 reports, then 4
        sent = Sender(outbox, server.url, token="gateway", batch=9).send()
    assert (sent.accepted, sent.refused, sent.waiting) == (9, 0, 0)
    bodies = server.stored.values()
    arrived = [report for body in bodies if body[3] == 2 for report in from_batch(body, SURVEY)]
    arrived += [from_bytes(body, SURVEY) for body in bodies if body[3] == 1]
    assert sorted(map(bytes, arrived)) == sorted(map(bytes, made))
    assert len(bodies) == 5, "pairs, and one report"


def test_a_batch_that_may_have_been_stored_is_not_split(outbox: Outbox) -> None:
    """It might have arrived when larger batches were allowed, and would be counted twice."""
    outbox.put(*reports(4))
    with Server(choose=script(faults.CUT_AFTER, refuse(413, "too many"))) as server:
        sender = Sender(outbox, server.url, token="gateway", batch=4)
        assert sender.send().waiting == 4
        sent = sender.send(now=True)
    assert (sent.refused, sent.waiting, len(server.stored)) == (4, 0, 1)


# --- bounds -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_disk_use_is_bounded_oldest_go_first_and_are_counted(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path / "o.db", limit=1 << 16)
    made = reports(3000)
    for start in range(0, 3000, 100):
        outbox.put(*made[start : start + 100])
        assert outbox.path.stat().st_size <= (1 << 16) + (1 << 14)
    counts = outbox.counts()
    assert counts.waiting + counts.dropped == 3000
    assert counts.waiting > 500
    with Server() as server:
        Sender(outbox, server.url, token="gateway", batch=100).send()
    arrived = {r for body in server.stored.values() for r in from_batch(body, SURVEY)}
    assert arrived == set(made[counts.dropped :])


def test_a_limit_too_small_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="65536 bytes, not 100"):
        Outbox(tmp_path / "o.db", limit=100)


@pytest.mark.slow
def test_processes_may_share_an_outbox(tmp_path: Path) -> None:
    """Two senders at the same time may send an upload twice, under the same key."""
    outbox = Outbox(tmp_path / "o.db")
    made = reports(30)
    with Server() as server:
        senders = [
            threading.Thread(target=lambda: Sender(Outbox(outbox.path), server.url).send())
            for _ in range(3)
        ]
        outbox.put(*made[:15])
        for thread in senders:
            thread.start()
        outbox.put(*made[15:])
        for thread in senders:
            thread.join()
        Sender(outbox, server.url).send(now=True)
    assert sorted(server.stored.values()) == sorted(map(bytes, made))
    assert not server.conflicts
    assert outbox.counts().accepted == 30


# --- addresses ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    ["", "collector.example", "ftp://collector.example", "https://", "https://u:p@c.example",
     "https://c.example/v1/reports", "https://c.example/?x=1", "https://c.example:99999",
     "https://c.example/a b", "https://ü.example", "http://[::1"],
)  # fmt: skip
def test_wrong_addresses_are_refused(outbox: Outbox, url: str) -> None:
    with pytest.raises(InputError, match="address must be"):
        Sender(outbox, url)


def test_wrong_settings_are_refused(outbox: Outbox) -> None:
    for wrong in ({"token": "a\r\nb"}, {"token": ""}, {"batch": 0}, {"spread": -1}, {"timeout": 0}):
        with pytest.raises(InputError):
            Sender(outbox, "http://127.0.0.1:9", **wrong)  # type: ignore[arg-type]


def test_an_address_may_have_a_path(outbox: Outbox) -> None:
    outbox.put(*reports(1))
    with Server() as server:
        Sender(outbox, server.url + "/deniable/").send()
    assert server.requests[0].line == "POST /deniable/v1/reports HTTP/1.1"


# --- fetching a survey --------------------------------------------------------------------------


def published(data: bytes = SURVEY.canonical + b"\n", status: str = "200 OK") -> Callable[..., Act]:
    return lambda n: Act(keep=False, answer=f"HTTP/1.1 {status}\r\n\r\n".encode() + data)


def test_fetch_a_survey() -> None:
    with Server(choose=published()) as server:
        address = server.url + "/v1/surveys/sent"
        assert fetch_survey(address) == SURVEY
        assert fetch_survey(address, digest=SURVEY.digest.hex()) == SURVEY
        assert fetch_survey(address, digest=SURVEY.digest) == SURVEY
        with pytest.raises(InputError, match="not the reviewed one"):
            fetch_survey(address, digest="00" * 16)
        with pytest.raises(InputError, match="32 hexadecimal digits"):
            fetch_survey(address, digest="abc")
    assert {r.line for r in server.requests} == {"GET /v1/surveys/sent HTTP/1.1"}
    assert {name for r in server.requests for name in r.headers} == {
        "Host", "User-Agent", "Connection", "Accept",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("choose", "error", "says"),
    [
        (published(status="404 Not Found"), TransferError, "replied 404 Not Found"),
        (published(SURVEY.canonical[:-1]), InputError, "not a published survey"),
        (published(SURVEY.canonical.replace(b",", b", ", 1)), InputError, "not in canonical form"),
        (published(b"x" * (1 << 21)), TransferError, "more than 1048576 bytes"),
        (script(faults.CUT_AT_ONCE), TransferError, "no response from 127.0.0.1"),
    ],
)
def test_anything_else_is_no_survey(
    choose: Callable[[int], Act], error: type[Exception], says: str
) -> None:
    with Server(choose=choose) as server, pytest.raises(error, match=says):
        fetch_survey(server.url)
