"""From watch events to the history of each node and each pod (semantics 12.3).

Nothing is forgotten and nothing is summed up: a history is every state, in the order in which it was observed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from evictstream.streams.demo.oracle.rules import Json, to_us

MIRROR = "kubernetes.io/config.mirror"
FINISHED = ("Succeeded", "Failed")


@dataclasses.dataclass(frozen=True, slots=True)
class NodeAt:
    """What was known of a node from one event on.

    Attributes:
        turn: place of the event among all; later is greater.
        at_us: when it was observed.
        uid: `None` while no node has that name.
        taints: those with the effect NoExecute, in the node's order.
        ready: status of the condition `Ready`; `None` if it is not reported.
    """

    turn: int
    at_us: int
    uid: str | None = None
    taints: tuple[Json, ...] = ()
    ready: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class PodAt:
    """What was known of a pod from one event on.

    Attributes:
        turn: place of the event among all.
        at_us: when it was observed.
        is_bound: whether it is there and has a node.
        tolerations: in the pod's order.
        exempt: every reason why nothing is due for it, whatever its node says, in the words of commands.
    """

    turn: int
    at_us: int
    is_bound: bool
    tolerations: tuple[Json, ...] = ()
    exempt: frozenset[str] = frozenset()


@dataclasses.dataclass(slots=True)
class PodHistory:
    """One pod, which is one UID."""

    uid: str
    cluster: str
    namespace: str
    name: str
    node: str = ""
    states: list[PodAt] = dataclasses.field(default_factory=list)


class Histories:
    """All nodes and pods of a recording.

    Attributes:
        nodes: states by cluster and node name.
        pods: histories by UID.
    """

    def __init__(self, events: Iterable[Json]) -> None:
        """Read the events in the order in which they were observed; bookmarks are passed over."""
        self.nodes: dict[tuple[str, str], list[NodeAt]] = {}
        self.pods: dict[str, PodHistory] = {}
        self._versions: dict[str, int] = {}
        self._deleted: set[str] = set()
        self._holders: dict[tuple[str, str, str, str], str] = {}
        for turn, event in enumerate(events):
            if event["type"] in ("ADDED", "MODIFIED", "DELETED"):
                self._take(turn, event)

    def _take(self, turn: int, event: Json) -> None:
        thing, at_us = event["object"], to_us(event["observedAt"])
        meta, kind = thing["metadata"], thing["kind"]
        uid, version = meta["uid"], int(meta["resourceVersion"])
        name = (event["cluster"], kind, meta.get("namespace", ""), meta["name"])
        if uid in self._deleted or version < self._versions.get(uid, 0):
            return
        holder = self._holders.get(name, uid)
        is_delete = event["type"] == "DELETED"
        if holder != uid:  # another object has the name
            if is_delete or version < self._versions[holder]:
                return
            self._deleted.add(holder)
            if kind == "Pod":
                self._end(holder, turn, at_us, {"PodReplaced"})
        self._versions[uid] = version
        if is_delete:
            self._deleted.add(uid)
            self._holders.pop(name, None)
        else:
            self._holders[name] = uid
        if kind == "Node":
            states = self.nodes.setdefault((event["cluster"], meta["name"]), [])
            states.append(NodeAt(turn, at_us) if is_delete else _node_state(turn, at_us, thing))
        elif is_delete:
            self._end(uid, turn, at_us, {"PodGone"})
        else:
            self._take_pod(turn, at_us, event)

    def _take_pod(self, turn: int, at_us: int, event: Json) -> None:
        thing = event["object"]
        meta, node = thing["metadata"], thing["spec"].get("nodeName") or ""
        found = PodHistory(meta["uid"], event["cluster"], meta["namespace"], meta["name"])
        history = self.pods.setdefault(meta["uid"], found)
        history.node = node or history.node
        history.states.append(
            PodAt(
                turn,
                at_us,
                is_bound=bool(node),
                tolerations=tuple(thing["spec"].get("tolerations") or ()),
                exempt=_exemptions(thing),
            )
        )

    def _end(self, uid: str, turn: int, at_us: int, why: set[str]) -> None:
        if uid in self.pods:
            self.pods[uid].states.append(PodAt(turn, at_us, is_bound=False, exempt=frozenset(why)))


def _exemptions(pod: Json) -> frozenset[str]:
    """Name what a pod's own state says against evicting it (12.5, first rule)."""
    why = set()
    if pod["metadata"].get("deletionTimestamp"):
        why.add("PodTerminating")
    if (pod.get("status") or {}).get("phase") in FINISHED:
        why.add("PodFinished")
    if MIRROR in (pod["metadata"].get("annotations") or {}):
        why.add("PodMirror")
    return frozenset(why)


def _node_state(turn: int, at_us: int, node: Json) -> NodeAt:
    taints = (node.get("spec") or {}).get("taints") or ()
    conditions = (node.get("status") or {}).get("conditions") or ()
    return NodeAt(
        turn,
        at_us,
        uid=node["metadata"]["uid"],
        taints=tuple(taint for taint in taints if taint["effect"] == "NoExecute"),
        ready=next((condition["status"] for condition in conditions if condition["type"] == "Ready"), None),
    )
