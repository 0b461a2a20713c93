"""A cluster as its API server holds it: one version for all, a history for watches, deletes with preconditions."""

from __future__ import annotations

import copy
import dataclasses
import json
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

from evictstream.models.messages.object_limits import LARGEST_LIST
from tests.faults.loop.deletes import Deleted, Object

KEYS = ("maintenance", "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
SECONDS = (0, 5, 60)
ABSURD = (LARGEST_LIST - 1, LARGEST_LIST, LARGEST_LIST + 200)
"""Tolerations of nothing in the pod of a tenant: up to the limit it is decided about, beyond it is left alone."""


class Change(NamedTuple):
    """An event of a watch."""

    version: int
    kind: str
    type: str
    object: Object


@dataclasses.dataclass
class Backup:
    """What etcd held once."""

    version: int
    objects: dict[tuple[str, str], Object]


class ModelCluster:
    """Nodes and pods.

    Attributes:
        uid: of the cluster.
        version: the newest.
        objects: by kind and name.
        history: since the beginning, or since etcd was restored.
        oldest: the first version from which watches can begin.
        deleted: by executors.
        before_write: called before each change.
        first_tainted_us: when a pod (UID) and a taint (key) of its node were first together.
    """

    def __init__(self, draw: Random) -> None:
        self.uid = "cluster-1"
        self.version = 100
        self.objects: dict[tuple[str, str], Object] = {}
        self.history: list[Change] = []
        self.oldest = 0
        self.deleted: list[Deleted] = []
        self.first_tainted_us: dict[tuple[str, str], int] = {}
        self.now_us = 0
        self.before_write: Callable[[], None] = lambda: None
        self._draw = draw
        self._numbers = 0

    def of(self, kind: str) -> list[Object]:
        """List what there is of a kind."""
        return [found for (one, _), found in self.objects.items() if one == kind]

    def put(self, kind: str, name: str, **changes: Any) -> None:
        """Create or change an object."""
        known = self.objects.get((kind, name))
        if known is None:
            self._numbers += 1
            uid = f"{self.uid}-{kind}-{self._numbers}"
            known = {"metadata": {"name": name, "uid": uid}, "spec": {}, "status": {}}
            if kind == "Pod":
                known["metadata"]["namespace"] = f"ns-{self._numbers % 3}"
                known["status"] = {"phase": "Running"}
        found = copy.deepcopy(known)
        for part, fields in changes.items():
            found[part] |= fields
        self._write("MODIFIED" if (kind, name) in self.objects else "ADDED", kind, name, found)

    def remove(self, kind: str, name: str) -> None:
        """End an object."""
        found = copy.deepcopy(self.objects[kind, name])
        self._write("DELETED", kind, name, found)
        del self.objects[kind, name]

    def backup(self) -> Backup:
        """Copy what etcd holds."""
        return Backup(self.version, copy.deepcopy(self.objects))

    def restore(self, backup: Backup) -> None:
        """Put a copy back: same UIDs, lower versions."""
        self.version, self.objects = backup.version, copy.deepcopy(backup.objects)
        self._forget_history()
        self._note_taints()

    def _forget_history(self) -> None:
        """A watch that begins before now gets 410."""
        self.history.clear()
        self.oldest = self.version

    def rebuild(self) -> None:
        """Another cluster under the name, with nodes of the same names."""
        nodes = [one["metadata"]["name"] for one in self.of("Node")]
        self.uid += "x"
        self.version, self.objects = 10, {}
        self._forget_history()
        for name in nodes:
            self.put("Node", name)

    def delete(self, name: str, uid: str, version: str, node: Object | None) -> int:
        """Delete as an executor does that has seen this node; returns HTTP's status."""
        key = ("Pod", name)
        found = self.objects.get(key)
        if found is None:
            return 404
        if found["metadata"]["uid"] != uid or found["metadata"]["resourceVersion"] != version:
            return 409
        self.deleted.append(Deleted(copy.deepcopy(found), () if node is None else (node,), self.now_us))
        self.remove(*key)
        return 200

    def read(self, kind: str, name: str) -> bytes | None:
        """Read one object."""
        found = self.objects.get((kind, name))
        return None if found is None else json.dumps(found).encode()

    def act(self) -> str:
        """Let something happen to nodes or pods; returns what."""
        draw = self._draw
        nodes, pods = [one["metadata"]["name"] for one in self.of("Node")], self.of("Pod")
        what = draw.choice(
            (
                *("pod",) * 4,
                *("taint",) * 4,
                *("untaint", "tolerate", "end", "finish", "move", "node", "no node") * 2,
                "absurd",
            )
        )
        if what == "node" or not nodes:
            self.put("Node", f"n-{draw.randrange(6)}")
        elif what == "no node":
            name = draw.choice(nodes)
            self.remove("Node", name)
            for pod in [one for one in pods if one["spec"]["nodeName"] == name]:
                self.remove("Pod", pod["metadata"]["name"])
        elif what in {"pod", "absurd"}:
            name = f"p-{draw.randrange(12)}"
            if ("Pod", name) not in self.objects:
                junk = [{"key": f"t{number}"} for number in range(draw.choice(ABSURD) if what == "absurd" else 0)]
                spec = {"nodeName": draw.choice(nodes), "tolerations": junk + self._tolerations()}
                self.put("Pod", name, spec=spec)
        elif what == "taint":
            taints = [{"key": key, "effect": "NoExecute"} for key in draw.sample(KEYS, draw.choice((1, 1, 2)))]
            self.put("Node", draw.choice(nodes), spec={"taints": taints})
        elif what == "untaint":
            self.put("Node", draw.choice(nodes), spec={"taints": []})
        elif pods:
            self._act_on(what, draw.choice(pods), nodes)
        return what

    def _act_on(self, what: str, pod: Object, nodes: list[str]) -> None:
        name = pod["metadata"]["name"]
        if what == "tolerate":
            if len(pod["spec"]["tolerations"]) <= LARGEST_LIST:  # the oracle's pods stay beyond the limit, or below it
                self.put("Pod", name, spec={"tolerations": self._tolerations()})
        elif what == "finish":
            self.put("Pod", name, status={"phase": "Succeeded"})
        else:
            self.remove("Pod", name)
            if what == "move":  # as a StatefulSet: the name comes back, on another node
                self.put("Pod", name, spec={"nodeName": self._draw.choice(nodes), "tolerations": []})

    def _tolerations(self) -> list[Object]:
        return [
            {"key": key, "operator": "Exists", "effect": "NoExecute"}
            | ({} if (seconds := self._draw.choice((None, *SECONDS))) is None else {"tolerationSeconds": seconds})
            for key in KEYS
            if self._draw.random() < 0.4
        ]

    def _write(self, type_: str, kind: str, name: str, found: Object) -> None:
        self.before_write()
        self.version += 1
        found["metadata"]["resourceVersion"] = str(self.version)
        self.objects[kind, name] = found
        self.history.append(Change(self.version, kind, type_, found))
        self._note_taints()

    def _note_taints(self) -> None:
        taints = {one["metadata"]["name"]: one["spec"].get("taints", ()) for one in self.of("Node")}
        for pod in self.of("Pod"):
            for taint in taints.get(pod["spec"]["nodeName"], ()):
                self.first_tainted_us.setdefault((pod["metadata"]["uid"], taint["key"]), self.now_us)
