"""Observes the pods that somebody asks about while a replay runs: where they are, and how it stands with each.

It looks right after the service's logic has taken a record of such a pod, of its node or of its cluster's feed. Other
records cost a look into a dictionary and a search for a name in their bytes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

import msgspec

from evictstream.kit.recordings.record import RecordedRecord
from evictstream.kit.replay.asked_pod import AskedPod, Match
from evictstream.kit.replay.story import Teller
from evictstream.kit.replay.why_nothing import DEAD_LETTERED, GONE, UNBOUND, PodCase, WhyNothing, why_nothing
from evictstream.models.eviction import NodeAggregate
from evictstream.models.eviction.rule_parameters import ClusterRules
from evictstream.models.instants import instant_text, instant_us
from evictstream.models.kubernetes.shapes import TERMINAL_PHASES
from evictstream.models.messages.envelope import DECODE_ERRORS
from evictstream.models.shallow_json import decode_any_depth

MOST_CASES: Final = 1_000
"""Of one pod; a node whose taints flap for hours has no more of interest."""


_MOST_PODS: Final = 10_000
"""That had the name one after the other; how it stood with further ones is not kept. A few KB each at most."""


class _Name(msgspec.Struct, gc=False, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    deletion_timestamp: str | None = None


class _Status(msgspec.Struct, gc=False):
    phase: str | None = None


class _Spec(msgspec.Struct, gc=False, rename="camel"):
    node_name: str = ""


class _Object(msgspec.Struct, gc=False):
    metadata: _Name
    spec: _Spec | None = None
    status: _Status | None = None


class _Heading(msgspec.Struct, gc=False, rename="camel"):
    """As much of a pod's watch event as is needed to recognise it."""

    object: _Object
    type: str = ""
    observed_at: str | None = None


NodeLookup: TypeAlias = Callable[[str, str], NodeAggregate | None]

_UNBOUND_SPEC: Final = _Spec()
_LISTED: Final = b'"LISTED"'

_heading: Final = msgspec.json.Decoder(_Heading)


class CaseLine(NamedTuple):
    """How it stands with a pod from an instant on (RFC 3339)."""

    at: str
    teller: Teller
    why: WhyNothing


@dataclasses.dataclass(slots=True, kw_only=True)
class ObservedPod:
    """A pod that matches, and how it stood with it.

    Attributes:
        node: empty while it is bound to none.
        cases: in the order of time, each another than the one before.
        left_out: what the recording says of the pod after the replay has evicted it, in the same way.
    """

    cluster: str
    namespace: str
    name: str
    uid: str
    match: Match
    node: str = ""
    cases: list[CaseLine] = dataclasses.field(default_factory=list)
    left_out: list[CaseLine] = dataclasses.field(default_factory=list)

    def note(self, at: str, teller: Teller, why: WhyNothing) -> None:
        """Keep how it stands now, if that is news."""
        _keep(self.cases, CaseLine(at, teller, why))


def _keep(lines: list[CaseLine], line: CaseLine) -> None:
    """Add a line that says something new; beyond `MOST_CASES` the last one is replaced."""
    if lines and lines[-1].why == line.why:
        return
    if len(lines) >= MOST_CASES:
        lines.pop()
    lines.append(line)


