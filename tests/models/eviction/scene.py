"""A node on a stage: events in seconds, every message kept, and after every step the rows must tell the whole story."""

from __future__ import annotations

import datetime as dt
import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evictstream.models.eviction import (
    Changes,
    EventType,
    NodeAggregate,
    NodeEvent,
    Origin,
    Outcome,
    PodEvent,
    ResultEvent,
    RowLoader,
    RuleParameters,
    apply_pod,
    apply_result,
    expire,
    fire,
    wakeups,
)
from evictstream.models.eviction.cluster import Cluster
from evictstream.models.instants import instant_text
from evictstream.models.kubernetes import NO_EXECUTE, NOT_READY, UNREACHABLE, Node, Pod, Taint, Toleration
from tests.harness.whole_steps import apply_node, decide_all, forget

if TYPE_CHECKING:
    from evictstream.models.messages.command import EvictionCommand
    from evictstream.models.messages.decision import DecisionRecord

CLUSTER = "prod-eu-1"
NODE = "node-0123"
ORIGIN = Origin("evictstream.test", 3, 42)
START_US = 1_795_227_353_000_000
ADDED, MODIFIED, DELETED = EventType.ADDED, EventType.MODIFIED, EventType.DELETED

A = Taint("a", "", NO_EXECUTE)
B = Taint("b", "", NO_EXECUTE)
SILENT = Taint(UNREACHABLE, "", NO_EXECUTE)
SICK = Taint(NOT_READY, "", NO_EXECUTE)


def us(seconds: float) -> int:
    """Seconds of the stage as an instant."""
    return START_US + round(seconds * 1_000_000)


def text(seconds: float) -> str:
    """Seconds of the stage as they are written in messages."""
    return instant_text(us(seconds))


def tolerate(key: str = "", seconds: int | None = None) -> Toleration:
    """Tolerate a key, or everything, with `Exists` and `NoExecute`."""
    return Toleration(key, "Exists", "", NO_EXECUTE, seconds)


