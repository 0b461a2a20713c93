"""A broker that is gone is tried seldom, by all clients together; what goes and comes back is told once."""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest
import structlog
from structlog.testing import capture_logs
from structlog.typing import EventDict

from evictstream.streams.broker.embedded import EmbeddedBroker
from evictstream.streams.kafka_reach import AWAY_SECONDS, JITTER, LONGEST_PAUSE_SECONDS, SILENT_SECONDS, Reach
from tests.guarantees.conftest import own_settings
from tests.harness.workers import WorkerProcess


class Process:
    """What a process knows, at a time of the test's own; chance is always in the middle."""

    def __init__(self, chance: float = 0.5) -> None:
        self.at = 100.0
        self.reach = Reach(lambda: self.at, lambda: chance)

    def fail(self, address: str = "a:1", *, is_silent: bool = True) -> float:
        """Fail to connect, at once; gives how long to wait then."""
        self.reach.failed(address, self.at, is_silent=is_silent)
        return self.reach.pause_seconds(address)

    def outage(self, seconds: float, *addresses: str) -> None:
        """Try as often as is allowed."""
        until = self.at + seconds
        while self.at < until:
            self.at += min(self.fail(address) for address in addresses or ("a:1",))
        self.at = until


class Connection:
    """Something that a connection can be told from others by."""


@pytest.fixture
def told() -> Iterator[list[EventDict]]:
    structlog.reset_defaults()
    with capture_logs() as events:
        yield events


def test_pauses_double_from_50_ms_to_a_second() -> None:
    process = Process()
    pauses = []
    for _ in range(8):
        pauses.append(process.fail())
        process.at += pauses[-1]
    assert pauses == pytest.approx([0.05, 0.1, 0.2, 0.4, 0.8, 1, 1, 1])


@pytest.mark.parametrize(("chance", "pause"), [(0.0, 1 - JITTER), (0.5, 1.0), (1.0, 1 + JITTER)])
def test_pauses_differ_so_that_workers_come_back_apart(chance: float, pause: float) -> None:
    process = Process(chance)
    process.outage(60)
    process.at += 10
    assert process.fail() == pytest.approx(pause * LONGEST_PAUSE_SECONDS)


def test_clients_that_fail_together_count_as_one_failure() -> None:
    process = Process()
    for _ in range(50):
        process.fail()
    assert process.reach.pause_seconds("a:1") == pytest.approx(0.05)


def test_while_one_client_tries_again_the_others_wait() -> None:
    process = Process()
    process.outage(60)
    process.at += 2 * LONGEST_PAUSE_SECONDS
    assert process.reach.pause_seconds("a:1") == 0
    process.reach.trying("a:1")
    assert process.reach.pause_seconds("a:1") == pytest.approx(LONGEST_PAUSE_SECONDS)
    process.at += LONGEST_PAUSE_SECONDS
    assert process.reach.pause_seconds("a:1") == 0, "the one has had its time"
    process.reach.trying("b:1")
    assert process.reach.pause_seconds("b:1") == 0, "which never failed"


def test_the_first_that_gets_through_opens_the_way_for_all() -> None:
    process = Process()
    process.outage(60)
    process.reach.opened("a:1", Connection())
    assert process.reach.pause_seconds("a:1") == 0
    assert process.fail() == pytest.approx(0.05), "and the next outage begins anew"


def test_one_broker_that_is_gone_holds_no_other_one_up(told: list[EventDict]) -> None:
    process = Process()
    process.reach.opened("b:1", alive := Connection())
    process.outage(60)
    assert process.reach.pause_seconds("b:1") == 0
    assert told == [], f"{alive} is open still"


def test_kafkas_loss_and_return_are_each_logged_once(told: list[EventDict]) -> None:
    process = Process()
    connections = [Connection() for _ in range(20)]
    for connection in connections:
        process.reach.opened("a:1", connection)
    for connection in connections:
        process.reach.closed(connection)
    process.outage(20, "a:1", "b:1")
    for connection in connections:
        process.reach.opened("a:1", connection)
    away, back = told
    assert (away["event"], away["brokers"], away["log_level"]) == ("Kafka unavailable", ["a:1", "b:1"], "warning")
    assert (back["event"], back["away_seconds"], back["log_level"]) == ("Kafka available again", 20, "warning")


@pytest.mark.parametrize("seconds", [AWAY_SECONDS / 10, AWAY_SECONDS * 0.9])
def test_a_moment_without_connection_is_no_outage(seconds: float, told: list[EventDict]) -> None:
    process = Process()
    process.fail()
    process.at += seconds
    process.fail()
    process.reach.opened("b:1", Connection())
    assert told == []


def test_a_broker_that_refuses_us_is_not_away(told: list[EventDict]) -> None:
    process = Process()
    for _ in range(20):
        process.at += process.fail(is_silent=False)
    assert told == []
    assert process.reach.pause_seconds("a:1") >= 0


