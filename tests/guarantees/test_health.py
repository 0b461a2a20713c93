"""A worker that is stuck does not look healthy: it says what it waits for, and ends (docs/operations.md)."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from evictstream.streams.broker.embedded import EmbeddedBroker
from evictstream.streams.errors import ExitCode
from evictstream.streams.settings import Settings
from tests.guarantees.conftest import OpenReader, StartWorker, own_settings
from tests.harness.endpoint import Answer, Probe
from tests.harness.feed import Feed, taint, tolerates
from tests.harness.reading import commands
from tests.harness.workers import WorkerProcess

STUCK_WORKER = ("tests.harness.blocked_worker",)
STALL_SECONDS = 3.0
SILENCE_SECONDS = 12.0


def is_ready(answer: Answer) -> bool:
    return answer.status == 200


def is_stuck(answer: Answer) -> bool:
    return answer.status == 503


def test_a_working_worker_serves_health_and_metrics(
    service: Settings, feed: Feed, start_worker: StartWorker, reader: OpenReader
) -> None:
    worker = start_worker(service)
    probe = Probe(worker)
    ready = probe.wait_for("/readyz", is_ready, 40)
    assert ready.body == {"status": "ready", "partitions": [0, 1], "reasons": []}
    live = probe.ask("/livez")
    assert (live.status, live.body["status"]) == (200, "ok")
    assert set(live.body["agesSeconds"]) == {
        "loop", "timers", "changelog", "commit", "input", "ownership", "fetch", "heartbeat",
    }  # fmt: skip
    assert max(live.body["agesSeconds"].values()) < 5
    feed.node("n0", taint())
    feed.pod("n0", "a")  # tolerates nothing
    feed.pod("n0", "b", tolerates(3600))
    feed.raw(service.pods_topic, b"lab", b"no event")
    feed.flush()
    read = reader(service.commands_topic)
    read.wait_for(lambda seen: "a" in commands(seen, "Evict"), "the eviction")
    feed.pod("n0", "a", event_type="DELETED")
    feed.flush()
    reader(service.decisions_topic).wait_for(
        lambda seen: any(one.value.get("decision") == "Completed" for one in seen), "the end of it"
    )
    probe.wait_for("/readyz", is_ready, 10)
    seen = probe.metrics()
    assert seen["evictstream_events_total", "pods", "changed"] == 3
    assert seen["evictstream_events_total", "pods", "dead-letter"] == 1
    assert seen["evictstream_dead_letters_total", "BadJson"] == 1
    assert seen["evictstream_commands_total", "Evict"] == 1
    assert seen["evictstream_commands_total", "Schedule"] == 1
    assert seen["evictstream_decisions_total", "Completed", "PodGone"] == 1
    assert seen["evictstream_partitions_owned",] == 2
    assert seen["evictstream_lag_seconds", "pods", "0"] == 0
    assert seen["evictstream_worker_wait_limit_seconds", "fetch"] == 300
    assert seen["evictstream_eviction_lateness_seconds_count",] == 1
    assert seen["evictstream_transaction_duration_seconds_count",] >= 2
    assert seen["taint_eviction_controller_pod_deletions_total",] == 1
    assert 0 <= seen["taint_eviction_controller_pod_deletion_duration_seconds_sum",] < 60
    assert worker.stop() == 0


def test_a_blocked_event_loop_is_reported_and_ends_the_worker(service: Settings, tmp_path: Path) -> None:
    """Nothing on the loop runs any more; the worker still answers, says so, and ends."""
    settings = service.model_copy(update={"stall_limit_seconds": STALL_SECONDS})
    with WorkerProcess(settings, tmp_path, program=STUCK_WORKER) as worker:
        probe = Probe(worker)
        probe.wait_for("/readyz", is_ready, 40)
        worker.process.send_signal(signal.SIGUSR1)
        answer = probe.wait_for("/livez", is_stuck, STALL_SECONDS + 5)
        assert answer.body["stuck"] == "loop"
        assert answer.body["limitSeconds"] == STALL_SECONDS
        assert answer.body["ageSeconds"] > STALL_SECONDS
        assert worker.wait_exit(10) == ExitCode.FOUND_PROBLEM
        (said,) = worker.events("worker is stuck")
        assert (said["wait"], said["limit_seconds"]) == ("loop", STALL_SECONDS)


def test_a_silent_broker_ends_the_worker_after_the_limit(own_broker: EmbeddedBroker, tmp_path: Path) -> None:
    """For a while it is only not ready; beyond the limit it ends and says what it waited for."""
    settings = own_settings(
        own_broker.bootstrap_servers,
        transaction_timeout_seconds=5.0,
        takeover_timeout_seconds=5.0,
        broker_silence_limit_seconds=SILENCE_SECONDS,
        lease_margin_seconds=3.0,  # it ends before Kafka counts as away, after five seconds
    )
    with WorkerProcess(settings, tmp_path) as worker:
        probe = Probe(worker)
        probe.wait_for("/readyz", is_ready, 40)
        own_broker.pause()
        try:
            waiting = probe.wait_for("/readyz", lambda answer: not is_ready(answer), SILENCE_SECONDS)
            # Whichever notices first: the lease, or the views of brakes and policies, which may be three seconds old.
            assert {reason["gate"] for reason in waiting.body["reasons"]} <= {"owner", "brakes", "policies"}
            assert probe.ask("/livez").status == 200, "an outage is waited for"
            answer = probe.wait_for("/livez", is_stuck, SILENCE_SECONDS + 5)
            assert answer.body["stuck"] in {"fetch", "heartbeat"}
            assert answer.body["limitSeconds"] == SILENCE_SECONDS
            assert worker.wait_exit(10) == ExitCode.FOUND_PROBLEM
            (said,) = worker.events("worker is stuck")
            assert said["wait"] == answer.body["stuck"]
        finally:
            own_broker.resume()


@pytest.mark.parametrize("how", ["log", "interpreter"])
@pytest.mark.slow
def test_a_hung_log_or_interpreter_ends_the_worker(how: str) -> None:
    """Also when nobody reads its log, or a call never gives the interpreter back."""
    command = [sys.executable, "-m", "tests.harness.hung_process", how]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        try:
            assert process.wait(20) == ExitCode.FOUND_PROBLEM
        finally:
            process.kill()
