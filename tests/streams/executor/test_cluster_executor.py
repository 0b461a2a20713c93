"""What is put off for too long is failed, and nothing begins without permission."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from evictstream.models.execution.command_log import CommandAnswer
from evictstream.models.execution.concurrency import FIRST_AT_ONCE
from evictstream.models.execution.work_queue import QueuedEviction
from evictstream.models.messages.command import EvictionCommand
from evictstream.models.messages.vocabulary import Outcome
from evictstream.streams.executor import cluster_executor
from evictstream.streams.executor.cluster_executor import OPEN_REQUEST_SECONDS, WAIT_SECONDS, ClusterExecutor
from evictstream.streams.executor.command_consumer import STALL_SECONDS
from evictstream.streams.executor.eviction import ExecutorMode, PutOff
from evictstream.streams.member_beats import BEAT_SECONDS, NO_BEAT_SECONDS, UNSURE_SECONDS
from tests.models.execution.samples import command
from tests.streams.executor.braking import SetBrakes

PATIENCE_SECONDS = 20.0
AN_HOUR = 3_600.0


class HinderedEvictor:
    """Can do nothing now."""

    mode = ExecutorMode.DELETE

    def __init__(self) -> None:
        self.tries: queue.SimpleQueue[int] = queue.SimpleQueue()

    def evict(self, _command: EvictionCommand, tries: int, _seen_at: float) -> PutOff:
        self.tries.put(tries)
        return PutOff(seconds=0.01, reason="nobody answers", is_of_cluster=True)


class HandedClock:
    """The module's `time`, whose monotonic clock the test moves on."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def monotonic(self) -> float:
        return time.monotonic() + self.ahead


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> HandedClock:
    found = HandedClock()
    monkeypatch.setattr(cluster_executor, "time", found)
    return found


@pytest.fixture
def answers() -> queue.SimpleQueue[CommandAnswer]:
    return queue.SimpleQueue()


@pytest.fixture
def brakes() -> SetBrakes:
    return SetBrakes()


@pytest.fixture
def make(answers: queue.SimpleQueue[CommandAnswer], brakes: SetBrakes) -> Iterator[Callable[[Any], ClusterExecutor]]:
    made: list[ClusterExecutor] = []

    def start(evictor: Any) -> ClusterExecutor:
        made.append(
            ClusterExecutor(
                "c1",
                evictor,
                brakes=brakes.of_cluster(),
                rate=1_000,
                burst=1_000,
                respond=lambda _, answer: answers.put(answer),
            )
        )
        return made[-1]

    yield start
    for one in made:
        one.stop()
        one.join(PATIENCE_SECONDS)


def put(executor: ClusterExecutor, now: float, **changes: Any) -> None:
    executor.put(QueuedEviction(command=command(**changes), reading=1, offset=0, queued_at=now, seen_at=now))


def test_what_no_server_answers_for_ten_minutes_is_failed(
    clock: HandedClock, answers: queue.SimpleQueue[CommandAnswer], make: Callable[[Any], ClusterExecutor]
) -> None:
    evictor = HinderedEvictor()
    executor = make(evictor)
    put(executor, clock.monotonic())
    executor.permit(clock.monotonic() + 2 * AN_HOUR)
    while evictor.tries.get(timeout=PATIENCE_SECONDS) < 3:
        assert answers.empty()
    clock.ahead = WAIT_SECONDS
    found = answers.get(timeout=PATIENCE_SECONDS)
    assert found == CommandAnswer(Outcome.FAILED, "nobody answers")
    assert len(executor) == 0


def test_nothing_begins_once_a_permission_has_ended(clock: HandedClock, make: Callable[[Any], ClusterExecutor]) -> None:
    evictor = HinderedEvictor()
    executor = make(evictor)
    executor.permit(clock.monotonic() + 10)
    clock.ahead = AN_HOUR  # frozen for so long
    put(executor, clock.monotonic())
    with pytest.raises(queue.Empty):
        evictor.tries.get(timeout=0.3)
    executor.permit(clock.monotonic() + 10)
    assert evictor.tries.get(timeout=PATIENCE_SECONDS) == 0


def test_nothing_begins_while_brakes_are_unknown(make: Callable[[Any], ClusterExecutor], brakes: SetBrakes) -> None:
    evictor = HinderedEvictor()
    executor = make(evictor)
    brakes.unknown = "brakes cannot be read"
    executor.permit(time.monotonic() + AN_HOUR)
    put(executor, time.monotonic())
    with pytest.raises(queue.Empty):
        evictor.tries.get(timeout=0.3)
    assert executor.hindrance == "brakes cannot be read"
    brakes.unknown = None
    assert evictor.tries.get(timeout=PATIENCE_SECONDS) == 0


