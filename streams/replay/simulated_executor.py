"""Stands in for an executor and for the cluster behind it: answers `Evict` and lets the pod terminate and go.

Pure: the caller has the clock and the topics. It behaves like a real pair of them in what matters to the service. The
UID is the precondition of the delete; a pod that is deleted is seen terminating first and is gone a second later; a few
deletes fail the first time and work the next; what the recording says later about a pod that was deleted
here did not happen, and is not played.
"""

from __future__ import annotations

import dataclasses
import heapq
import zlib
from typing import Any, Final, TypeAlias

import msgspec

from evictstream.models.instants import instant_text

Event: TypeAlias = dict[str, Any]
"""One watch event as in JSON: `cluster`, `type`, `observedAt`, `object`."""

DELETION_US = 1_000_000
"""From the delete to the pod's end. Recorded kubelets took about as long on paper."""

FAILS_ONE_IN = 25
"""The share of pods whose first delete fails, to show a retry; by checksum of the UID, so the same ones each time."""


class _Metadata(msgspec.Struct, gc=False, rename="camel"):
    uid: str
    resource_version: str


class _Thing(msgspec.Struct, gc=False):
    kind: str
    metadata: _Metadata


class _Heading(msgspec.Struct, gc=False):
    type: str = ""
    object: _Thing | None = None


_heading: Final = msgspec.json.Decoder(_Heading).decode
_decode: Final = msgspec.json.Decoder(dict).decode
_encode: Final = msgspec.json.Encoder().encode


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
    """What follows from an `Evict`: the record for the results topic, and watch events to be published after it."""

    result: dict[str, object]
    events: tuple[Event, ...]


class SimulatedExecutor:
    """The executor and the cluster.

    Attributes:
        failed: attempts that were reported as failed, as `(evictionId, attempt)`.
        deleted: UIDs of pods that were deleted here.
    """

    def __init__(self, *, fails_one_in: int = FAILS_ONE_IN) -> None:
        """Know nothing yet; `fails_one_in=0` lets every delete work."""
        self.failed: set[tuple[str, int]] = set()
        self.deleted: set[str] = set()
        self._fails_one_in = fails_one_in
        self._failed_pods: set[str] = set()
        self._pods: dict[str, bytes] = {}  # the newest event of each, as it came: most are never decoded
        self._version = 0
        self._ending: list[tuple[int, str]] = []

    @property
    def busy(self) -> bool:
        """Whether a pod is still terminating."""
        return bool(self._ending)

    def next_us(self) -> int | None:
        """When the next terminating pod is gone."""
        return self._ending[0][0] if self._ending else None

    def admit(self, event: bytes) -> bool:
        """Take in a recorded event as JSON; `False` if it did not happen here, because the pod was deleted before.

        Raises:
            ValueError: it is no event of an object. `msgspec.DecodeError` is one.
        """
        found = _heading(event)
        thing = found.object
        if thing is None:
            return True
        meta = thing.metadata
        self._version = max(self._version, int(meta.resource_version))
        if thing.kind != "Pod":
            return True
        if meta.uid in self.deleted:
            return False
        if found.type == "DELETED":
            self._pods.pop(meta.uid, None)
        else:
            self._pods[meta.uid] = event
        return True

    def evict(self, command: Event, now_us: int) -> Answer:
        """Carry an `Evict` out."""
        uid = command["podUid"]
        if self._fails(uid):
            self._failed_pods.add(uid)
            self.failed.add((command["evictionId"], command["attempt"]))
            return Answer(_result(command, "Failed", "the API server was too busy (played)", now_us), ())
        pod = self._pods.get(uid)
        if pod is None:
            return Answer(_result(command, "Gone", "", now_us), ())
        if uid in self.deleted:  # still terminating: the API server takes the delete once more, and nothing changes
            return Answer(_result(command, "Succeeded", "", now_us), ())
        self.deleted.add(uid)
        event = self._change(pod, "MODIFIED", now_us)
        heapq.heappush(self._ending, (now_us + DELETION_US, uid))
        self._pods[uid] = _encode(event)
        return Answer(_result(command, "Succeeded", "", now_us), (event,))

    def gone(self, now_us: int) -> list[Event]:
        """Return the `DELETED` events of pods that have finished terminating."""
        events = []
        while self._ending and self._ending[0][0] <= now_us:
            _, uid = heapq.heappop(self._ending)
            events.append(self._change(self._pods.pop(uid), "DELETED", now_us))
        return events

    def _fails(self, uid: str) -> bool:
        if not self._fails_one_in or uid in self._failed_pods:
            return False
        return zlib.crc32(uid.encode()) % self._fails_one_in == 0

    def _change(self, pod: bytes, kind: str, now_us: int) -> Event:
        """Return the pod's next watch event. Resource versions go on from the highest one heard of."""
        self._version += 1
        event = _decode(pod)
        event["type"] = kind
        event["observedAt"] = instant_text(now_us)
        meta = event["object"]["metadata"]
        meta["resourceVersion"] = str(self._version)
        meta.setdefault("deletionTimestamp", instant_text(now_us))
        meta.setdefault("deletionGracePeriodSeconds", DELETION_US // 1_000_000)
        return event


def _result(command: Event, outcome: str, reason: str, now_us: int) -> dict[str, object]:
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
