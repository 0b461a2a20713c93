"""Lives of nodes and pods: what can happen to them, drawn at random."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tests.faults.moved_seconds import moved
from tests.faults.objects import NOT_READY, UNREACHABLE, Json, Node, Pod, instant
from tests.faults.scribe import Scribe

SECOND_US = 1_000_000
MILLISECOND_US = 1000
CUSTOM_KEYS = ("maintenance", "gpu-broken")
OVERFLOWING = (18_446_744_074, 9_223_372_037, 300_000_000_000)


def draw_tolerations(chance: random.Random, largest_seconds: int) -> list[Json]:
    """Draw a pod's tolerations, mostly of the sort that real pods have."""
    found = [
        _toleration(key, draw_seconds(chance, largest_seconds))
        for key in (NOT_READY, UNREACHABLE)
        if chance.random() < 0.8
    ]
    for key in CUSTOM_KEYS:
        if chance.random() < 0.5:
            toleration = _toleration(key, draw_seconds(chance, largest_seconds))
            if chance.random() < 0.3:
                toleration = {**toleration, "operator": "Equal", "value": chance.choice(["a", "b"])}
            found.append(toleration)
    if chance.random() < 0.1:
        found.append({"operator": "Exists"})
    if chance.random() < 0.05:
        found.append({"key": CUSTOM_KEYS[0], "operator": "Gt", "value": "1", "effect": "NoExecute"})
    chance.shuffle(found)
    return found


def draw_seconds(chance: random.Random, largest: int) -> int | None:
    """Draw how long something is tolerated."""
    draw = chance.random()
    if draw < 0.12:
        return None
    if draw < 0.22:
        return chance.choice([0, 0, -1])
    if draw < 0.27:
        return chance.choice(OVERFLOWING)
    return chance.randint(1, largest)


def _toleration(key: str, seconds: int | None) -> Json:
    found: Json = {"key": key, "operator": "Exists", "effect": "NoExecute"}
    return found if seconds is None else {**found, "tolerationSeconds": seconds}


def edit_tolerations(chance: random.Random, pod: Pod, largest_seconds: int) -> None:
    """Change what may change: seconds, order, one more (semantics.md 2.3)."""
    draw = chance.random()
    if draw < 0.6 and pod.tolerations:
        which = chance.randrange(len(pod.tolerations))
        changed = {name: value for name, value in pod.tolerations[which].items() if name != "tolerationSeconds"}
        seconds = draw_seconds(chance, largest_seconds)
        if seconds is not None and changed.get("effect") == "NoExecute":
            changed["tolerationSeconds"] = seconds
        pod.tolerations = [*pod.tolerations[:which], changed, *pod.tolerations[which + 1 :]]
    elif draw < 0.8:
        pod.tolerations = chance.sample(pod.tolerations, len(pod.tolerations))
    else:
        key = chance.choice([NOT_READY, UNREACHABLE, *CUSTOM_KEYS])
        pod.tolerations = [*pod.tolerations, _toleration(key, draw_seconds(chance, largest_seconds))]