class BlockedEvictor:
    """Holds what belongs to the namespace `slow`, and one pod of a node until all others of it are there."""

    mode = ExecutorMode.DELETE

    def __init__(self, at_once: int) -> None:
        self.together = threading.Barrier(at_once)
        self.slow: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.goes_on = threading.Event()

    def evict(self, command: EvictionCommand, _tries: int, _seen_at: float) -> CommandAnswer:
        if command.namespace == "slow":
            self.slow.put(command.pod)
            self.goes_on.wait(PATIENCE_SECONDS)
        else:
            self.together.wait(PATIENCE_SECONDS)
        return CommandAnswer(Outcome.SUCCEEDED, command.namespace)


def test_pods_of_a_node_run_at_once_beside_slow_ones(
    answers: queue.SimpleQueue[CommandAnswer], make: Callable[[Any], ClusterExecutor]
) -> None:
    # The slow namespace came first: it has three quarters of the places, and the next one three quarters of the rest.
    slow, at_once = FIRST_AT_ONCE * 3 // 4, FIRST_AT_ONCE * 3 // 16
    evictor = BlockedEvictor(at_once)
    executor = make(evictor)
    executor.permit(time.monotonic() + AN_HOUR)
    for number in range(FIRST_AT_ONCE):
        put(executor, time.monotonic(), pod=f"slow-{number}", namespace="slow")
    assert len({evictor.slow.get(timeout=PATIENCE_SECONDS) for _ in range(slow)}) == slow
    for number in range(at_once):
        put(executor, time.monotonic(), pod=f"quick-{number}", namespace="quick")
    found = [answers.get(timeout=PATIENCE_SECONDS).reason for _ in range(at_once)]
    evictor.goes_on.set()

    assert found == ["quick"] * at_once


def test_what_no_worker_comes_to_is_given_back(clock: HandedClock, make: Callable[[Any], ClusterExecutor]) -> None:
    executor = make(HinderedEvictor())  # without permission no worker begins
    put(executor, clock.monotonic())
    assert executor.expire(clock.monotonic()) == []
    clock.ahead = WAIT_SECONDS
    ((_, answer),) = executor.expire(clock.monotonic())

    assert answer.outcome is Outcome.FAILED
    assert len(executor) == 0


def test_threads_without_work_end_but_for_one(
    clock: HandedClock, answers: queue.SimpleQueue[CommandAnswer], make: Callable[[Any], ClusterExecutor]
) -> None:
    evictor = BlockedEvictor(3)
    executor = make(evictor)
    executor.permit(clock.monotonic() + 2 * AN_HOUR)
    for number in range(3):
        put(executor, clock.monotonic(), pod=f"p-{number}")
    for _ in range(3):
        answers.get(timeout=PATIENCE_SECONDS)
    clock.ahead = AN_HOUR
    until = time.monotonic() + PATIENCE_SECONDS
    while len(executor._threads) > 1 and time.monotonic() < until:
        executor.permit(clock.monotonic() + AN_HOUR)
        time.sleep(0.01)

    assert len(executor._threads) == 1
    assert executor.are_workers_alive()


def test_a_stall_shows_before_another_one_can_act() -> None:
    assert BEAT_SECONDS + UNSURE_SECONDS <= NO_BEAT_SECONDS < STALL_SECONDS


class RequestingEvictor:
    """Has made a request for each pod, which lasts."""

    mode = ExecutorMode.REQUEST

    def __init__(self) -> None:
        self.tries: queue.SimpleQueue[int] = queue.SimpleQueue()

    def evict(self, _command: EvictionCommand, tries: int, _seen_at: float) -> PutOff:
        self.tries.put(tries)
        return PutOff(seconds=2 * AN_HOUR, reason="EvictionRequest is open", is_open=True)


def test_an_open_request_is_accepted_and_waits_an_hour(
    clock: HandedClock, answers: queue.SimpleQueue[CommandAnswer], make: Callable[[Any], ClusterExecutor]
) -> None:
    evictor = RequestingEvictor()
    executor = make(evictor)
    put(executor, clock.monotonic())
    executor.permit(clock.monotonic() + 3 * AN_HOUR)
    assert answers.get(timeout=PATIENCE_SECONDS) == CommandAnswer(Outcome.ACCEPTED, "EvictionRequest is open")

    executor.wake(command().eviction_id)
    assert [evictor.tries.get(timeout=PATIENCE_SECONDS) for _ in range(2)] == [0, 1]
    assert answers.get(timeout=PATIENCE_SECONDS).outcome is Outcome.ACCEPTED
    assert executor.hindrance is None

    clock.ahead = WAIT_SECONDS + 1
    assert executor.expire(clock.monotonic()) == []
    assert executor.oldest_seconds(clock.monotonic()) == 0
    clock.ahead = OPEN_REQUEST_SECONDS + 1
    ((_, answer),) = executor.expire(clock.monotonic())
    assert answer.outcome is Outcome.FAILED
    assert "no newer command" in answer.reason
