"""Failures in docs/guarantees.md: workers that die, freeze or share work."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest
from kafka.admin import KafkaAdminClient

from evictstream.streams.member_beats import NO_BEAT_SECONDS
from evictstream.streams.settings import Settings
from tests.guarantees.conftest import OpenReader, StartWorker
from tests.harness.endpoint import Probe
from tests.harness.feed import Feed, taint, tolerates
from tests.harness.fleet_feed import FleetFeed
from tests.harness.reading import Seen, commands, instant, name_of
from tests.harness.workers import WorkerProcess

BUSY_WORKER = ("tests.harness.blocked_worker",)
NODES = 20
PODS = 60
WINDOW_SECONDS = 8
STEPS = 12  # deadlines are spread over that many seconds, so some fire before, during and after the fault


def _evicts(seen: list[Seen]) -> dict[str, list[Seen]]:
    return commands(seen, "Evict")


def _fill(fleet: FleetFeed) -> None:
    """NODES x PODS pods; those of odd number on each node leave, after WINDOW..WINDOW+STEPS seconds."""
    for n in range(NODES):
        fleet.of(n).node(f"n{n}")
        for p in range(PODS):
            fleet.of(n).pod(f"n{n}", f"p{n}-{p}", tolerates(WINDOW_SECONDS + p % STEPS))
    fleet.flush()
    for n in range(NODES):
        fleet.of(n).node(f"n{n}", taint())
    fleet.flush()


def test_a_killed_worker_loses_and_repeats_no_eviction(
    service: Settings, fleet: FleetFeed, start_worker: StartWorker, reader: OpenReader
) -> None:
    """1,200 deadlines pending, some firing, one of two workers killed: all owed are issued once, none early."""
    first, second = start_worker(service, "first"), start_worker(service, "second")
    first.wait_ready()
    second.wait_ready()
    read = reader(service.commands_topic)
    _fill(fleet)
    scheduled = commands(
        read.wait_for(lambda seen: len(commands(seen, "Schedule")) == NODES * PODS, "all schedules"), "Schedule"
    )
    deadlines = {pod: instant(found[-1].value["deadline"]) for pod, found in scheduled.items()}
    # Node 0 recovers before anything is due: its evictions have to be cancelled and never issued.
    fleet.of(0).node("n0")
    fleet.flush()
    read.wait_for(lambda seen: len(commands(seen, "Cancel")) == PODS, "cancels of node 0")
    read.wait_for(lambda seen: len(_evicts(seen)) > 100, "first evictions")
    first.kill()
    # While nobody owns its partitions more nodes recover, one in each partition.
    recovered = {f"n{n}": fleet.of(n) for n in range(1, 1 + service.partitions)}
    for node, feed in recovered.items():
        feed.node(node)
    fleet.flush()
    at_recovery = time.time()
    seen = read.wait_for(
        lambda seen: len(_evicts(seen)) + len(commands(seen, "Cancel").keys() - _evicts(seen).keys()) == NODES * PODS,
        "every eviction issued or cancelled",
        seconds=60,
    )
    seen = read.quiet(3.0)
    for pod, found in _evicts(seen).items():
        assert len(found) == 1, f"{pod} was issued {len(found)} times: {[f.value for f in found]}"
        assert found[0].appended_at >= deadlines[pod] - 0.001, f"{pod} was issued early"
        assert instant(found[0].value["deadline"]) == deadlines[pod], f"the deadline of {pod} moved"
        assert not pod.startswith("p0-"), f"{pod} was issued although its taint was gone"
        if found[0].value["node"] in recovered:
            assert found[0].appended_at < at_recovery + 1, f"{pod} was issued after its taint was gone"
    assert len(commands(seen, "Schedule")) == NODES * PODS
    ids = [name_of(record) for record in seen]
    assert len(ids) == len(set(ids)), "a read_committed reader saw a command twice"
    assert second.stop() == 0


@pytest.mark.kit
def test_timers_due_in_a_rebalance_fire_once(
    service: Settings, fleet: FleetFeed, start_worker: StartWorker, reader: OpenReader
) -> None:
    """Joins and leaves while deadlines fire: each fires at exactly one owner, once."""
    first = start_worker(service, "first").wait_ready()
    read = reader(service.commands_topic)
    _fill(fleet)
    read.wait_for(lambda seen: len(commands(seen, "Schedule")) == NODES * PODS, "all schedules")
    read.wait_for(lambda seen: len(_evicts(seen)) > 50, "first evictions")
    second = start_worker(service, "second").wait_ready()
    third = start_worker(service, "third")
    read.wait_for(lambda seen: len(_evicts(seen)) > 400, "more evictions")
    assert first.stop() == 0
    seen = read.wait_for(lambda seen: len(_evicts(seen)) == NODES * PODS, "all evictions", seconds=60)
    seen = read.quiet(2.0)
    assert {len(found) for found in _evicts(seen).values()} == {1}
    third.wait_ready()  # it has a share since the first has left
    assert second.stop() == 0
    assert third.stop() == 0


def test_a_worker_paused_beyond_its_session_fires_nothing_and_rejoins(
    service: Settings, fleet: FleetFeed, start_worker: StartWorker, reader: OpenReader
) -> None:
    """It fires nothing when it wakes up, and the broker refuses what it still wanted to write."""
    frozen, other = start_worker(service, "frozen"), start_worker(service, "other")
    frozen.wait_ready()
    other.wait_ready()
    read = reader(service.commands_topic)
    _fill(fleet)
    read.wait_for(lambda seen: len(commands(seen, "Schedule")) == NODES * PODS, "all schedules")
    frozen.freeze()
    time.sleep(service.session_timeout_seconds + 2)  # the fault itself: a worker that stands still that long
    fleet.of(3).node("n3")  # a recovery that the frozen worker has not seen
    fleet.flush()
    read.wait_for(lambda seen: len(commands(seen, "Cancel")) > 0, "cancels by the other worker")
    frozen.thaw()
    seen = read.wait_for(
        lambda seen: len(_evicts(seen)) + len(commands(seen, "Cancel").keys() - _evicts(seen).keys()) == NODES * PODS,
        "every eviction issued or cancelled",
        seconds=60,
    )
    seen = read.quiet(3.0)
    cancelled_at = {pod: found[0].appended_at for pod, found in commands(seen, "Cancel").items()}
    for pod, found in _evicts(seen).items():
        assert len(found) == 1
        assert found[0].appended_at <= cancelled_at.get(pod, float("inf")), f"{pod} was issued after its cancel"
    assert frozen.process.poll() is None, "it joined again instead of dying"
    assert frozen.stop() == 0
    assert other.stop() == 0


def test_sigterm_before_the_first_take_over_ends_within_seconds(service: Settings, start_worker: StartWorker) -> None:
    """A worker that still waits for its first partitions ends when it is told to (seed 114 on real Kafka).

    The one that it waits for is busy, not silent, so it is not removed either.
    """
    busy = start_worker(service, "busy", BUSY_WORKER).wait_ready()
    busy.process.send_signal(signal.SIGUSR1)  # the group now waits for it, for as long as a rebalance may last
    late = start_worker(service, "late")
    admin = KafkaAdminClient(bootstrap_servers=service.bootstrap_servers)
    late.wait_for(
        lambda: admin.describe_groups([service.group_id])[service.group_id]["group_state"] != "Stable", "a new member"
    )
    admin.close()
    time.sleep(2 * NO_BEAT_SECONDS)  # in which it would remove a silent one, and have partitions
    late.process.terminate()
    assert late.wait_exit(15) == 1  # the grace time of a worker that has partitions is 25 s
    assert "without leaving the group" in late.log_file.read_text().strip().splitlines()[-1]


def test_sigterm_right_after_the_first_take_over_leaves_the_group(service: Settings, tmp_path: Path) -> None:
    """A worker with partitions stops in order, though its start has not returned yet."""
    with WorkerProcess(service, tmp_path, program=("tests.harness.altered_worker", "starting")) as worker:
        worker.wait_ready()
        assert worker.stop() == 0
    admin = KafkaAdminClient(bootstrap_servers=service.bootstrap_servers)
    assert not admin.describe_groups([service.group_id])[service.group_id]["members"]
    admin.close()


def test_owed_evictions_count_until_an_executor_answers(
    service: Settings, feed: Feed, start_worker: StartWorker, reader: OpenReader
) -> None:
    worker = start_worker(service.model_copy(update={"result_silence_seconds": 0.5})).wait_ready()
    feed.node("n0", taint())
    feed.pod("n0", "a")
    feed.flush()
    probe = Probe(worker)

    def owed() -> tuple[float, float]:
        names = ("evictstream_evictions_unanswered", "evictstream_evictions_unanswered_oldest_seconds")
        found = probe.metrics()
        return found.get((names[0], feed.cluster), 0), found.get((names[1], feed.cluster), 0)

    worker.wait_for(lambda: owed()[0] == 1 and owed()[1] > 2, "an eviction that is unanswered over its repeats")
    read = reader(service.commands_topic)
    latest = read.wait_for(lambda seen: len(_evicts(seen).get("a", ())) >= 2, "a repeat")
    feed.result(_evicts(latest)["a"][-1].value, "Accepted", "")
    worker.wait_for(lambda: owed() == (0, 0), "an answered eviction")
    assert worker.stop() == 0


def test_owed_evictions_are_repeated_while_the_executor_is_down(
    service: Settings, feed: Feed, start_worker: StartWorker, reader: OpenReader
) -> None:
    """Commands stay on the topic; owed evictions are repeated with backoff until the pod is gone."""
    silence = 2.0
    impatient = service.model_copy(update={"result_silence_seconds": silence, "retry_base_seconds": 0.5})
    worker = start_worker(impatient).wait_ready()
    read = reader(service.commands_topic)
    feed.node("n0", taint())
    feed.pod("n0", "a", tolerates(1))
    feed.flush()
    seen = read.wait_for(lambda seen: len(_evicts(seen).get("a", ())) >= 2, "a repeat after silence")
    feed.result(_evicts(seen)["a"][-1].value, "Failed", "the webhook is down")
    seen = read.wait_for(lambda seen: len(_evicts(seen)["a"]) >= 3, "a repeat after a failure")
    found = _evicts(seen)["a"]
    assert [record.value["attempt"] for record in found[:3]] == [1, 2, 3]
    assert len({record.value["evictionId"] for record in found}) == 1
    assert found[1].appended_at - found[0].appended_at >= 0.75 * silence  # the jitter takes off at most a quarter
    feed.pod("n0", "a", tolerates(1), event_type="DELETED")
    feed.flush()
    count = len(_evicts(read.quiet(1.0))["a"])
    assert len(_evicts(read.quiet(3 * silence))["a"]) == count, "repeated although the pod is gone"
    assert not commands(read.seen, "Cancel"), "a pod that is gone after its eviction is success, not a cancel"
    assert worker.stop() == 0
