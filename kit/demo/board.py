"""What the audience sees, kept up to date from what is played and from the commands that come back. Pure."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Mapping
from typing import Any

from evictstream.kit.demo.reader import Arrival, Seen
from evictstream.kit.demo.recording import Event
from evictstream.kit.oracle import PodPlan
from evictstream.models.instants import instant_us

ZONE = "topology.kubernetes.io/zone"
COMMANDS_KEPT = 200


@dataclasses.dataclass(slots=True)
class NodeLine:
    """One node.

    Attributes:
        taints: its NoExecute taints, as `key=value`.
        pending: pods with a deadline ahead, or past and not evicted yet.
        cancelled: how often a deadline was taken back.
        evicted: pods evicted.
        partition: number of its partition, once a command told it.
    """

    name: str
    zone: str = ""
    taints: tuple[str, ...] = ()
    pending: int = 0
    cancelled: int = 0
    evicted: int = 0
    partition: int | None = None

    @property
    def is_quiet(self) -> bool:
        """Whether nothing has happened on it."""
        return not (self.taints or self.pending or self.cancelled or self.evicted)


@dataclasses.dataclass(frozen=True, slots=True)
class Pending:
    """An announced eviction: its deadline in microseconds since 1970."""

    deadline_us: int
    node: str
    pod: str


def owed_us(command: dict[str, Any], plans: Mapping[str, PodPlan]) -> int:
    """Say since when an `Evict` was owed: its deadline, or when the plan of its pod says that this was known."""
    deadline_us = instant_us(command["deadline"])
    pod = plans.get(command["podUid"])
    return deadline_us if pod is None else pod.owed_us(deadline_us)


class Board:
    """Everything on the screen.

    Attributes:
        plans: what will be decided about each pod, by UID.
        headline: which Kafka.
        phase: what is happening.
        workers: one line about each.
        nodes: by name.
        pending: announced evictions by id.
        totals: commands by action.
        latest: the last commands, newest last.
    """

    def __init__(self) -> None:
        self.plans: Mapping[str, PodPlan] = {}
        self.headline = ""
        self.phase = ""
        self.workers: tuple[str, ...] = ()
        self.nodes: dict[str, NodeLine] = {}
        self.pending: dict[str, Pending] = {}
        self.totals: collections.Counter[str] = collections.Counter()
        self.latest: collections.deque[Seen] = collections.deque(maxlen=COMMANDS_KEPT)
        self._evicted: set[str] = set()

    def change(self, event: Event) -> str | None:
        """Take in a watch event; return a sentence if it changed a node's NoExecute taints."""
        thing = event["object"]
        if thing["kind"] != "Node":
            return None
        name = thing["metadata"]["name"]
        line = self.nodes.setdefault(name, NodeLine(name))
        line.zone = (thing["metadata"].get("labels") or {}).get(ZONE, "")
        found = thing["spec"].get("taints") or () if event["type"] != "DELETED" else ()
        taints = tuple(
            taint["key"] + (f"={taint['value']}" if taint.get("value") else "")
            for taint in found
            if taint["effect"] == "NoExecute"
        )
        before, line.taints = line.taints, taints
        if before == taints:
            return None
        return f"{name} is tainted {', '.join(taints)}" if taints else f"{name} is no longer tainted"

    def command(self, arrival: Arrival) -> None:
        """Take in a command."""
        seen, partition = arrival
        command = seen.command
        action, eviction = command["action"], command["evictionId"]
        line = self.nodes.setdefault(command["node"], NodeLine(command["node"]))
        line.partition = partition
        self.totals[action] += 1
        self.latest.append(seen)
        if action == "Schedule":
            self.pending[eviction] = Pending(instant_us(command["deadline"]), command["node"], command["pod"])
        else:
            self.pending.pop(eviction, None)
        if action == "Cancel":
            line.cancelled += 1
        if action == "Evict" and eviction not in self._evicted:
            self._evicted.add(eviction)
            line.evicted += 1
        line.pending = sum(one.node == line.name for one in self.pending.values())

    def pending_in(self, partitions: set[int]) -> int:
        """Count pending deadlines of nodes in these partitions."""
        return sum(self.nodes[one.node].partition in partitions for one in self.pending.values())