class PodObserver:
    """Observes all pods that match.

    Attributes:
        asked: what was asked for.
        pods: by cluster and UID, in the order in which they were seen first.
    """

    def __init__(self, asked: AskedPod, rules: ClusterRules) -> None:
        self.asked = asked
        self.pods: dict[tuple[str, str], ObservedPod] = {}
        self._rules = rules
        self._followed: dict[bytes, dict[str, list[ObservedPod]]] = {}  # by key of the cluster and name of the node

    def wants(self, record: RecordedRecord) -> bool:
        """Tell whether `look` has to be called for a record, cheaply."""
        if record.value is None:
            return False
        if record.topic == "pods" and self.asked.needle in record.value:
            return True
        followed = self._followed.get(record.key or b"")
        return followed is not None and (record.topic == "nodes" or _LISTED in record.value)

    def look(self, record: RecordedRecord, known: NodeLookup, at_us: int, teller: Teller) -> None:
        """Look at what a record has changed.

        Args:
            record: one that `wants` wants, after the logic has taken it.
            known: gives what the logic knows now of a node, by cluster and name.
            at_us: when it was taken, microseconds since 1970.
            teller: `PLAYED` if the record is.
        """
        seen = _read(record)
        at = _instant(None if seen is None else seen.observed_at, at_us)
        if seen is not None and record.topic == "pods":
            self._see(record, seen, known, at, teller)
        followed = self._followed.get(record.key or b"", {})
        about = seen.object.metadata.name if seen is not None and record.topic == "nodes" else ""
        for pod in followed.get(about, ()) if about else [pod for pods in followed.values() for pod in pods]:
            node = known(pod.cluster, pod.node)
            why = GONE if node is None else why_nothing(node, pod.uid, self._rules.of(pod.cluster))
            is_decided = why.case is PodCase.DUE and teller is Teller.RECORDED  # by the replay, as no record says so
            pod.note(at, Teller.REPLAY if is_decided else teller, why)

    def leave_out(self, record: RecordedRecord, at_us: int) -> None:
        """Take in what was recorded of a pod that the replay has evicted before: the replay goes on without it."""
        seen = _read(record)
        pod = None if seen is None else self._pod(record.cluster, seen.object.metadata)
        if seen is not None and pod is not None:
            _keep(pod.left_out, CaseLine(_instant(seen.observed_at, at_us), Teller.RECORDED, _as_recorded(seen)))

    def see_unbound(self, cluster: str, object_: bytes, at_us: int) -> None:
        """Take in a pod that is bound to no node, which is no record of a topic."""
        try:
            seen = decode_any_depth(_objects, object_).metadata
        except DECODE_ERRORS:
            return
        pod = self._pod(cluster, seen)
        if pod is not None:
            pod.note(instant_text(at_us), Teller.RECORDED, UNBOUND)

    def _see(self, record: RecordedRecord, seen: _Heading, known: NodeLookup, at: str, teller: Teller) -> None:
        pod = self._pod(record.cluster, seen.object.metadata)
        if pod is None:
            return
        node_name = (seen.object.spec or _UNBOUND_SPEC).node_name
        node = known(record.cluster, node_name)
        if not node_name:
            pod.note(at, teller, UNBOUND)
        elif node is not None and pod.uid in node.pods:
            self._follow(pod, node_name, record.key or b"")
        elif not pod.node:  # nothing was ever taken in of it
            pod.node = node_name
            pod.note(at, teller, GONE if seen.type == "DELETED" else DEAD_LETTERED)

    def _follow(self, pod: ObservedPod, node: str, key: bytes) -> None:
        """Look again after each record of the pod's node, and of its cluster's feed."""
        followed = self._followed.setdefault(key, {})
        if pod in followed.get(node, ()):
            return
        if pod in followed.get(pod.node, ()):
            followed[pod.node].remove(pod)
        followed.setdefault(node, []).append(pod)
        pod.node = node

    def _pod(self, cluster: str, seen: _Name) -> ObservedPod | None:
        match = self.asked.match(seen.namespace, seen.name, seen.uid)
        is_known = (cluster, seen.uid) in self.pods
        if match is Match.NONE or not seen.uid or (len(self.pods) >= _MOST_PODS and not is_known):
            return None
        return self.pods.setdefault(
            (cluster, seen.uid),
            ObservedPod(cluster=cluster, namespace=seen.namespace, name=seen.name, uid=seen.uid, match=match),
        )


_objects: Final = msgspec.json.Decoder(_Object)


def _as_recorded(seen: _Heading) -> WhyNothing:
    if seen.type == "DELETED":
        return WhyNothing(PodCase.GONE, "In the recording the pod is deleted.")
    if seen.object.metadata.deletion_timestamp is not None:
        return WhyNothing(PodCase.TERMINATING, "In the recording the pod is terminating.")
    if seen.object.status is not None and seen.object.status.phase in TERMINAL_PHASES:
        return WhyNothing(PodCase.FINISHED, "In the recording the pod has finished.")
    return WhyNothing(PodCase.THERE, "In the recording the pod still exists.")


def _read(record: RecordedRecord) -> _Heading | None:
    if record.value is None:
        return None
    try:
        return decode_any_depth(_heading, record.value)
    except DECODE_ERRORS:
        return None  # a signal, or what the logic refuses


def _instant(observed_at: str | None, at_us: int) -> str:
    """Return the instant that a record names, unless it is none or lies ahead."""
    try:
        return instant_text(min(at_us, instant_us(observed_at or "")))
    except (TypeError, ValueError):
        return instant_text(at_us)
