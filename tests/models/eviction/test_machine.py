"""Long random stories: the aggregate and the simple model must say the same, and the rows must tell the whole story."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from evictstream.models.eviction import (
    Changes,
    EventType,
    NodeAggregate,
    NodeEvent,
    Origin,
    Outcome,
    PodEvent,
    ResultEvent,
    RuleParameters,
    apply_pod,
    apply_result,
    fire,
    wakeups,
)
from evictstream.models.eviction.executor_queue import ExecutorQueue
from evictstream.models.eviction.levels import ClusterLevels
from evictstream.models.instants import instant_text
from evictstream.models.kubernetes import NO_EXECUTE, NOT_READY, UNREACHABLE, Node, Pod, Taint, Toleration
from tests.harness.counted import differences, open_of
from tests.harness.whole_steps import apply_node, decide_all
from tests.models.eviction.draws import (
    Event,
    lists_of_tolerations,
    names,
    readiness,
    real_tolerations,
    replaced,
    taints,
    uid_of,
    values,
)
from tests.models.eviction.scene import CLUSTER, NODE, START_US, assert_same, rebuild
from tests.models.eviction.simple_model import Command, SimpleModel, SimpleTaint, SimpleToleration

if TYPE_CHECKING:
    from evictstream.models.messages.command import EvictionCommand

ORIGIN = Origin("evictstream.test", 0, 0)
START = START_US // 1_000_000
STEPS_WANTED = 10_000


class AggregateMachine(RuleBasedStateMachine):
    """Time is whole seconds; every event happens now."""

    steps: ClassVar[int] = 0
    seen: ClassVar[set[str]] = set()

    def __init__(self) -> None:
        super().__init__()
        self.now = START
        self.version = 100
        self.serial = 0
        self.eviction_rules = RuleParameters()
        self.aggregate = NodeAggregate(CLUSTER, NODE)
        self.model = SimpleModel(compare=False)
        self.table: dict[bytes, bytes] = {}
        self.timers: set[tuple[int, str]] = set()
        self.history: list[Event] = []
        self.node_uid = "node-0"
        self.taints: list[SimpleTaint] = []
        self.ready: str | None = "True"
        self.zone = ""
        self.current: dict[str, Pod] = {}  # by name
        self.evictions: dict[str, EvictionCommand] = {}  # the newest command by eviction
        self.cancelled: set[str] = set()
        self.attempts: set[tuple[str, int]] = set()
        self.levels = ClusterLevels()

    @initialize(compare=st.booleans())
    def begin(self, compare: bool) -> None:  # noqa: FBT001
        self.eviction_rules = RuleParameters(comparison_operators=compare)
        self.model = SimpleModel(compare=compare)

    @rule(taint=taints)
    def taint(self, taint: SimpleTaint) -> None:
        others = [other for other in self.taints if (other.key, other.effect) != (taint.key, taint.effect)]
        self.taints = [taint, *others]
        self._see_node()

    @precondition(lambda self: self.taints)
    @rule(data=st.data())
    def untaint(self, data: st.DataObject) -> None:
        self.taints.remove(data.draw(st.sampled_from(self.taints)))
        self._see_node()

    @precondition(lambda self: self.taints)
    @rule(data=st.data(), value=values)
    def change_value(self, data: st.DataObject, value: str) -> None:
        index = data.draw(st.integers(0, len(self.taints) - 1))
        old = self.taints[index]
        self.taints[index] = SimpleTaint(old.key, value, old.effect, old.added)
        self._see_node()

    @rule(both=st.booleans())
    def swap_health(self, both: bool) -> None:  # noqa: FBT001
        """What the node lifecycle controller does when a condition changes from False to Unknown or back."""
        old = next((taint for taint in self.taints if taint.key in (NOT_READY, UNREACHABLE)), None)
        if old is None:
            self.taints.append(SimpleTaint(NOT_READY, "", NO_EXECUTE))
        else:
            new = SimpleTaint(UNREACHABLE if old.key == NOT_READY else NOT_READY, "", NO_EXECUTE)
            self.taints = [taint for taint in self.taints if taint.key != new.key]
            self.taints.append(new)
            if both:
                self._see_node()
            self.taints.remove(old)
        self.ready = "Unknown"
        self._see_node()

    @rule(ready=readiness, taints=st.lists(taints, max_size=3, unique_by=lambda taint: (taint.key, taint.effect)))
    def change_everything(self, ready: str | None, taints: list[SimpleTaint]) -> None:
        self.ready, self.taints = ready, taints
        self._see_node()

    @rule(zone=st.sampled_from(["", "z1", "z2"]))
    def change_zone(self, zone: str) -> None:
        self.zone = zone
        self._see_node()

    @rule()
    def delete_node(self) -> None:
        self.version += 1
        self._feed(NodeEvent(type=EventType.DELETED, node=self._node(), at_us=self._now_us, origin=ORIGIN))

    @rule(clean=st.booleans())
    def register_node_again(self, clean: bool) -> None:  # noqa: FBT001
        self.serial += 1
        self.node_uid = f"node-{self.serial}"
        if clean:
            self.taints, self.ready = [], "True"
        self._see_node()

    @rule(name=names, tolerations=lists_of_tolerations)
    def bind(self, name: str, tolerations: list[SimpleToleration]) -> None:
        """A new pod; if the name is taken, the end of the other one was missed."""
        self.serial += 1
        self.current[name] = Pod("ns", name, f"pod-{self.serial}", "", NODE, real_tolerations(tolerations), "Running")
        self._see_pod(name)

    @precondition(lambda self: self.current)
    @rule(data=st.data(), tolerations=lists_of_tolerations)
    def edit(self, data: st.DataObject, tolerations: list[SimpleToleration]) -> None:
        name = self._choose(data)
        self._change(name, tolerations=real_tolerations(tolerations))

    @precondition(lambda self: self.current)
    @rule(data=st.data(), seconds=st.sampled_from([None, 0, 10, 60, 300]))
    def edit_seconds(self, data: st.DataObject, seconds: int | None) -> None:
        name = self._choose(data)
        changed = tuple(
            Toleration(old.key, old.operator, old.value, old.effect, seconds) for old in self.current[name].tolerations
        )
        self._change(name, tolerations=changed)

    @precondition(lambda self: self.current)
    @rule(data=st.data())
    def change_status(self, data: st.DataObject) -> None:
        self._change(self._choose(data))

    @precondition(lambda self: self.current)
    @rule(data=st.data())
    def terminate(self, data: st.DataObject) -> None:
        self._change(self._choose(data), is_terminating=True)

    @precondition(lambda self: self.current)
    @rule(data=st.data(), phase=st.sampled_from(["Succeeded", "Failed"]))
    def finish(self, data: st.DataObject, phase: str) -> None:
        self._change(self._choose(data), phase=phase)

    @precondition(lambda self: self.current)
    @rule(data=st.data(), newer=st.booleans())
    def delete_pod(self, data: st.DataObject, newer: bool) -> None:  # noqa: FBT001
        name = self._choose(data)
        self.version += newer
        pod = replaced(self.current.pop(name), resource_version=str(self.version)) if newer else self.current.pop(name)
        self._feed(PodEvent(type=EventType.DELETED, pod=pod, at_us=self._now_us, origin=ORIGIN))

    # ---------------------------------------------------------------- results, repeats, restarts, time

    @precondition(lambda self: self.evictions)
    @rule(data=st.data(), outcome=st.sampled_from(list(Outcome)), older=st.sampled_from([0, 0, 0, 1]))
    def result(self, data: st.DataObject, outcome: Outcome, older: int) -> None:
        """Mostly of something outstanding, sometimes of something old."""
        outstanding = [name for name, command in self.evictions.items() if command.action == "Evict"]
        command = self.evictions[data.draw(st.sampled_from(sorted(outstanding or self.evictions)))]
        self._feed(
            ResultEvent(
                node=NODE,
                eviction_id=command.eviction_id,
                attempt=max(0, command.attempt - older),
                pod_uid=command.pod_uid,
                outcome=outcome,
                reason="",
                at_us=self._now_us,
                origin=ORIGIN,
                held_by="b" if outcome is Outcome.HELD else None,
            )
        )

    @rule(last=st.sampled_from([0, 0, 10, 60]))
    def report_queue(self, last: int) -> None:
        """An executor says that it has read all that was issued so many seconds ago."""
        self.model.report_queue(self.now, self.now - last)
        self.timers |= {(self._now_us, uid) for uid in self.aggregate.pods}

    @precondition(lambda self: self.history)
    @rule(data=st.data())
    def deliver_again(self, data: st.DataObject) -> None:
        event = data.draw(st.sampled_from(self.history))
        before = (len(self.table), dict(self.table))
        changes = self._apply(event)
        assert (changes.rows, changes.commands, changes.decisions, changes.wakeups) == ((), (), (), ())
        assert before == (len(self.table), self.table)

    @rule()
    def restart(self) -> None:
        self.aggregate = rebuild(self.table)
        self.timers = set(wakeups(self.aggregate))
        self.levels = ClusterLevels()
        self.levels.take(self.aggregate, [(None, eviction) for eviction in open_of([self.aggregate])])
        changes = decide_all(self.aggregate, self._now_us, self.eviction_rules)
        assert (changes.rows, changes.commands, changes.moves) == ((), (), ())
        self._done()

    @rule(seconds=st.sampled_from([1, 2, 5, 6, 10, 30, 60, 300, 1000]))
    def pass_time(self, seconds: int) -> None:
        """The timer service: every wake-up in order, at its instant, or now if that has passed."""
        end = self.now + seconds
        while due := sorted(timer for timer in self.timers if timer[0] <= end * 1_000_000):
            self.timers.remove(due[0])
            at_us, uid = due[0]
            self._fire(max(at_us, self._now_us), uid)
            assert due[0] not in self.timers, "a wake-up that asks for itself would never end"
        self.now = end
        for uid in self.model.pods:
            assert not self.model.must_fire(self.now, uid)[1], "an attempt is owed and no wake-up came"
        self._done()

    @precondition(lambda self: self.current)
    @rule(data=st.data())
    def fire_out_of_turn(self, data: st.DataObject) -> None:
        """A stale wake-up may come at any time."""
        self._fire(self._now_us, self.current[self._choose(data)].uid)
        self._done()

    @property
    def _now_us(self) -> int:
        return self.now * 1_000_000

    def _choose(self, data: st.DataObject) -> str:
        return data.draw(st.sampled_from(sorted(self.current)))

    def _node(self) -> Node:
        seen = tuple(Taint(taint.key, taint.value, taint.effect, taint.added) for taint in self.taints)
        labels = {"topology.kubernetes.io/zone": self.zone} if self.zone else {}
        return Node(NODE, self.node_uid, str(self.version), seen, self.ready, labels=labels)

    def _see_node(self) -> None:
        self.version += 1
        self._feed(NodeEvent(type=EventType.MODIFIED, node=self._node(), at_us=self._now_us, origin=ORIGIN))

    def _change(self, name: str, **fields: object) -> None:
        self.current[name] = replaced(self.current[name], **fields)
        self._see_pod(name)

    def _see_pod(self, name: str) -> None:
        self.version += 1
        pod = self.current[name] = replaced(self.current[name], resource_version=str(self.version))
        self._feed(PodEvent(type=EventType.MODIFIED, pod=pod, at_us=self._now_us, origin=ORIGIN))

    def _feed(self, event: Event) -> None:
        """Deliver something new to both and compare the commands."""
        changes = self._apply(event)
        self._compare(changes, self._tell_model(event))
        self.history.append(event)
        self._done()

    def _apply(self, event: Event) -> Changes:
        if isinstance(event, NodeEvent):
            changes = apply_node(self.aggregate, event, self.eviction_rules)
        elif isinstance(event, PodEvent):
            changes = apply_pod(self.aggregate, event, self.eviction_rules)
        else:
            changes = apply_result(self.aggregate, event, self.eviction_rules)
        self._keep(changes)
        return changes

    def _tell_model(self, event: Event) -> list[Command]:
        now = float(self.now)
        if isinstance(event, NodeEvent):
            node, version = event.node, int(event.node.resource_version)
            if event.type is EventType.DELETED:
                return self.model.lose_node(now, node.uid, version)
            return self.model.see_node(now, node.uid, version, list(self.taints), node.ready)
        if isinstance(event, PodEvent):
            pod, version = event.pod, int(event.pod.resource_version)
            if event.type is EventType.DELETED:
                return self.model.lose_pod(now, pod.uid, version)
            special = "PodTerminating" if pod.is_terminating else "PodFinished" if pod.phase != "Running" else ""
            simple = [
                SimpleToleration(t.key, t.operator, t.value, t.effect, t.toleration_seconds) for t in pod.tolerations
            ]
            return self.model.see_pod(now, pod.uid, pod.name, version, simple, special)
        if event.eviction_id not in self.cancelled:
            self.model.report(now, event.pod_uid, event.attempt, str(event.outcome))
        return []

    def _fire(self, at_us: int, uid: str) -> None:
        queue = ExecutorQueue(*(round(at * 1e6) for at in self.model.queue)) if self.model.queue else None
        changes = fire(self.aggregate, uid, at_us, self.eviction_rules, queue=queue)
        self._keep(changes)
        now = at_us / 1_000_000
        if not uid:
            self.model.purge(now)
            alive = {pod.uid for pod in self.current.values()} | {self.node_uid} | set(self.model.dead)
            self.history = [event for event in self.history if uid_of(event) in alive]
            return
        may, must = self.model.must_fire(now, uid)
        issued = [command for command in changes.commands if command.action == "Evict"]
        assert len(issued) == len(changes.commands) <= 1
        assert may or not issued, "issued what is not owed"
        assert issued or not must, "did not issue what is owed"
        for command in issued:
            assert command.attempt == self.model.fired(now, uid)
            assert (command.eviction_id, command.attempt) not in self.attempts
            self.attempts.add((command.eviction_id, command.attempt))

    def _keep(self, changes: Changes) -> None:
        self.levels.take(self.aggregate, changes.moves)
        for key, value in changes.rows:
            if value is None:
                self.table.pop(key, None)
            else:
                self.table[key] = value
        self.timers.update(changes.wakeups)
        for command in changes.commands:
            assert command.eviction_id not in self.cancelled, "an id is never used again after a cancel"
            before = self.evictions.get(command.eviction_id)
            if before is not None:
                assert command.pod_uid == before.pod_uid
                assert command.revision >= before.revision + (command.action == "Schedule")
            self.evictions[command.eviction_id] = command
            if command.action == "Cancel":
                self.cancelled.add(command.eviction_id)
        self.seen.update(str(decision.decision) for decision in changes.decisions)

    def _compare(self, changes: Changes, expected: list[Command]) -> None:
        assert all(command.action != "Evict" for command in changes.commands), "an event never issues"
        found: list[Command] = []
        for command in changes.commands:
            verdict = str(command.reason.verdict)
            if command.action == "Schedule":
                found.append(("Schedule", command.pod_uid, command.deadline))
            elif verdict in ("TaintRemoved", "Tolerated") and changes.commands:
                found.append(("Cancel", command.pod_uid, "TaintRemoved or Tolerated"))
            else:
                found.append(("Cancel", command.pod_uid, verdict))
        wanted: list[Command] = [
            (action, uid, instant_text(round(what * 1_000_000)))
            if not isinstance(what, str)
            else (action, uid, "TaintRemoved or Tolerated" if what == "TaintRemoved" else what)
            for action, uid, what in expected
        ]
        assert sorted(found) == sorted(wanted)

    def _done(self) -> None:
        """After every step: both agree about every pod, and the rows give the same aggregate."""
        type(self).steps += 1
        assert self.aggregate.pods.keys() == self.model.pods.keys()
        for uid, simple in self.model.pods.items():
            eviction = self.aggregate.pods[uid].eviction
            if simple.eviction is None:
                assert eviction is None
                continue
            assert eviction is not None
            state = "issued" if eviction.state == "retrying" else str(eviction.state)
            assert state == simple.eviction.state
            assert eviction.attempt == simple.eviction.attempt
            if state == "scheduled":
                due = simple.eviction.due
                if isinstance(due, str):
                    assert eviction.due.verdict == "Untolerated"
                    assert eviction.due.deadline_us <= self._now_us
                else:
                    assert eviction.due.deadline_us == round(due * 1_000_000)
        assert_same(rebuild(self.table), self.aggregate)
        assert differences(self.levels, [self.aggregate], self._now_us) == ""


@pytest.mark.slow
def test_aggregate_agrees_with_the_simple_model() -> None:
    AggregateMachine.steps = 0
    run_state_machine_as_test(
        AggregateMachine,
        settings=settings(
            max_examples=400, stateful_step_count=60, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
    print(f"{AggregateMachine.steps} steps, decisions seen: {sorted(AggregateMachine.seen)}")  # noqa: T201
    assert AggregateMachine.steps >= STEPS_WANTED
    assert AggregateMachine.seen >= {"Scheduled", "Due", "Moved", "Issued", "Retried", "Cancelled"}
