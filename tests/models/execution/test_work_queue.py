"""The queue against a plain model: one at a time for a pod, turns and shares of namespaces, nothing lost."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from evictstream.models.execution.work_queue import CLUSTER_SHARE, QueuedEviction, QueueState, WorkQueue
from tests.harness.examples import examples
from tests.models.execution.samples import command

MOST = 16
MOST_RUNNING = 5


def entry(pod: str, node: str = "n-1", namespace: str = "shop", offset: int = 0) -> QueuedEviction:
    return QueuedEviction(
        command=command(pod=pod, node=node, namespace=namespace),
        reading=1,
        offset=offset,
        queued_at=0.0,
        seen_at=0.0,
    )


def test_namespaces_take_turns() -> None:
    queue = WorkQueue()
    for number in range(100):
        queue.put(entry(f"big-{number}", f"n-{number}", "big"))
    for number in range(2):
        queue.put(entry(f"small-{number}", f"m-{number}", "small"))

    taken = [waiting.command.namespace for _ in range(4) if (waiting := queue.take(0, MOST)) is not None]

    assert taken == ["big", "small", "big", "small"]


def test_pods_of_a_node_go_at_once_in_order() -> None:
    queue = WorkQueue()
    for letter in "abc":
        queue.put(entry(letter))

    taken = [waiting.command.pod for _ in range(3) if (waiting := queue.take(0, MOST)) is not None]

    assert taken == ["a", "b", "c"]


def test_a_namespace_that_is_slow_leaves_room_for_others() -> None:
    queue = WorkQueue()
    for number in range(100):
        queue.put(entry(f"slow-{number}", namespace="slow"))
    while queue.take(0, MOST) is not None:
        pass
    slow = len(queue) - queue.waits
    queue.put(entry("quick", namespace="quick"))
    quick = queue.take(0, MOST)

    assert slow == MOST * CLUSTER_SHARE // (CLUSTER_SHARE + 1)
    assert quick is not None
    assert quick.command.pod == "quick"


def test_what_is_put_off_lets_others_pass() -> None:
    queue = WorkQueue()
    queue.put(entry("a"))
    queue.put(entry("b"))
    first = queue.take(0, MOST)
    assert first is not None
    queue.put_off(first, 10.0)

    second = queue.take(0, MOST)
    assert second is not None
    assert second.command.pod == "b"
    queue.finish(second)
    assert queue.take(9.9, MOST) is None
    assert queue.next_at() == 10.0
    assert queue.take(10.0, MOST) is first


def test_what_is_older_is_removed_unless_it_runs() -> None:
    queue = WorkQueue()
    for letter in "abc":
        queue.put(entry(letter))
    running = queue.take(0, MOST)

    assert [waiting.command.pod for waiting in queue.remove_older(0.0, 0.0)] == ["b", "c"]
    assert list(queue) == [running]
    assert queue.take(0, MOST) is None


def test_an_open_request_may_wait_for_longer() -> None:
    queue = WorkQueue()
    for letter in "ab":
        queue.put(entry(letter))
    first = queue.take(0, MOST)
    assert first is not None
    first.is_open = True
    queue.put_off(first, 20.0)

    assert [waiting.command.pod for waiting in queue.remove_older(0.0, -1.0)] == ["b"]
    assert [waiting.command.pod for waiting in queue.remove_older(1.0, 0.0)] == ["a"]


def test_what_is_woken_begins_at_once_and_once() -> None:
    queue = WorkQueue()
    queue.put(entry("a"))
    first = queue.take(0, MOST)
    assert first is not None
    queue.put_off(first, 20.0)
    assert queue.take(1.0, MOST) is None

    for _ in range(3):
        queue.wake(first.command.eviction_id, 1.0)
    assert queue.take(1.0, MOST) is first
    assert queue.take(20.0, MOST) is None
    queue.wake("unknown", 1.0)


def test_a_wake_while_it_runs_is_one_round_more() -> None:
    queue = WorkQueue()
    queue.put(entry("a"))
    rounds = []
    for second in range(60):
        while (taken := queue.take(float(second), MOST)) is not None:
            rounds.append(second)
            if len(rounds) == 2:
                queue.wake(taken.command.eviction_id, float(second))
            queue.put_off(taken, second + 20.0)

    assert rounds == [0, 20, 20, 40]


def test_a_wake_adds_no_later_round() -> None:
    queue = WorkQueue()
    queue.put(entry("a"))
    rounds = []
    for second in range(200):
        now = float(second)
        if second < 60:
            queue.wake(command(pod="a").eviction_id, now)
        while (taken := queue.take(now, MOST)) is not None:
            rounds.append(second)
            queue.put_off(taken, now + 20.0)

    assert rounds == [*range(60), *range(79, 200, 20)]
    assert len(queue._put_off) == 1


def test_a_withdrawn_eviction_does_not_start() -> None:
    queue = WorkQueue()
    queue.put(entry("a"))
    queue.put(entry("b", namespace="other"))
    withdrawn = queue.withdraw(command(pod="a").eviction_id)

    assert withdrawn is not None
    taken = queue.take(0, MOST)
    assert taken is not None
    assert taken.command.pod == "b"


def test_a_running_eviction_is_left_to_its_end() -> None:
    queue = WorkQueue()
    queue.put(entry("a"))
    running = queue.take(0, MOST)
    assert running is not None

    assert queue.withdraw(running.command.eviction_id) is None
    assert running.state is QueueState.SUPERSEDED


def test_a_further_attempt_waits_for_the_one_that_runs() -> None:
    queue = WorkQueue()
    queue.put(entry("a"))
    first = queue.take(0, MOST)
    assert first is not None
    queue.withdraw(first.command.eviction_id)
    further = entry("a", offset=1)
    queue.put(further)

    assert queue.take(0, MOST) is None
    queue.finish(first)
    assert queue.take(0, MOST) is further


@pytest.mark.parametrize(
    ("state", "following"),
    [
        pytest.param(QueueState.ENDED, QueueState.RUNNING, id="begin what has ended"),
        pytest.param(QueueState.SUPERSEDED, QueueState.QUEUED, id="try again what a newer command replaced"),
        pytest.param(QueueState.ABANDONED, QueueState.QUEUED, id="try again what another executor does"),
        pytest.param(QueueState.QUEUED, QueueState.ABANDONED, id="keep what does not run"),
    ],
)
def test_a_state_that_cannot_follow_is_an_error(state: QueueState, following: QueueState) -> None:
    eviction = entry("a")
    eviction.state = state
    with pytest.raises(RuntimeError, match=state.name):
        eviction.move(following)


class QueueMachine(RuleBasedStateMachine):
    """Each eviction put is taken, withdrawn or removed once; a pod never has two running."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = WorkQueue()
        self.waiting: dict[str, QueuedEviction] = {}
        self.running: list[QueuedEviction] = []
        self.number = 0
        self.now = 0.0

    @rule(node=st.integers(0, 3), namespace=st.integers(0, 2))
    def put(self, node: int, namespace: int) -> None:
        self.number += 1
        found = entry(f"p-{self.number}", f"n-{node}", f"ns-{namespace}", self.number)
        self.queue.put(found)
        self.waiting[found.command.eviction_id] = found

    @precondition(lambda self: self.number)
    @rule(data=st.data(), namespace=st.integers(0, 2))
    def put_another_attempt(self, data: st.DataObject, namespace: int) -> None:
        found = entry(f"p-{data.draw(st.integers(1, self.number))}", namespace=f"ns-{namespace}")
        self.queue.withdraw(found.command.eviction_id)
        self.queue.put(found)
        self.waiting[found.command.eviction_id] = found

    @rule()
    def take(self) -> None:
        found = self.queue.take(self.now, MOST_RUNNING)
        share = CLUSTER_SHARE * (MOST_RUNNING - len(self.running))
        running_in = Counter(waiting.command.namespace for waiting in self.running)
        if found is None:
            busy = {waiting.command.pod_uid for waiting in self.running}
            ready = [
                waiting
                for waiting in self.waiting.values()
                if waiting.command.pod_uid not in busy
                and running_in[waiting.command.namespace] < share
                and waiting.until is None
            ]
            assert not ready
            return
        assert self.waiting.pop(found.command.eviction_id) is found
        assert found.until is None
        assert running_in[found.command.namespace] < share
        self.running.append(found)

    @precondition(lambda self: self.running)
    @rule(data=st.data(), seconds=st.integers(0, 5))
    def end(self, data: st.DataObject, seconds: int) -> None:
        found = self.running.pop(data.draw(st.integers(0, len(self.running) - 1)))
        if seconds and found.state is QueueState.RUNNING:
            self.queue.put_off(found, self.now + seconds)
            self.waiting[found.command.eviction_id] = found
        else:
            self.queue.finish(found)

    @precondition(lambda self: self.number)
    @rule(data=st.data())
    def wake(self, data: st.DataObject) -> None:
        eviction_id = command(pod=f"p-{data.draw(st.integers(1, self.number))}").eviction_id
        self.queue.wake(eviction_id, self.now)
        waiting = self.waiting.get(eviction_id)
        assert waiting is None or waiting.until is None or waiting.until <= self.now

    @precondition(lambda self: self.number)
    @rule(data=st.data())
    def withdraw(self, data: st.DataObject) -> None:
        eviction_id = command(pod=f"p-{data.draw(st.integers(1, self.number))}").eviction_id
        assert self.queue.withdraw(eviction_id) is self.waiting.pop(eviction_id, None)

    @rule()
    def remove_all(self) -> None:
        found = self.queue.remove_all()
        assert all(each.state in {QueueState.ABANDONED, QueueState.ENDED} for each in found)
        assert {id(one) for one in found} == {id(one) for one in (*self.waiting.values(), *self.running)}
        self.waiting = {}

    @rule()
    def let_time_pass(self) -> None:
        self.now += 2

    @invariant()
    def counts_agree(self) -> None:
        assert len(self.queue) == len(self.waiting) + len(self.running)
        assert self.queue.waits == len(self.waiting)
        assert self.queue.running == len(self.running)
        assert all(count == 1 for count in Counter(running.command.pod_uid for running in self.running).values())


TestQueue = QueueMachine.TestCase
TestQueue.settings = settings(max_examples=examples(100), stateful_step_count=40, deadline=None)