def test_a_broker_that_answers_nothing_is_away(told: list[EventDict]) -> None:
    """Its connections stand: it is frozen, or something drops what is sent."""
    process = Process()
    process.reach.opened("a:1", connection := Connection())
    process.reach.asked()
    process.reach.answered()
    process.at += 100
    assert process.reach.problem() is None, f"no request was sent; {connection} is open"
    process.reach.asked()
    process.at += SILENT_SECONDS - 0.1
    process.reach.asked()
    assert process.reach.problem() is None
    process.at += 0.1
    assert process.reach.problem() is not None
    process.reach.answered()
    assert process.reach.problem() is None
    assert [event["event"] for event in told] == ["Kafka unavailable", "Kafka available again"]
    assert told[-1]["away_seconds"] == SILENT_SECONDS


def test_a_process_that_stood_still_blames_nobody(told: list[EventDict]) -> None:
    """What Kafka has answered meanwhile it has not read yet."""
    process = Process()
    process.reach.look()
    process.reach.asked()
    process.at += 60
    assert process.reach.problem() is None
    for _ in range(4):
        process.reach.look()
        process.at += 1
    process.reach.answered()
    assert told == []


def test_libraries_have_nothing_to_add_while_kafka_is_away(
    told: list[EventDict], monkeypatch: pytest.MonkeyPatch
) -> None:
    process = Process()
    filtered = process.reach.hush

    def passes(name: str, level: int = logging.ERROR, exception: BaseException | None = None) -> bool:
        info = None if exception is None else (type(exception), exception, None)
        return filtered.filter(logging.LogRecord(name, level, "", 0, "no way", (), info))

    assert passes("aiokafka")
    process.outage(2)
    assert not passes("aiokafka")
    assert not passes("mode.timers")
    assert passes("evictstream.streams.worker"), "what we say"
    assert passes("faust.engine", exception=OSError()), "what tells of more"
    assert passes("faust.engine", logging.CRITICAL)
    process.reach.opened("a:1", Connection())
    assert told[-1]["lines_kept_back"] == 2
    assert not passes("aiokafka"), "of requests of before"
    monkeypatch.setattr(filtered, "_ends_at", 0.0)
    assert passes("aiokafka")


def test_libraries_are_silent_from_the_last_connections_end_on(
    told: list[EventDict], monkeypatch: pytest.MonkeyPatch
) -> None:
    process = Process()
    filtered = process.reach.hush
    monkeypatch.setattr(type(process.reach), "is_watched", True)

    def passes() -> bool:
        return filtered.filter(logging.LogRecord("aiokafka", logging.ERROR, "", 0, "no way", (), None))

    first, second = Connection(), Connection()
    process.reach.opened("a:1", first)
    process.reach.opened("a:1", second)
    process.reach.closed(first)
    assert passes()
    process.reach.closed(second)
    assert not passes()
    process.reach.opened("a:1", first)
    assert passes(), "it was a moment"
    assert told == []


class Door:
    """Stands at a broker's port while it is away: lets everybody in and throws them out, and counts."""

    def __init__(self, port: int) -> None:
        self.knocks = 0
        self._socket = socket.create_server(("127.0.0.1", port))
        self._thread = threading.Thread(target=self._serve)

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                self._socket.accept()[0].close()
                self.knocks += 1

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._socket.close()


AWAY_FOR_SECONDS = 6.0
KNOCKS_AT_FIRST = 8
"""While pauses double from 0.05 s: five, and more if several clients fail before the first has said so."""


def test_a_worker_without_brokers_connects_seldom_and_logs_little(own_broker: EmbeddedBroker, tmp_path: Path) -> None:
    """It was 50 connections a second, and four lines."""
    settings = own_settings(own_broker.bootstrap_servers, partitions=8)
    with WorkerProcess(settings, tmp_path) as worker:
        worker.wait_ready()
        own_broker.kill()
        gone_at = time.monotonic()
        before = len(worker.log())
        with Door(own_broker.nodes[0].address.client_port) as door:
            opened_at = time.monotonic()
            time.sleep(AWAY_FOR_SECONDS)  # the fault itself
        stood_seconds = time.monotonic() - opened_at  # on a busy machine longer
        own_broker.start()
        worker.wait_for(lambda: worker.events("Kafka available again"), "word that Kafka is back")
        away_at_most = time.monotonic() - gone_at + 1.0
        time.sleep(LONGEST_PAUSE_SECONDS)  # in which nothing more may be said of it
        assert worker.stop() == 0
    assert 4 <= door.knocks <= KNOCKS_AT_FIRST + 2 * stood_seconds, (door.knocks, stood_seconds)
    events = [str(entry["message"]) for entry in worker.log()[before:]]
    assert events.count("Kafka unavailable") == events.count("Kafka available again") == 1
    (back,) = worker.events("Kafka available again")
    assert AWAY_FOR_SECONDS - 1 < float(str(back["away_seconds"])) < away_at_most
    between = worker.log()[before:][events.index("Kafka unavailable") : events.index("Kafka available again")]
    assert [entry for entry in between if not str(entry["logger"]).startswith("evictstream.streams.")] == []
