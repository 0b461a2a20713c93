"""Failures in docs/guarantees.md: the broker: away, frozen, or saying no."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from evictstream.streams.broker.embedded import EmbeddedBroker
from evictstream.streams.settings import Settings
from tests.guarantees.conftest import OpenReader, StartWorker, own_settings
from tests.harness.feed import Feed, taint, tolerates
from tests.harness.fleet_feed import FleetFeed
from tests.harness.reading import TopicReader, commands, instant
from tests.harness.topics import alter_topics
from tests.harness.workers import WorkerProcess

PODS = 40
DOWN_SECONDS = 12.0


@pytest.fixture
def own_service(own_broker: EmbeddedBroker) -> Settings:
    """Settings on a broker that the test may kill, topics declared."""
    return own_settings(own_broker.bootstrap_servers)


@pytest.mark.parametrize("fault", ["killed", pytest.param("frozen", marks=pytest.mark.kit)])
def test_a_broker_outage_loses_and_repeats_no_eviction(
    own_broker: EmbeddedBroker, own_service: Settings, tmp_path: Path, fault: str
) -> None:
    """Nothing acknowledged is lost, and what came due meanwhile is issued once when it is back."""
    with WorkerProcess(own_service, tmp_path) as worker, FleetFeed(own_service) as fleet:
        worker.wait_ready()
        reader = TopicReader(own_service, own_service.commands_topic)
        for n in range(4):
            fleet.of(n).node(f"n{n}")
            for p in range(PODS):
                fleet.of(n).pod(f"n{n}", f"p{n}-{p}", tolerates(6 + p % 20))
        for n in range(4):
            fleet.of(n).node(f"n{n}", taint())
        fleet.flush()
        seen = reader.wait_for(lambda seen: len(commands(seen, "Schedule")) == 4 * PODS, "all schedules")
        deadlines = {pod: instant(found[0].value["deadline"]) for pod, found in commands(seen, "Schedule").items()}
        reader.wait_for(lambda seen: len(commands(seen, "Evict")) > 4, "first evictions")
        if fault == "killed":
            own_broker.kill()
        else:
            own_broker.pause()
        time.sleep(DOWN_SECONDS)  # the fault itself
        if fault == "killed":
            own_broker.start()
        else:
            own_broker.resume()
        fleet.of(0).node("n0")  # a recovery that comes as soon as the broker is back
        fleet.flush()
        seen = reader.wait_for(
            lambda seen: len(commands(seen, "Evict").keys() | commands(seen, "Cancel").keys()) == 4 * PODS,
            "every eviction issued or cancelled",
            seconds=90,
        )
        seen = reader.quiet(3.0)
        for pod, found in commands(seen, "Evict").items():
            assert len(found) == 1, f"{pod} was issued {len(found)} times"
            assert found[0].appended_at >= deadlines[pod] - 0.001
        reader.close()
        assert worker.stop() == 0


@pytest.mark.kit
def test_partitions_lost_all_at_once_are_taken_over_again(
    own_broker: EmbeddedBroker, own_service: Settings, tmp_path: Path
) -> None:
    """Transactions run out everywhere while the group still counts us in: all is taken over again, nothing lost."""
    patient = {"session_timeout_seconds": 30.0, "lease_margin_seconds": 5.0, "transaction_timeout_seconds": 3.0}
    service = own_service.model_copy(update=patient)
    with WorkerProcess(service, tmp_path) as worker, FleetFeed(service) as fleet:
        worker.wait_ready()
        reader = TopicReader(service, service.commands_topic)
        for n in range(8):
            fleet.of(n).node(f"n{n}", taint())
            for p in range(PODS):
                fleet.of(n).pod(f"n{n}", f"p{n}-{p}", tolerates(5 + p % 10))
        fleet.flush()
        reader.wait_for(lambda seen: len(commands(seen, "Evict")) > 8, "first evictions")
        own_broker.pause()
        time.sleep(8)  # the fault itself: longer than a transaction may last, shorter than a session
        own_broker.resume()
        reader.wait_for(lambda seen: len(commands(seen, "Evict")) == 8 * PODS, "all evictions", seconds=60)
        seen = reader.quiet(2.0)
        twice = {pod: found for pod, found in commands(seen, "Evict").items() if len(found) > 1}
        assert not twice, "\n".join(
            f"{each.place} {each.appended_at} {each.value}" for found in twice.values() for each in found
        )
        assert worker.events("partition lost, will be taken over again"), "the fault did not hit a transaction"
        reader.close()
        assert worker.stop() == 0


def test_sigterm_without_a_broker_ends_within_the_grace_time(
    own_broker: EmbeddedBroker, own_service: Settings, tmp_path: Path
) -> None:
    """It ends within its grace time, says so if it could not leave the group, and never hangs."""
    with WorkerProcess(own_service, tmp_path) as worker:
        worker.wait_ready()
        own_broker.kill()
        worker.process.terminate()
        code = worker.wait_exit(30)
        last_line = worker.log_file.read_text().strip().splitlines()[-1]
        assert (code, "without leaving the group" in last_line) in {(0, False), (1, True)}


def test_a_refused_write_stops_the_worker_and_loses_nothing(
    service: Settings, feed: Feed, start_worker: StartWorker, reader: OpenReader
) -> None:
    """The process stops with a clear error and nothing is passed over: with the refusal gone, all comes out."""
    worker = start_worker(service).wait_ready()
    feed.node("n0")
    feed.pod("n0", "a", tolerates(2))
    feed.flush()
    alter_topics(service, {service.decisions_topic: {"max.message.bytes": "100"}})
    feed.node("n0", taint())
    feed.flush()
    assert worker.wait_exit() == 1
    last_line = worker.log_file.read_text().strip().splitlines()[-1]
    assert "refuses" in last_line
    assert "max.message.bytes" in last_line
    read = reader(service.commands_topic)
    assert not read.quiet(1.0), "a command became visible although its decision record was refused"
    assert start_worker(service).wait_exit() == 1, "who starts meanwhile does not take good records for undecidable"
    assert not reader(service.dead_letters_topic).quiet(1.0)
    alter_topics(service, {service.decisions_topic: {"max.message.bytes": str(service.max_message_bytes)}})
    again = start_worker(service).wait_ready()
    read.wait_for(lambda seen: len(commands(seen, "Evict").get("a", ())) == 1, "the eviction")
    assert again.stop() == 0


def test_a_crash_ends_the_worker_though_stopping_fails(service: Settings, tmp_path: Path) -> None:
    """It ends with what it crashed of and that exit code, though Faust's thread is gone and nothing can be stopped."""
    with WorkerProcess(service, tmp_path, program=("tests.harness.altered_worker", "crashing")) as worker:
        assert worker.wait_exit(60) == 1
        assert "refuses" in worker.log_file.read_text().strip().splitlines()[-1]
