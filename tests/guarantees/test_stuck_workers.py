"""Failures in docs/guarantees.md: workers that are ended: their peers go on without a wait."""

from __future__ import annotations

import signal
import time

import pytest

from evictstream.streams.errors import ExitCode
from evictstream.streams.settings import Settings
from evictstream.streams.worker.watchdog import LAST_WORDS_SECONDS
from tests.guarantees.conftest import OpenReader, StartWorker
from tests.harness.endpoint import Probe
from tests.harness.ends import group_members
from tests.harness.feed import taint, tolerates
from tests.harness.fleet_feed import FleetFeed
from tests.harness.reading import Seen, commands, instant
from tests.harness.workers import WorkerProcess

STUCK_WORKER = ("tests.harness.blocked_worker",)
PODS = 28
SPACING_SECONDS = 0.5  # one pod of each partition is due as often
LATEST_SECONDS = 5.0  # a member hears of a rebalance within a heartbeat of 0.5 s, and takes over as soon


def _fill(service: Settings, fleet: FleetFeed, first_after_seconds: float) -> None:
    """Taint a node of each partition; one pod of each is due every SPACING_SECONDS, to whole seconds."""
    for n in range(service.partitions):
        fleet.of(n).node(f"n{n}", taint())
        for p in range(PODS):
            fleet.of(n).pod(f"n{n}", f"n{n}-{p}", tolerates(int(first_after_seconds + p * SPACING_SECONDS)))
    fleet.flush()


def _latenesses(seen: list[Seen]) -> dict[float, float]:
    """Give by deadline (seconds since 1970) by how much the latest eviction came after it."""
    found: dict[float, float] = {}
    for (record,) in commands(seen, "Evict").values():  # each exactly once
        due_at = instant(record.value["deadline"])
        found[due_at] = max(found.get(due_at, 0.0), record.appended_at - due_at)
    return found


def _all_evicted(seen: list[Seen]) -> bool:
    return len(commands(seen, "Evict")) == len(commands(seen, "Schedule")) > PODS


def _takeovers(worker: WorkerProcess) -> int:
    return len(worker.events("partitions taken over"))


def _is_shared(probes: list[Probe]) -> bool:
    answers = [probe.ask("/readyz") for probe in probes]
    return all(answer.status == 200 and len(answer.body["partitions"]) == 1 for answer in answers)


def _wait_shared(first: WorkerProcess, second: WorkerProcess) -> None:
    probes = [Probe(first), Probe(second)]
    first.wait_for(lambda: _is_shared(probes), "share of each")


@pytest.mark.parametrize("instance_id", [None, pytest.param("static", marks=pytest.mark.kit)])
def test_stuck_worker_leaves_the_group_before_it_ends(
    instance_id: str | None, service: Settings, fleet: FleetFeed, start_worker: StartWorker, reader: OpenReader
) -> None:
    """Its peer does not wait until the session of the dead one has timed out, which takes a minute and a half here."""
    limit, session = 4.0, 90.0
    patient = service.model_copy(update={"session_timeout_seconds": session, "stall_limit_seconds": limit})
    stuck = start_worker(patient.model_copy(update={"group_instance_id": instance_id}), "stuck", STUCK_WORKER)
    peer = start_worker(patient, "peer")
    _wait_shared(stuck, peer)
    takeovers = _takeovers(stuck)
    _fill(service, fleet, first_after_seconds=2)
    read = reader(service.commands_topic)
    read.wait_for(lambda seen: len(commands(seen, "Schedule")) == service.partitions * PODS, "all schedules")
    stuck.process.send_signal(signal.SIGUSR1)
    assert stuck.wait_exit(limit + LAST_WORDS_SECONDS + 10) == ExitCode.FOUND_PROBLEM
    ended_at = time.time()
    latenesses = _latenesses(read.wait_for(_all_evicted, "all evictions", seconds=session / 2))
    assert max(late for due_at, late in latenesses.items() if due_at > ended_at) < LATEST_SECONDS
    assert _takeovers(stuck) == takeovers
    assert peer.stop() == 0


def test_a_stuck_worker_without_a_peer_leaves_its_group(service: Settings, start_worker: StartWorker) -> None:
    """Nothing that runs could remove it: who starts next need not find out that it is gone."""
    patient = service.model_copy(update={"session_timeout_seconds": 90.0, "stall_limit_seconds": 2.0})
    stuck = start_worker(patient, "stuck", STUCK_WORKER).wait_ready()
    assert group_members(service, patient.group_id)
    stuck.process.send_signal(signal.SIGUSR1)
    assert stuck.wait_exit() == ExitCode.FOUND_PROBLEM
    assert not group_members(service, patient.group_id)


@pytest.mark.kit
def test_a_worker_frozen_beyond_the_stall_limit_rejoins(
    service: Settings, fleet: FleetFeed, start_worker: StartWorker, reader: OpenReader
) -> None:
    """It goes on as after a shorter pause; it is not ended with partitions that it has just taken from its peer.

    A machine that holds the test up as well may freeze it for so long that it ends at once: then it takes none.
    """
    limit = service.session_timeout_seconds
    quick = service.model_copy(update={"stall_limit_seconds": limit})
    frozen, peer = start_worker(quick, "frozen"), start_worker(quick, "peer")
    _wait_shared(frozen, peer)
    takeovers = _takeovers(frozen)
    _fill(service, fleet, first_after_seconds=limit)
    read = reader(service.commands_topic)
    read.wait_for(lambda seen: len(commands(seen, "Schedule")) == service.partitions * PODS, "all schedules")
    frozen.freeze()
    time.sleep(limit + 0.8)  # the fault itself; it is ended at once beyond the limit and the time for last words
    frozen.thaw()
    woke_at = time.time()
    latenesses = _latenesses(read.wait_for(_all_evicted, "all evictions", seconds=60))
    assert max(late for due_at, late in latenesses.items() if due_at > woke_at) < LATEST_SECONDS
    if frozen.process.poll() is None:
        _wait_shared(frozen, peer)
        assert frozen.stop() == 0
    else:
        assert _takeovers(frozen) == takeovers
    assert peer.stop() == 0