def change_taints(chance: random.Random, node: Node, at_us: int) -> None:
    """Do one thing to a node's taints."""
    sick = [taint for taint in node.taints if taint["key"] in (NOT_READY, UNREACHABLE)]
    custom = [taint for taint in node.taints if taint not in sick]
    draw = chance.random()
    if draw < 0.45:
        if sick and chance.random() < 0.45:  # the other one instead, or beside it
            other = UNREACHABLE if sick[0]["key"] == NOT_READY else NOT_READY
            keep = sick if chance.random() < 0.3 and len(sick) == 1 else []
            node.taints = [*custom, *keep, _taint(chance, other, at_us)]
            node.ready = "Unknown" if other == UNREACHABLE else "False"
        elif sick:
            node.taints = custom
            node.ready = chance.choice(["True", "True", "False", "Unknown", None])
        else:
            key = chance.choice([NOT_READY, UNREACHABLE])
            node.taints = [*custom, _taint(chance, key, at_us)]
            node.ready = "Unknown" if key == UNREACHABLE else "False"
    elif draw < 0.75:
        key = chance.choice(CUSTOM_KEYS)
        left = [taint for taint in node.taints if taint["key"] != key]
        is_there = len(left) < len(node.taints)
        node.taints = left if is_there else _insert(chance, left, _taint(chance, key, at_us))
    elif draw < 0.85 and node.taints:
        which = chance.randrange(len(node.taints))
        taint = dict(node.taints[which])
        if chance.random() < 0.5:
            taint["value"] = chance.choice(["a", "b", "2"])
        elif chance.random() < 0.5:
            taint["timeAdded"] = instant(at_us // SECOND_US * SECOND_US)
        else:
            taint["effect"] = "NoSchedule" if taint["effect"] == "NoExecute" else "NoExecute"
        node.taints = [*node.taints[:which], taint, *node.taints[which + 1 :]]
    else:
        node.ready = chance.choice(["True", "False", "Unknown"])


def _taint(chance: random.Random, key: str, at_us: int) -> Json:
    taint: Json = {"key": key, "effect": "NoExecute" if chance.random() < 0.92 else "NoSchedule"}
    if chance.random() < 0.3:
        taint["value"] = chance.choice(["a", "b", "2"])
    if chance.random() < 0.5:
        taint["timeAdded"] = instant(at_us // SECOND_US * SECOND_US)
    return taint


def _insert(chance: random.Random, taints: list[Json], taint: Json) -> list[Json]:
    where = chance.randint(0, len(taints))
    return [*taints[:where], taint, *taints[where:]]


class NodeLife:
    """One node from its registration on."""

    def __init__(self, chance: random.Random, scribe: Scribe, node: Node, begin_us: int) -> None:
        """Register the node at `begin_us`."""
        self.node = node
        self._chance = chance
        self._scribe = scribe
        self._births = 0
        self._is_there = True
        scribe.node(node, "ADDED", begin_us)

    def turn(self, at_us: int) -> None:
        """Let something happen."""
        if not self._is_there:
            self._births += 1
            self.node.uid = f"{self.node.uid.split('+')[0]}+{self._births}"
            self._is_there = True
            if self._chance.random() < 0.5:
                self.node.taints, self.node.ready = [], "True"
            self._scribe.node(self.node, "ADDED", at_us)
            return
        draw = self._chance.random()
        if draw < 0.06:
            self._is_there = False
            if self._chance.random() < 0.7:  # else the deletion is missed: the next thing heard is another UID
                self._scribe.node(self.node, "DELETED", at_us)
            return
        change_taints(self._chance, self.node, at_us)
        self._scribe.node(self.node, "MODIFIED", at_us)
        if draw < 0.3:  # flaps
            saved = list(self.node.taints), self.node.ready
            gap_us = self._chance.choice([5, 40, 100, 700, 1900, 2100, 4000]) * MILLISECOND_US
            self.node.taints = [t for t in self.node.taints if t["key"] not in (NOT_READY, UNREACHABLE)]
            self._scribe.node(self.node, "MODIFIED", at_us + gap_us // 2)
            self.node.taints, self.node.ready = saved
            self._scribe.node(self.node, "MODIFIED", at_us + gap_us)

    def strike(self, key: str, at_us: int, until_us: int) -> None:
        """Let the node be part of a zone outage from one instant to another."""
        if not self._is_there:
            return
        rest = [taint for taint in self.node.taints if taint["key"] not in (NOT_READY, UNREACHABLE)]
        self.node.taints, self.node.ready = [*rest, {"key": key, "effect": "NoExecute"}], "Unknown"
        self._scribe.node(self.node, "MODIFIED", at_us)
        self.node.taints, self.node.ready = rest, "True"
        self._scribe.node(self.node, "MODIFIED", until_us)


class PodLife:
    """One pod name; several pods, one after the other, may bear it."""

    def __init__(
        self,
        chance: random.Random,
        scribe: Scribe,
        pod: Pod,
        begin_us: int,
        largest_seconds: int,
        nodes: Sequence[str],
    ) -> None:
        """Create the pod at `begin_us`; one that follows on a deleted one may be on another of the nodes."""
        self.pod = pod
        self._chance = chance
        self._scribe = scribe
        self._largest_seconds = largest_seconds
        self._nodes = nodes
        self._births = 0
        self._is_there = True
        scribe.pod(pod, "ADDED", begin_us)

    def turn(self, at_us: int) -> None:
        """Let something happen."""
        chance, pod, scribe = self._chance, self.pod, self._scribe
        if not self._is_there:
            self._replace(at_us, chance.choice(self._nodes) if chance.random() < 0.4 else pod.node)
            return
        draw = chance.random()
        if draw < 0.45:
            edit_tolerations(chance, pod, self._largest_seconds)
        elif draw < 0.60:
            pass  # only its status changes
        elif draw < 0.68:
            pod.phase = chance.choice(["Succeeded", "Failed"])
        elif draw < 0.80:
            pod.deleted_at = instant(at_us // SECOND_US * SECOND_US)
        elif draw < 0.90:
            self._is_there = False
            scribe.pod(pod, "DELETED", at_us)
            return
        else:
            self._replace(at_us, pod.node)  # its deletion is missed
            return
        scribe.pod(pod, "MODIFIED", at_us)

    def _replace(self, at_us: int, node: str) -> None:
        self._births += 1
        old = self.pod
        self.pod = Pod(
            old.cluster,
            old.namespace,
            old.name,
            f"{old.uid.split('+')[0]}+{self._births}",
            node,
            draw_tolerations(self._chance, self._largest_seconds),
            moved_by=moved,
        )
        self._is_there = True
        self._scribe.pod(self.pod, "ADDED", at_us)
