"""The reference model and our aggregate agree on every story without restart, edit, failure or swap.

Same pods, same instants, same pending deadlines after every step. Failures and restarts do not occur: every deletion
succeeds at once and the pod is gone. Pods that are finished, terminating or mirrors do not occur (12.5, rows 12 to 14).
`departures.py` names the other cases that are left out, and recognises them in the story so far.
"""

from __future__ import annotations

from collections import Counter
from typing import ClassVar

import msgspec
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from evictstream.kit.upstream.taint_eviction import (
    ControllerInput,
    ControllerOutcome,
    NodeGone,
    NodeSeen,
    PodDeleted,
    PodGone,
    PodSeen,
    TaintEvictionController,
    apply,
)
from evictstream.models.eviction import (
    Changes,
    EventType,
    EvictionState,
    NodeAggregate,
    NodeEvent,
    Origin,
    PodEvent,
    RuleParameters,
    apply_pod,
    fire,
)
from evictstream.models.kubernetes import (
    NO_EXECUTE,
    NO_SCHEDULE,
    NOT_READY,
    UNREACHABLE,
    Node,
    Pod,
    Taint,
    Toleration,
    Tolerations,
)
from tests.harness.whole_steps import apply_node
from tests.kit.upstream.taint_eviction.departures import (
    LONGEST_SECONDS,
    OutageGap,
    edit_departure,
    no_execute,
    node_departure,
    replacement_departure,
)

ORIGIN = Origin("t", 0, 0)
NAME = "n1"
STEPS_WANTED = 4_000
START = 1_795_227_353

keys = st.sampled_from(["a", "b", NOT_READY, UNREACHABLE])
values = st.sampled_from(["", "x", "5", "9"])
taints = st.builds(
    Taint,
    keys,
    values,
    st.sampled_from([NO_EXECUTE, NO_EXECUTE, NO_EXECUTE, NO_SCHEDULE]),
    st.sampled_from([None, None, None, 1, 2]),
)
tolerations = st.builds(
    Toleration,
    st.one_of(keys, st.just("")),
    st.sampled_from(["Exists", "Exists", "Exists", "Equal", "", "Gt", "Lt", "Near"]),
    values,
    st.sampled_from([NO_EXECUTE, NO_EXECUTE, ""]),
    st.sampled_from([None, None, -5, 0, 3, 20, 60, 300, LONGEST_SECONDS]),
)
everything = st.builds(
    lambda seconds: [Toleration("", "Exists", "", NO_EXECUTE, seconds)], st.sampled_from([None, 0, 3, 20, 60])
)
lists_of_tolerations = st.one_of(everything, st.lists(tolerations, max_size=4)).map(tuple)
readiness = st.sampled_from(["True", "False", "Unknown", None])
names = st.sampled_from(["p1", "p2", "p3"])


