"""Requests in random orders of commands, restarts and strangers' deeds: no pod leaves that should stay, none is left.

All of the executor but Kafka: commands are a list, and what has no answer is read again after each restart.
"""

from __future__ import annotations

import random
import threading
import time
import uuid
from collections import Counter, defaultdict, deque
from typing import Any

import pytest
from kafka import TopicPartition

from evictstream.kit.conformance.fake_api import FakeApi
from evictstream.kit.conformance.fake_faults import Fault
from evictstream.models.execution.command_log import CommandAnswer, CommandLog
from evictstream.models.execution.work_queue import QueuedEviction
from evictstream.models.messages.executor_report import is_report
from evictstream.models.messages.result import decode_result
from evictstream.models.messages.vocabulary import Action, Outcome
from evictstream.streams.broker.group_commits import GroupCommits
from evictstream.streams.deed_log import DeedLog
from evictstream.streams.executor import open_requests
from evictstream.streams.executor.answered_offsets import AnsweredOffsets
from evictstream.streams.executor.cluster_executor import ClusterExecutor
from evictstream.streams.executor.command_answers import CommandAnswers
from evictstream.streams.executor.commands_partition import CommandsPartition
from evictstream.streams.executor.eviction import ExecutorMode, PodEvictor
from evictstream.streams.executor.node_looks import NodeLooks
from evictstream.streams.executor.open_requests import OpenRequests
from evictstream.streams.executor.pod_requests import PodRequests
from evictstream.streams.executor.request_calls import RequestCalls
from evictstream.streams.executor.request_keeper import KEEPERS, RequestKeeper
from evictstream.streams.executor.results import ResultWriter
from evictstream.streams.kubernetes.access import ClusterAccess
from evictstream.streams.kubernetes.connection import Connection
from tests.streams.executor.braking import unbraked
from tests.streams.executor.conftest import command_now
from tests.streams.executor.test_results import FakeProducer

pytestmark = pytest.mark.slow

PODS = [f"p-{number}" for number in range(30)]
STEPS = 120
STEP_SECONDS = 0.02
WITHDRAWN_WITHIN_SECONDS = 3.0
PATIENCE_SECONDS = 30.0


def uid_of(pod: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_OID, pod))


class Life:
    """One executor, from its start until it is killed: its threads go on for a moment, but may write nothing more."""

    def __init__(self, access: ClusterAccess, reading: int, committed: tuple[int, str]) -> None:
        self.producer = FakeProducer()
        self.committed = committed
        self.results: list[Any] = []
        self._connection = Connection(access)
        calls = PodRequests(self._connection)
        self.requests = OpenRequests("c1", RequestCalls(self._connection, "c1"))
        evictor: Any = PodEvictor(
            requests=calls,
            looks=NodeLooks(calls, lists=True),
            mode=ExecutorMode.REQUEST,
            brakes=unbraked(),
            open_requests=self.requests,
        )
        outcomes: deque[tuple[QueuedEviction, CommandAnswer]] = deque()
        self.cluster = ClusterExecutor(
            "c1",
            evictor,
            brakes=unbraked(),
            rate=1_000,
            burst=1_000,
            respond=lambda eviction, answer: outcomes.append((eviction, answer)),
        )
        self.requests.wake = self.cluster.wake
        consumer: Any = None
        self.answers = CommandAnswers(
            cluster=self.cluster,
            command_log=CommandLog(oldest_seconds=3_600.0),
            results=ResultWriter(self.producer, "results"),
            commits=GroupCommits(consumer, consumer),
            outcomes=outcomes,
            notify=lambda *_: None,
            deeds=DeedLog(100),
            requests=self.requests,
        )
        answered = AnsweredOffsets(*committed)
        place = TopicPartition("commands", 0)
        self.partition = CommandsPartition(
            place, reading=reading, start=committed[0], answered=answered, end=0, now=time.monotonic()
        )
        self.answers.partition = self.partition
        self._keepers = [RequestKeeper("c1", self.requests, self.cluster, number=number) for number in range(KEEPERS)]
        for thread in (self.requests.watch, *self._keepers):
            thread.start()

    def turn(self, log: list[Any]) -> None:
        """Read what is new, and do what the consumer's thread does."""
        now = time.monotonic()
        self.cluster.permit(now + 1.0)
        while self.partition.position < len(log):
            offset = self.partition.position
            self.partition.note_read(offset)
            if offset in self.partition.answered:
                self.answers.note_answered(log[offset], self.partition)
            else:
                self.answers.take(log[offset], self.partition, offset, now)
        self.answers.sweep(now)
        self.answers.send()
        for sent in self.producer.sent:
            sent.confirm()
        self.producer.sent.clear()
        self.results += [decode_result(value) for value in self.producer.values if not is_report(value)]
        self.producer.values.clear()
        self.answers.send()
        self.committed = self.partition.to_commit()

    def kill(self) -> tuple[int, str]:
        self.cluster.stop()
        self.requests.watch.stop()
        for keeper in self._keepers:
            keeper.stop()
        self._connection.close()
        return self.committed