@dataclass
class Scene:
    rules: RuleParameters = field(default_factory=RuleParameters)
    aggregate: NodeAggregate = field(default_factory=lambda: NodeAggregate(CLUSTER, NODE))
    table: dict[bytes, bytes] = field(default_factory=dict)
    commands: list[EvictionCommand] = field(default_factory=list)
    decisions: list[DecisionRecord] = field(default_factory=list)
    timers: set[tuple[int, str]] = field(default_factory=set)
    versions: itertools.count[int] = field(default_factory=lambda: itertools.count(100))

    def node(
        self,
        at: float,
        *taints: Taint,
        ready: str | None = "True",
        uid: str = "node-1",
        version: str | None = None,
        event_type: EventType = MODIFIED,
        undecidable: bool = False,
    ) -> Changes:
        seen = Node(NODE, uid, version or str(next(self.versions)), taints, ready)
        event = NodeEvent(type=event_type, node=seen, at_us=us(at), origin=ORIGIN, is_undecidable=undecidable)
        return self.keep(apply_node(self.aggregate, event, self.rules))

    def pod(
        self,
        at: float,
        *tolerations: Toleration,
        uid: str = "pod-1",
        name: str = "web-0",
        version: str | None = None,
        phase: str = "Running",
        terminating: bool = False,
        mirror: bool = False,
        node: str = NODE,
        event_type: EventType = MODIFIED,
        undecidable: bool = False,
        epoch: int = 0,
    ) -> Changes:
        version = version or str(next(self.versions))
        seen = Pod("payments", name, uid, version, node, tolerations, phase, terminating, mirror)
        event = PodEvent(
            type=event_type, pod=seen, at_us=us(at), origin=ORIGIN, is_undecidable=undecidable, epoch=epoch
        )
        return self.keep(apply_pod(self.aggregate, event, self.rules))

    def result(
        self,
        at: float,
        outcome: Outcome,
        command: EvictionCommand | None = None,
        reason: str = "",
        held_by: str | None = None,
    ) -> Changes:
        command = command or self.commands[-1]
        event = ResultEvent(
            node=NODE,
            eviction_id=command.eviction_id,
            attempt=command.attempt,
            pod_uid=command.pod_uid,
            outcome=outcome,
            reason=reason,
            at_us=us(at),
            origin=ORIGIN,
            held_by=held_by,
        )
        return self.keep(apply_result(self.aggregate, event, self.rules))

    def fire(self, at: float, uid: str = "pod-1") -> Changes:
        return self.keep(fire(self.aggregate, uid, us(at), self.rules))

    def expire(self, at: float) -> Changes:
        return self.keep(expire(self.aggregate, us(at), self.rules))

    def decide_all(self, at: float) -> Changes:
        return self.keep(decide_all(self.aggregate, us(at), self.rules, ORIGIN))

    def forget(self, at: float) -> Changes:
        return self.keep(forget(self.aggregate, us(at), self.rules, ORIGIN))

    def run_until(self, at: float) -> None:
        """Let the timer service run: fire every wake-up in order up to an instant."""
        while due := sorted(timer for timer in self.timers if timer[0] <= us(at)):
            self.timers.remove(due[0])
            at_us, uid = due[0]
            self.keep(fire(self.aggregate, uid, at_us, self.rules))
            assert due[0] not in self.timers, "a wake-up that asks for itself would never end"

    def restart(self) -> None:
        """Throw the state away and load it from its rows."""
        self.aggregate = rebuild(self.table)
        self.timers = set(wakeups(self.aggregate))

    def keep(self, changes: Changes) -> Changes:
        for key, value in changes.rows:
            if value is None:
                self.table.pop(key, None)
            else:
                self.table[key] = value
        self.commands.extend(changes.commands)
        self.decisions.extend(changes.decisions)
        self.timers.update(changes.wakeups)
        assert_same(rebuild(self.table), self.aggregate)
        assert len({key for key, _ in changes.rows}) == len(changes.rows), "a row is written twice in one step"
        return changes

    @property
    def actions(self) -> list[str]:
        """What was commanded, such as `Schedule 60` with the deadline in seconds."""
        return [
            f"{command.action} {command.reason.verdict}"
            if command.action == "Cancel"
            else f"{command.action} {seconds_of(command.deadline)}"
            for command in self.commands
        ]

    @property
    def kinds(self) -> list[str]:
        return [str(decision.decision) for decision in self.decisions]

    @property
    def state(self) -> str | None:
        """State of the eviction of `pod-1`."""
        pod = self.aggregate.pods.get("pod-1")
        return str(pod.eviction.state) if pod is not None and pod.eviction is not None else None

    @property
    def deadline(self) -> float | None:
        """Deadline of `pod-1` in seconds of the stage."""
        pod = self.aggregate.pods.get("pod-1")
        if pod is None or pod.eviction is None:
            return None
        return (pod.eviction.due.deadline_us - START_US) / 1_000_000


def seconds_of(instant: str) -> str:
    """An instant of a message as seconds of the stage, short."""
    moment = dt.datetime.fromisoformat(instant)
    start = dt.datetime.fromisoformat(text(0))
    return f"{(moment - start).total_seconds():g}"


def rebuild(table: dict[bytes, bytes]) -> NodeAggregate:
    """Load an aggregate from rows, evictions first: rows come in any order."""
    loader = RowLoader()
    for key in sorted(table):
        loader.load(key, table[key])
    assert set(loader.aggregates) <= {f"{CLUSTER}/{NODE}"}
    return in_cluster(loader)


def in_cluster(loader: RowLoader) -> NodeAggregate:
    """The node that has been loaded, in its cluster."""
    aggregate = loader.aggregates.get(f"{CLUSTER}/{NODE}", NodeAggregate(CLUSTER, NODE))
    Cluster(CLUSTER).add(aggregate)
    return aggregate


def assert_same(loaded: NodeAggregate, live: NodeAggregate) -> None:
    """Two aggregates are equal in everything that decides; a pod's version may be older in the loaded one."""
    assert (loaded.cluster, loaded.name) == (live.cluster, live.name)
    assert loaded.node == live.node
    assert loaded.earlier_nodes == live.earlier_nodes
    assert loaded.deleted_pods == live.deleted_pods
    assert loaded.orphans == live.orphans == {}
    assert loaded.pods.keys() == live.pods.keys()
    for uid, pod in live.pods.items():
        other = loaded.pods[uid]
        assert not (isinstance(other.version, int) and isinstance(pod.version, int) and other.version > pod.version)
        version, other.version = other.version, pod.version
        assert other == pod
        other.version = version
        assert live.pod_at(pod.address) is pod
        assert loaded.pod_at(pod.address) is other
    assert loaded.is_empty == live.is_empty