class BothMachine(RuleBasedStateMachine):
    """One node, three names of pods, whole seconds."""

    steps: ClassVar[int] = 0
    evicted: ClassVar[int] = 0
    left_out: ClassVar[Counter[str]] = Counter()

    def __init__(self) -> None:
        super().__init__()
        self.now = START
        self.serial = 0
        self.compare = False
        self.eviction_rules = RuleParameters()
        self.aggregate = NodeAggregate("c", NAME)
        self.reference = TaintEvictionController()
        self.timers: set[tuple[int, str]] = set()
        self.node: Node | None = None
        self.uid = "node-0"
        self.pods: dict[str, Pod] = {}  # by name; not yet bound if without node
        self.last_added: dict[str, int] = {}
        self.gap = OutageGap()

    @initialize(compare=st.booleans())
    def begin(self, compare: bool) -> None:  # noqa: FBT001
        self.compare = compare
        self.eviction_rules = RuleParameters(comparison_operators=compare)
        self.reference = TaintEvictionController(comparison_operators=compare)

    # ---------------------------------------------------------------- the node

    @rule(
        seen=st.lists(taints, max_size=3, unique_by=lambda taint: (taint.key, taint.effect)),
        ready=readiness,
    )
    def change_taints(self, seen: list[Taint], ready: str | None) -> None:
        self._see_node(tuple(seen), ready)

    @rule(taint=taints)
    def taint(self, taint: Taint) -> None:
        others = tuple(old for old in self._taints if (old.key, old.effect) != (taint.key, taint.effect))
        self._see_node((*others, taint), "True")

    @precondition(lambda self: self._taints)
    @rule(data=st.data(), ready=readiness)
    def untaint(self, data: st.DataObject, ready: str | None) -> None:
        gone = data.draw(st.sampled_from(self._taints))
        self._see_node(tuple(taint for taint in self._taints if taint is not gone), ready)

    @precondition(lambda self: self._taints)
    @rule(data=st.data(), value=values, added=st.sampled_from([None, 1, 2, 3]))
    def change_taint(self, data: st.DataObject, value: str, added: int | None) -> None:
        old = data.draw(st.sampled_from(self._taints))
        new = Taint(old.key, value, old.effect, added)
        self._see_node(tuple(new if taint is old else taint for taint in self._taints), "True")

    @rule(ready=readiness)
    def change_conditions(self, ready: str | None) -> None:
        self._see_node(self._taints, ready)

    @rule()
    def delete_node(self) -> None:
        if self.node is None or self._leaves_out(self._departure(None)):
            return
        node, self.node = self._renewed(self.node), None
        self.last_added = {}
        self.gap.follow(None, self.now)
        self._feed(
            NodeGone(self._now_us, NAME),
            apply_node(
                self.aggregate,
                NodeEvent(type=EventType.DELETED, node=node, at_us=self._now_us, origin=ORIGIN),
                self.eviction_rules,
            ),
        )

    @rule(seen=st.lists(taints, max_size=2, unique_by=lambda taint: (taint.key, taint.effect)))
    def register_node_again(self, seen: list[Taint]) -> None:
        self.serial += 1
        self.uid = f"node-{self.serial}"
        self._see_node(tuple(seen), "True")

    # ---------------------------------------------------------------- the pods

    @rule(name=names, tolerations=lists_of_tolerations, bound=st.sampled_from([True, True, False]))
    def add_pod(self, name: str, tolerations: Tolerations, bound: bool) -> None:  # noqa: FBT001
        """A new pod; if the name is taken, the end of the other one was missed."""
        if name in self.pods and (not bound or self._leaves_out(replacement_departure(name, self._waiting))):
            return  # a bound pod that becomes an unbound one is a matter of placement, not of the node
        self.serial += 1
        self._see_pod(Pod("ns", name, f"pod-{self.serial}", "", NAME if bound else "", tolerations, "Running"))

    @precondition(lambda self: any(not pod.node_name for pod in self.pods.values()))
    @rule()
    def bind(self) -> None:
        pod = next(pod for pod in self.pods.values() if not pod.node_name)
        self._see_pod(msgspec.structs.replace(pod, node_name=NAME))

    @precondition(lambda self: self.pods)
    @rule(data=st.data(), tolerations=lists_of_tolerations)
    def edit(self, data: st.DataObject, tolerations: Tolerations) -> None:
        pod = self._choose(data)
        if pod.node_name and self._leaves_out(edit_departure(self.node)):
            return
        self._see_pod(msgspec.structs.replace(pod, tolerations=tolerations))

    @precondition(lambda self: self.pods)
    @rule(data=st.data(), phase=st.sampled_from(["Pending", "Running", ""]))
    def change_status(self, data: st.DataObject, phase: str) -> None:
        self._see_pod(msgspec.structs.replace(self._choose(data), phase=phase))

    @precondition(lambda self: self.pods)
    @rule(data=st.data())
    def delete_pod(self, data: st.DataObject) -> None:
        self._lose_pod(self._choose(data))
        self._settle()

    @rule(seconds=st.sampled_from([1, 2, 5, 6, 10, 30, 60, 300, 1000]))
    def pass_time(self, seconds: int) -> None:
        """Stop at every instant at which either of the two has something to do."""
        end = self.now + seconds
        while True:
            instants = [at_us for at_us, _ in self.timers] + list(self.reference.deadlines().values())
            ahead = [at_us for at_us in instants if at_us <= end * 1_000_000]
            if not ahead:
                break
            self.now = max(self.now, -(-min(ahead) // 1_000_000))  # wake-ups for retries have fractions, and are stale
            self._settle()
        self.now = end
        self._settle()

    # ---------------------------------------------------------------- how it is done

    @property
    def _now_us(self) -> int:
        return self.now * 1_000_000

    @property
    def _taints(self) -> tuple[Taint, ...]:
        return () if self.node is None else self.node.taints

    @property
    def _waiting(self) -> set[str]:
        return {address.removeprefix("ns/") for address in self.reference.deadlines()}

    def _choose(self, data: st.DataObject) -> Pod:
        return self.pods[data.draw(st.sampled_from(sorted(self.pods)))]

    def _departure(self, new: Node | None) -> str | None:
        bound = [pod for pod in self.pods.values() if pod.node_name]
        return node_departure(self.node, new, bound, self._waiting, self.last_added, compare=self.compare)

    def _leaves_out(self, departure: str | None) -> bool:
        if departure is not None:
            type(self).left_out[departure] += 1
        return departure is not None

    def _renewed(self, node: Node) -> Node:
        self.serial += 1
        return msgspec.structs.replace(node, resource_version=str(self.serial))

    def _see_node(self, seen: tuple[Taint, ...], ready: str | None) -> None:
        node = self._renewed(Node(NAME, self.uid, "", seen, ready))
        is_same = self.node is not None and self.node.uid == node.uid
        if self._leaves_out(self._departure(node) or (self.gap.departure(node, self.now) if is_same else None)):
            self.uid = self.node.uid if self.node is not None else self.uid
            return
        if not is_same:
            self.last_added = {}
            self.gap.follow(None, self.now)
        self.gap.follow(node, self.now)
        there = {taint.key: taint.time_added_us for taint in no_execute(node)}
        self.last_added = {
            key: added if added is not None else self.last_added[key]
            for key, added in there.items()
            if added is not None or key in self.last_added
        }
        self.node = node
        self._feed(
            NodeSeen(self._now_us, node),
            apply_node(
                self.aggregate,
                NodeEvent(type=EventType.MODIFIED, node=node, at_us=self._now_us, origin=ORIGIN),
                self.eviction_rules,
            ),
        )

    def _see_pod(self, pod: Pod) -> None:
        self.serial += 1
        pod = self.pods[pod.name] = msgspec.structs.replace(pod, resource_version=str(self.serial))
        event = PodEvent(type=EventType.MODIFIED, pod=pod, at_us=self._now_us, origin=ORIGIN)
        self._feed(PodSeen(self._now_us, pod), apply_pod(self.aggregate, event, self.eviction_rules))

    def _lose_pod(self, pod: Pod) -> list[ControllerOutcome]:
        """Let a pod be gone for both; gives what the reference does about it."""
        del self.pods[pod.name]
        self.serial += 1
        gone = msgspec.structs.replace(pod, resource_version=str(self.serial))
        if pod.node_name:
            event = PodEvent(type=EventType.DELETED, pod=gone, at_us=self._now_us, origin=ORIGIN)
            self._keep(apply_pod(self.aggregate, event, self.eviction_rules))
        return apply(self.reference, PodGone(self._now_us, gone))

    def _feed(self, change: ControllerInput, changes: Changes) -> None:
        self._keep(changes)
        self._settle(apply(self.reference, change))

    def _keep(self, changes: Changes) -> None:
        self.timers.update(changes.wakeups)

    def _settle(self, outcomes: list[ControllerOutcome] | None = None) -> None:
        """Let both do what is due now, compare, and let the cluster do what they asked for."""
        theirs = (outcomes or []) + self.reference.advance(self._now_us)
        deleted = {outcome.uid for outcome in theirs if isinstance(outcome, PodDeleted)}
        issued: set[str] = set()
        while due := sorted(timer for timer in self.timers if timer[0] <= self._now_us):
            self.timers.remove(due[0])
            changes = fire(self.aggregate, due[0][1], self._now_us, self.eviction_rules)
            self._keep(changes)
            issued |= {command.pod_uid for command in changes.commands if command.action == "Evict"}
        assert issued == deleted, "other pods, or other instants"
        type(self).steps += 1
        type(self).evicted += len(issued)
        for pod in [pod for pod in self.pods.values() if pod.uid in issued]:
            assert not any(isinstance(outcome, PodDeleted) for outcome in self._lose_pod(pod))
        assert self._our_deadlines() == self.reference.deadlines()

    def _our_deadlines(self) -> dict[str, int]:
        return {
            pod.address: pod.eviction.due.deadline_us
            for pod in self.aggregate.pods.values()
            if pod.eviction is not None and pod.eviction.state is EvictionState.SCHEDULED
        }


@pytest.mark.slow
def test_reference_model_and_aggregate_agree() -> None:
    BothMachine.steps = BothMachine.evicted = 0
    BothMachine.left_out.clear()
    run_state_machine_as_test(
        BothMachine,
        settings=settings(
            max_examples=200, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
    print(f"{BothMachine.steps} steps, {BothMachine.evicted} evictions, left out: {BothMachine.left_out}")  # noqa: T201
    assert BothMachine.steps >= STEPS_WANTED
    assert BothMachine.evicted >= STEPS_WANTED // 100
