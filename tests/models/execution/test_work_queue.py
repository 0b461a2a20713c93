"""The queue against a plain model: order on a node, one at a time there, turns between namespaces, nothing lost."""

from __future__ import annotations

from collections import Counter

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from evictstream.models.execution.work_queue import QueuedEviction, WorkQueue
from tests.models.execution.samples import command


def entry(pod: str, node: str = "n-1", namespace: str = "shop", partition: int = 0, offset: int = 0) -> QueuedEviction:
    return QueuedEviction(
        command=command(pod=pod, node=node, namespace=namespace),
        partition=partition,
        offset=offset,
        queued_at=0.0,
        said_at=0.0,
    )


def test_namespaces_take_turns() -> None:
    queue = WorkQueue()
    for number in range(100):
        queue.put(entry(f"big-{number}", f"n-{number}", "big"))
    for number in range(2):
        queue.put(entry(f"small-{number}", f"m-{number}", "small"))

    taken = [waiting.command.namespace for _ in range(4) if (waiting := queue.take(0)) is not None]

    assert taken == ["big", "small", "big", "small"]


def test_a_node_has_one_at_a_time_in_order() -> None:
    queue = WorkQueue()
    for letter in "abc":
        queue.put(entry(letter))
    first = queue.take(0)

    assert first is not None
    assert first.command.pod == "a"
    assert queue.take(0) is None
    queue.finish(first)
    second = queue.take(0)
    assert second is not None
    assert second.command.pod == "b"


def test_others_of_the_node_pass_what_is_put_off() -> None:
    queue = WorkQueue()
    queue.put(entry("a"))
    queue.put(entry("b"))
    first = queue.take(0)
    assert first is not None
    queue.put_off(first, 10.0)

    second = queue.take(0)
    assert second is not None
    assert second.command.pod == "b"
    queue.finish(second)
    assert queue.take(9.9) is None
    assert queue.next_at() == 10.0
    assert queue.take(10.0) is first


def test_a_withdrawn_eviction_does_not_start() -> None:
    queue = WorkQueue()
    queue.put(entry("a"))
    queue.put(entry("b", namespace="other"))
    withdrawn = queue.withdraw(command(pod="a").eviction_id)

    assert withdrawn is not None
    taken = queue.take(0)
    assert taken is not None
    assert taken.command.pod == "b"


def test_a_running_eviction_is_left_to_its_end() -> None:
    queue = WorkQueue()
    queue.put(entry("a"))
    running = queue.take(0)
    assert running is not None

    assert queue.withdraw(running.command.eviction_id) is None
    assert running.is_withdrawn


def test_a_further_attempt_waits_for_the_one_that_runs() -> None:
    queue = WorkQueue()
    queue.put(entry("a"))
    first = queue.take(0)
    assert first is not None
    queue.withdraw(first.command.eviction_id)
    further = entry("a", offset=1)
    queue.put(further)

    assert queue.take(0) is None
    queue.finish(first)
    assert queue.take(0) is further


class QueueMachine(RuleBasedStateMachine):
    """Each eviction put is taken, withdrawn or removed once; a node never has two running."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = WorkQueue()
        self.waiting: dict[str, QueuedEviction] = {}
        self.running: list[QueuedEviction] = []
        self.number = 0
        self.now = 0.0

    @rule(node=st.integers(0, 3), namespace=st.integers(0, 2), partition=st.integers(0, 1))
    def put(self, node: int, namespace: int, partition: int) -> None:
        self.number += 1
        found = entry(f"p-{self.number}", f"n-{node}", f"ns-{namespace}", partition, self.number)
        self.queue.put(found)
        self.waiting[found.command.eviction_id] = found

    @rule()
    def take(self) -> None:
        found = self.queue.take(self.now)
        if found is None:
            busy = {waiting.command.node for waiting in self.running}
            put_off = self.queue._put_off
            ready = [
                waiting
                for waiting in self.waiting.values()
                if waiting.command.node not in busy and not any(waiting is each for _, _, each in put_off)
            ]
            assert not ready
            return
        assert self.waiting.pop(found.command.eviction_id) is found
        assert found.command.node not in {waiting.command.node for waiting in self.running}
        if found.tries == 0:
            earlier = [
                waiting
                for waiting in self.waiting.values()
                if waiting.command.node == found.command.node and waiting.tries == 0 and waiting.offset < found.offset
            ]
            assert not earlier
        self.running.append(found)

    @precondition(lambda self: self.running)
    @rule(data=st.data(), seconds=st.integers(0, 5))
    def end(self, data: st.DataObject, seconds: int) -> None:
        found = self.running.pop(data.draw(st.integers(0, len(self.running) - 1)))
        if seconds and not found.is_withdrawn:
            self.queue.put_off(found, self.now + seconds)
            self.waiting[found.command.eviction_id] = found
        else:
            self.queue.finish(found)

    @precondition(lambda self: self.number)
    @rule(data=st.data())
    def withdraw(self, data: st.DataObject) -> None:
        eviction_id = command(pod=f"p-{data.draw(st.integers(1, self.number))}").eviction_id
        assert self.queue.withdraw(eviction_id) is self.waiting.pop(eviction_id, None)

    @rule(partition=st.integers(0, 1))
    def remove_partition(self, partition: int) -> None:
        found = self.queue.remove_partition(partition)
        assert all(waiting.is_given_up for waiting in found)
        there = [*self.waiting.values(), *(one for one in self.running if not one.is_given_up or one in found)]
        assert {id(one) for one in found} == {id(one) for one in there if one.partition == partition}
        self.waiting = {key: found for key, found in self.waiting.items() if found.partition != partition}

    @rule()
    def let_time_pass(self) -> None:
        self.now += 2

    @invariant()
    def counts_agree(self) -> None:
        assert len(self.queue) == len(self.waiting) + len(self.running)
        assert all(count == 1 for count in Counter(waiting.command.node for waiting in self.running).values())


TestQueue = QueueMachine.TestCase
TestQueue.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
