"""Crash PostgreSQL and cut its connections under load: acknowledged uploads count once."""

from __future__ import annotations

import secrets
import threading
import time

import deniable.store
from deniable.errors import StoreUnavailable
from deniable.store import Outcome, Upload
from tests.postgres import Server
from tests.uploads import DAY, MARKS, kept, reports_of, upload


class Load(threading.Thread):
    """Append groups of uploads as a collector does, retry failed ones, and record the others."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.url, self.ends = url, threading.Event()
        self.acknowledged: list[Upload] = []
        self.wrong: list[BaseException] = []

    def run(self) -> None:
        try:
            with deniable.store.open(self.url) as store:
                while not self.ends.is_set():
                    group = [upload(1 + secrets.randbelow(20)) for _ in range(3)]
                    while True:
                        try:
                            assert Outcome.CONFLICT not in store.append(group)
                            break
                        except StoreUnavailable:
                            if self.ends.is_set():
                                raise  # the server is up again, so this one should be too
                    self.acknowledged += group
        except BaseException as error:
            self.wrong.append(error)


def check_restarts(server: Server, times: int) -> int:
    """Crash the server or cut its connections repeatedly; return the number of stored uploads."""
    server.wipe()
    with deniable.store.open(server.url, create=True) as store:
        store.add_survey(MARKS)
        loads = [Load(server.url) for _ in range(2)]
        for load in loads:
            load.start()
        try:
            for i in range(times):
                before = sum(len(load.acknowledged) for load in loads)
                while sum(len(load.acknowledged) for load in loads) == before:
                    assert not any(load.wrong for load in loads), loads
                    time.sleep(0.01)
                compactor = threading.Thread(target=compact, args=(server.url,))
                compactor.start()
                time.sleep(secrets.randbelow(100) / 1000)
                if i % 2:
                    server.kill_connections()
                else:
                    server.stop("immediate")
                    server.start()
                compactor.join()
        finally:
            for load in loads:
                load.ends.set()
            for load in loads:
                load.join()
        assert not any(load.wrong for load in loads), [load.wrong for load in loads]
        uploads = [u for load in loads for u in load.acknowledged]
        assert kept(store) == reports_of(uploads)
        assert store.check() == []
        store.compact(at_least=10, today=DAY)
        assert kept(store) == reports_of(uploads)
        assert set(store.append(uploads)) == {Outcome.REPEATED}
    return len(uploads)


def compact(url: str) -> None:
    try:
        with deniable.store.open(url) as store:
            store.compact(at_least=10, today=DAY)
    except StoreUnavailable:
        pass


def test_restarts_lose_and_double_nothing(postgres_server: Server) -> None:
    assert check_restarts(postgres_server, times=4) > 4
