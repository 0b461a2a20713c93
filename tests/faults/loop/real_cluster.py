"""The conformance kit's fake API server with a life from a seed: things happen, requests fail, etcd is restored."""

from __future__ import annotations

import copy
import time
import uuid
from random import Random
from typing import Any, Final, NamedTuple

from evictstream.kit.conformance.fake_api import FakeApi
from evictstream.kit.conformance.fake_faults import FakeAnswer, FakeRequest, Fault, deep
from evictstream.models.messages.object_limits import LARGEST_LIST
from tests.faults.loop.cluster import KEYS
from tests.faults.loop.deletes import SECOND_US, Deleted, Object, stays_us

LEVELS: Final = (990, 1_500, 9_995)
"""At which decoders of Python 3.11, 3.12 and 3.13 give up."""

SECONDS: Final = (0, 3, 8)
"""What pods tolerate taints for; longer ones would only be waited for."""

LOOK_US: Final = 5 * SECOND_US
"""A delete may come so long after its last look: an executor stands still for 2 s, and the machine is busy."""

LOST_VERSIONS: Final = 1_000
"""By which versions go back at least when etcd is restored: a feed looks each 10 s whether they did (docs/feed.md)."""

FAULTS: Final[dict[str, tuple[int | str | Fault, ...]]] = {
    "list nodes": (500, "cut", 429),
    "list pods": (503, "cut", 410),
    "watch nodes": ("cut", "half", "error", 410, 500),
    "watch pods": ("cut", "half", "error", "garbage", 410, 401),
    "get pods": (500, Fault(cut="before"), Fault(hold_seconds=1.0)),
    "get nodes": (503, Fault(cut="before")),
    "delete pods": (
        500,
        429,
        Fault(cut="before"),
        Fault(cut="after"),
        Fault(delay_seconds=1.0),
        Fault(hold_seconds=1.0),
    ),
    "patch pods/status": (409, 500, Fault(cut="after")),
}


class Moment(NamedTuple):
    """A node as it was from then on; None: it was not there."""

    at_us: int
    node: Object | None


