"""Stands in for an executor and for the cluster behind it: answers `Evict` and lets the pod terminate and go.

Pure: the caller has the clock and the topics. It behaves like a real pair of them in what matters to the service. The
UID is the precondition of the delete; a pod that is deleted is seen terminating first and is gone a second later, or
as soon as another pod has its name; a few deletes fail the first time and work the next; what the recording says later
about a pod that was deleted here did not happen, and is not played.

Simulated events must not outdate recorded ones. So clusters share nothing, and simulated events of a pod have the next
version after the pod's own: other objects have versions of their own, and a pod of its name comes after its end.
"""

from __future__ import annotations

import dataclasses
import heapq
import zlib
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from evictstream.models.instants import instant_text
from evictstream.models.kubernetes.resource_versions import Version, is_newer, is_older, read_version

AnsweringEvent: TypeAlias = dict[str, Any]
"""One watch event as in JSON: `cluster`, `type`, `observedAt`, `object`."""

_Pod: TypeAlias = tuple[str, str]
"""A pod: cluster and UID."""

DELETION_US = 1_000_000
"""From the delete to the pod's end. Recorded kubelets took about as long on paper."""

FAILS_ONE_IN = 25
"""The share of pods whose first delete fails, to show a retry; by checksum of the UID, so the same ones each time."""


class _Metadata(msgspec.Struct, gc=False, rename="camel"):
    uid: str
    resource_version: str
    namespace: str = ""
    name: str = ""


class _Thing(msgspec.Struct, gc=False):
    kind: str
    metadata: _Metadata


class _Heading(msgspec.Struct, gc=False):
    type: str = ""
    cluster: str = ""
    epoch: int = 0
    object: _Thing | None = None


class _NewestState(NamedTuple):
    """The newest state of a pod: its version, and its event as it came. Most are never decoded."""

    version: Version
    event: bytes


_heading: Final = msgspec.json.Decoder(_Heading).decode
_decode: Final = msgspec.json.Decoder(dict).decode
_encode: Final = msgspec.json.Encoder().encode


@dataclasses.dataclass(frozen=True, slots=True)
class _Answer:
    """What follows from an `Evict`: the record for the results topic, and watch events to be published after it."""

    result: dict[str, object]
    events: tuple[AnsweringEvent, ...]