class Responder(threading.Thread):
    """Sees each generation of each request, and evicts the pods of some that are wanted."""

    def __init__(self, api: FakeApi, seed: int) -> None:
        super().__init__(daemon=True)
        self.evicted_at: dict[str, float] = {}
        self.chance = 0.02
        self._api = api
        self._random = random.Random(seed)  # noqa: S311 - no secret
        self._stopped = threading.Event()

    def stop(self) -> None:
        self._stopped.set()
        self.join()

    def run(self) -> None:
        while not self._stopped.wait(STEP_SECONDS):
            with self._api.changing():
                for (kind, name), request in list(self._api.objects.items()):
                    if kind == "EvictionRequest":
                        self._see(name, request)

    def _see(self, name: str, request: Any) -> None:
        generation = request["metadata"]["generation"]
        if request["status"].get("observedGeneration") != generation:
            self._api.put("EvictionRequest", name, status={"observedGeneration": generation})
        pod = request["spec"]["target"]["pod"]["name"]
        is_wanted = request["spec"]["intent"] == "Eviction" and ("Pod", pod) in self._api.objects
        if is_wanted and self._random.random() < self.chance:
            self._api.remove("Pod", pod)
            self.evicted_at[pod] = time.monotonic()


class Disorder:
    """Commands, restarts, and what strangers do to requests and connections, by one seed."""

    def __init__(self, api: FakeApi, access: ClusterAccess, seed: int) -> None:
        self.attempts: Counter[str] = Counter()
        self.cancelled_at: dict[str, float] = {}
        self.answers: dict[str, list[Outcome]] = defaultdict(list)
        self._log: list[Any] = []
        self._api = api
        self._access = access
        self._random = random.Random(seed)  # noqa: S311 - no secret
        self._life = Life(access, 0, (0, ""))

    @property
    def wanted(self) -> list[str]:
        """Pods that have to leave."""
        return [pod for pod in self.attempts if pod not in self.cancelled_at]

    def step(self) -> None:
        """Issue or cancel an eviction, and now and then disturb."""
        pod = self._random.choice(PODS)
        if self.attempts[pod] and pod not in self.cancelled_at and self._random.random() < 0.4:
            self._log.append(command_now(pod, Action.CANCEL, pod_uid=uid_of(pod), attempt=self.attempts[pod]))
            self.cancelled_at[pod] = time.monotonic()
        elif pod not in self.cancelled_at:
            self._issue(pod)
        if self._random.random() < 0.3:
            self._disturb_requests()
            self._disturb_connections()
        self.turn()

    def turn(self) -> None:
        """Let the executor go on; what it refuses or fails is issued again, as the service does."""
        self._life.turn(self._log)
        for result in self._life.results:
            self.answers[result.pod].append(result.outcome)
            is_current = result.attempt == self.attempts[result.pod] and result.pod not in self.cancelled_at
            if is_current and result.outcome in {Outcome.REFUSED, Outcome.FAILED}:
                self._issue(result.pod)
        self._life.results.clear()

    def restart(self, number: int) -> None:
        """Kill the executor, and start another one."""
        self._life = Life(self._access, number, self._life.kill())

    def kill(self) -> None:
        """End it."""
        self._life.kill()

    def is_over(self) -> bool:
        """Whether all that is wanted has left, and no request is there."""
        objects = list(self._api.objects)
        stays = any(("Pod", pod) in objects for pod in self.wanted)
        return not stays and not any(kind == "EvictionRequest" for kind, _ in objects)

    def _issue(self, pod: str) -> None:
        self.attempts[pod] += 1
        self._log.append(command_now(pod, pod_uid=uid_of(pod), attempt=self.attempts[pod]))

    def _disturb_requests(self) -> None:
        """Withdraw or delete one, as any editor of the namespace may."""
        with self._api.changing():
            names = [name for kind, name in self._api.objects if kind == "EvictionRequest"]
            if not names:
                return
            name = self._random.choice(names)
            request = self._api.objects["EvictionRequest", name]
            if self._random.random() < 0.5:
                self._api.remove("EvictionRequest", name)
                return
            meta = request["metadata"] | {"generation": request["metadata"]["generation"] + 1}
            self._api.put("EvictionRequest", name, metadata=meta, spec=request["spec"] | {"intent": "Withdrawn"})

    def _disturb_connections(self) -> None:
        verb = self._random.choice(["create", "patch", "delete", "watch"])
        faults = [Fault(cut="before"), Fault(cut="after"), Fault(status=500)]
        self._api.trouble[f"{verb} evictionrequests"] = [self._random.choice(faults)]


@pytest.mark.parametrize("seed", range(4))
def test_nothing_is_left_and_nothing_leaves_after_its_cancel(
    seed: int, api: FakeApi, access: ClusterAccess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_requests, "ACCEPTED_SECONDS", 0.3)
    api.serves_requests = True
    for pod in PODS:
        api.put("Pod", pod, uid=uid_of(pod), spec={"nodeName": "n-1"}, status={"phase": "Running"})
    responder = Responder(api, seed)
    responder.start()
    disorder = Disorder(api, access, seed)
    for number in range(1, STEPS):
        disorder.step()
        if number % 40 == 0:
            disorder.restart(number)
        time.sleep(STEP_SECONDS)  # the pace of the schedule

    responder.chance = 0.2
    until = time.monotonic() + PATIENCE_SECONDS
    while not disorder.is_over():
        assert time.monotonic() < until, [name for kind, name in api.objects if kind == "EvictionRequest"]
        disorder.turn()
        time.sleep(STEP_SECONDS)
    disorder.turn()
    disorder.kill()
    responder.stop()

    assert len(disorder.wanted) > 3
    assert len(disorder.cancelled_at) > 3
    assert set(responder.evicted_at) <= set(disorder.attempts)
    ends = responder.evicted_at.items()
    late = {pod: at - disorder.cancelled_at[pod] for pod, at in ends if pod in disorder.cancelled_at}
    assert all(seconds < WITHDRAWN_WITHIN_SECONDS for seconds in late.values()), late