class LivelyApi(FakeApi):
    """Nodes and pods to which things happen.

    Attributes:
        deleted: by executors.
        together: when a pod (UID) and a taint (key) of its node were first together.
    """

    def __init__(self, draw: Random) -> None:
        super().__init__()
        self.deleted: list[Deleted] = []
        self.together: dict[tuple[str, str], int] = {}
        self._moments: dict[str, list[Moment]] = {}
        self._backup: tuple[int, dict[tuple[str, str], Object]] | None = None
        self._draw = draw
        self._numbers = 0
        for number in range(4):
            self.put("Node", f"n-{number}", spec={})

    def of(self, kind: str) -> list[Object]:
        """List what there is of a kind."""
        return [found for (one, _), found in list(self.objects.items()) if one == kind]

    def act(self) -> str:
        """Let something happen to nodes or pods; returns what."""
        what = self._draw.choice(
            (
                *("pod",) * 6,
                "absurd",
                "taint",
                "taint",
                "untaint",
                "tolerate",
                "end",
                "finish",
                "move",
                "node",
                "no node",
            )
        )
        with self._changed:
            self._act(what)
        return what

    def _act(self, what: str) -> None:
        draw, nodes, pods = self._draw, [one["metadata"]["name"] for one in self.of("Node")], self.of("Pod")
        if what == "node" or not nodes:
            name = f"n-{draw.randrange(6)}"
            self.put("Node", name, spec=self.objects.get(("Node", name), {"spec": {}})["spec"])
        elif what == "no node":
            name = draw.choice(nodes)
            self.remove("Node", name)
            for pod in [one for one in pods if one["spec"]["nodeName"] == name]:
                self.remove("Pod", pod["metadata"]["name"])
        elif what == "pod":
            self._numbers += 1
            self._start_pod(f"p-{self._numbers % 40}", draw.choice(nodes))
        elif what == "absurd":
            self._numbers += 1
            self._start_pod(f"p-{self._numbers % 40}", draw.choice(nodes), **self._absurd())
        elif what == "taint":
            taints = [{"key": key, "effect": "NoExecute"} for key in draw.sample(KEYS, draw.choice((1, 1, 2)))]
            self.put("Node", draw.choice(nodes), spec={"taints": taints})
        elif what == "untaint":
            self.put("Node", draw.choice(nodes), spec={})
        elif pods:
            self._act_on(what, draw.choice(pods), nodes)

    def _act_on(self, what: str, pod: Object, nodes: list[str]) -> None:
        name = pod["metadata"]["name"]
        if what == "tolerate":
            self.put("Pod", name, spec=pod["spec"] | {"tolerations": self._tolerations()})
        elif what == "finish":
            self.put("Pod", name, status={"phase": "Succeeded"})
        else:
            self.remove("Pod", name)
            if what == "move":  # as a StatefulSet: the name comes back, perhaps on another node
                self._start_pod(name, self._draw.choice(nodes))

    def _start_pod(self, name: str, node: str, *, junk: int = 0, **metadata: Object) -> None:
        if ("Pod", name) not in self.objects:
            tolerations = [{"key": f"t{number}"} for number in range(junk)] + self._tolerations()
            spec = {"nodeName": node, "tolerations": tolerations}
            self.put("Pod", name, uid=str(uuid.uuid4()), spec=spec, status={"phase": "Running"}, metadata=metadata)

    def _absurd(self) -> Object:
        """Draw what a tenant may write: too deep for a decoder, or with as many tolerations as are looked at."""
        if self._draw.random() < 0.5:
            return {"junk": LARGEST_LIST - len(KEYS)}
        return {"managedFields": [{"fieldsV1": deep(self._draw.choice(LEVELS))}]}

    def _tolerations(self) -> list[Object]:
        return [
            {"key": key, "operator": "Exists", "effect": "NoExecute"}
            | ({} if (seconds := self._draw.choice((None, *SECONDS))) is None else {"tolerationSeconds": seconds})
            for key in KEYS
            if self._draw.random() < 0.4
        ]

    def fail(self) -> str:
        """Let requests fail, once each; returns which."""
        what = self._draw.choice((*FAULTS, "end watches", "compact"))
        if what == "end watches":
            self.end_watches()
        elif what == "compact":
            self.forget_history()
            self.end_watches()
        else:
            self.trouble.setdefault(what, []).append(self._draw.choice(FAULTS[what]))
        return what

    def backup(self) -> None:
        """Copy what etcd holds; much is written elsewhere in the cluster from then on."""
        with self._changed:
            self._backup = self.version, copy.deepcopy(self.objects)
            self.version += LOST_VERSIONS

    def restore(self) -> bool:
        """Put the copy back, with its UIDs and lower versions; returns whether there was one."""
        if self._backup is None:
            return False
        with self._changed:
            version, objects = self._backup
            self.rebuild(version=version)
            self._moments = {name: [*known, Moment(_now_us(), None)] for name, known in self._moments.items()}
            for (kind, name), found in sorted(objects.items()):
                parts = {part: found[part] for part in ("spec", "status") if part in found}
                self.put(kind, name, uid=found["metadata"]["uid"], **parts)
        self.end_watches()
        return True

    def delete_pod(self, request: FakeRequest, options: Object) -> tuple[FakeAnswer, str | None]:
        """Delete, and keep what the executor can have seen."""
        with self._changed:
            pod = self.objects.get(("Pod", request.name))
            answer, done_to = super().delete_pod(request, options)
            if done_to is not None:
                assert pod is not None
                self.deleted.append(Deleted(pod, self._seen(pod["spec"]["nodeName"]), _now_us()))
            return answer, done_to

    def _seen(self, name: str) -> tuple[Object, ...]:
        """Return the states that a node had lately."""
        since_us, moments = _now_us() - LOOK_US, self._moments.get(name, [])
        first = max((number for number, one in enumerate(moments) if one.at_us <= since_us), default=0)
        return tuple(one.node for one in moments[first:] if one.node is not None)

    def _change(self, kind: str, type_: str, found: Object) -> Object:
        found = super()._change(kind, type_, found)
        now_us, name = _now_us(), found["metadata"]["name"]
        if kind == "Node":
            self._moments.setdefault(name, []).append(Moment(now_us, None if type_ == "DELETED" else found))
        on = name if kind == "Node" else found["spec"]["nodeName"]
        node: Any = self.objects.get(("Node", on))
        for taint in node["spec"].get("taints", ()) if node is not None else ():
            for pod in self.of("Pod"):
                if pod["spec"]["nodeName"] == on:
                    self.together.setdefault((pod["metadata"]["uid"], taint["key"]), now_us)
        return found

    def owed(self) -> list[str]:
        """List running pods that have to go sooner or later."""
        with self._changed:
            return [
                pod["metadata"]["name"]
                for pod in self.of("Pod")
                if pod["status"]["phase"] == "Running"
                and "deletionTimestamp" not in pod["metadata"]
                and (node := self.objects.get(("Node", pod["spec"]["nodeName"]))) is not None
                and stays_us(pod, node) is not None
            ]

    def uids(self) -> dict[str, set[str]]:
        """Return UIDs of nodes under an empty name, and of pods by their node."""
        found: dict[str, set[str]] = {"": set()}
        with self._changed:
            for (kind, _), one in self.objects.items():
                on = "" if kind == "Node" else one["spec"]["nodeName"]
                found.setdefault(on, set()).add(one["metadata"]["uid"])
        return found


def _now_us() -> int:
    return time.time_ns() // 1_000