class SimulatedExecutor:
    """The executor and the cluster.

    Attributes:
        failed: attempts that were reported as failed, as `(evictionId, attempt)`.
        deleted: pods that were deleted here, as cluster and UID.
    """

    def __init__(self, *, fails_one_in: int = FAILS_ONE_IN) -> None:
        """Know nothing yet; `fails_one_in=0` lets every delete work."""
        self.failed: set[tuple[str, int]] = set()
        self.deleted: set[_Pod] = set()
        self._fails_one_in = fails_one_in
        self._failed_pods: set[_Pod] = set()
        self._pods: dict[_Pod, _NewestState] = {}
        self._epochs: dict[str, int] = {}  # the newest of each cluster
        self._ending: list[tuple[int, _Pod]] = []
        self._names: dict[tuple[str, str, str], _Pod] = {}  # of those that end: cluster, namespace and name

    @property
    def busy(self) -> bool:
        """Whether a pod is still terminating."""
        return bool(self._ending)

    def next_us(self) -> int | None:
        """When the next terminating pod is gone."""
        return self._ending[0][0] if self._ending else None

    def admit(self, event: bytes, now_us: int) -> list[AnsweringEvent] | None:
        """Take in a recorded event as JSON.

        Returns:
            What comes before it: the end of a pod that is terminating here, and whose name another one has now. None if
            the event did not happen here, because the pod was deleted before.

        Raises:
            ValueError: it is no event of an object. `msgspec.DecodeError` is one.
        """
        heading = _heading(event)
        if heading.epoch:
            self._epochs[heading.cluster] = max(heading.epoch, self._epochs.get(heading.cluster, 0))
        thing = heading.object
        if thing is None or thing.kind != "Pod":
            return []
        meta = thing.metadata
        pod, version = (heading.cluster, meta.uid), read_version(meta.resource_version, heading.epoch)
        if pod in self.deleted:
            return None
        state = self._pods.get(pod)
        if state is not None and is_older(version, state.version):
            return []
        if heading.type == "DELETED":
            self._pods.pop(pod, None)
            return []
        self._pods[pod] = _NewestState(version, event)
        before = self._names.get((heading.cluster, meta.namespace, meta.name)) if self._names else None
        if before is None or not is_newer(version, self._pods[before].version):
            return []
        return [self._end(before, now_us)]

    def evict(self, command: AnsweringEvent, now_us: int) -> _Answer:
        """Carry an `Evict` out."""
        pod = command["cluster"], command["podUid"]
        if self._fails(pod):
            self._failed_pods.add(pod)
            self.failed.add((command["evictionId"], command["attempt"]))
            return _Answer(_result(command, "Failed", "the API server was too busy (played)", now_us), ())
        if pod not in self._pods:
            return _Answer(_result(command, "Gone", "", now_us), ())
        if pod in self.deleted:  # still terminating: the API server takes the delete once more, and nothing changes
            return _Answer(_result(command, "Succeeded", "", now_us), ())
        self.deleted.add(pod)
        event = self._change(pod, "MODIFIED", now_us)
        heapq.heappush(self._ending, (now_us + DELETION_US, pod))
        self._names[_name(event)] = pod
        return _Answer(_result(command, "Succeeded", "", now_us), (event,))

    def gone(self, now_us: int) -> list[AnsweringEvent]:
        """Return the `DELETED` events of pods that have finished terminating."""
        events = []
        while self._ending and self._ending[0][0] <= now_us:
            _, pod = heapq.heappop(self._ending)
            if pod in self._pods:  # else another one had its name before
                events.append(self._end(pod, now_us))
        return events

    def _end(self, pod: _Pod, now_us: int) -> AnsweringEvent:
        event = self._change(pod, "DELETED", now_us)
        del self._pods[pod]
        if self._names.get(_name(event)) == pod:  # else an earlier one was heard of late, on another node
            del self._names[_name(event)]
        return event

    def _fails(self, pod: _Pod) -> bool:
        if not self._fails_one_in or pod in self._failed_pods:
            return False
        return zlib.crc32(pod[1].encode()) % self._fails_one_in == 0

    def _change(self, pod: _Pod, kind: str, now_us: int) -> AnsweringEvent:
        """Return the pod's next watch event, in the newest epoch of its cluster."""
        event = _decode(self._pods[pod].event)
        event["type"] = kind
        event["observedAt"] = instant_text(now_us)
        if pod[0] in self._epochs:
            event["epoch"] = self._epochs[pod[0]]
        meta = event["object"]["metadata"]
        meta["resourceVersion"] = _next_version(meta["resourceVersion"])
        meta.setdefault("deletionTimestamp", instant_text(now_us))
        meta.setdefault("deletionGracePeriodSeconds", DELETION_US // 1_000_000)
        return event


def _name(event: AnsweringEvent) -> tuple[str, str, str]:
    meta = event["object"]["metadata"]
    return event["cluster"], meta["namespace"], meta["name"]


def _next_version(text: str) -> str:
    """Return a version that is newer; to one that is no number any other one is."""
    version = read_version(text)
    return str(version + 1) if isinstance(version, int) else f"{text}+"


def _result(command: AnsweringEvent, outcome: str, reason: str, now_us: int) -> dict[str, object]:
    """Return a record for the results topic."""
    same = ("evictionId", "attempt", "cluster", "namespace", "pod", "podUid", "node")
    return {
        "apiVersion": "evictstream.io/v1",
        "kind": "EvictionResult",
        **{name: command[name] for name in same},
        "outcome": outcome,
        "reason": reason,
        "observedAt": instant_text(now_us),
    }
