"""Turns statements into the successive states of a node and of each of its pods (semantics.md 12.3, 12.4).

A history has only states that differ from the previous one in something that counts. A record with two effects (another
UID under a known name: the old pod is gone, the new one is there) gives two states.

Resource versions are numbers, and a deleted UID is remembered for good: runs are shorter than that memory.

A version of a pod that changes nothing relevant is remembered only as long as no worker ends (docs/guarantees.md, "What
is not promised"). A late record behind such a version is `overtaken`: it is outdated, and after the end of a worker it
may be taken as new.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from evictstream.kit.oracle.handed_over import ANNOTATION, in_force
from evictstream.kit.oracle.limits import OracleLimits
from evictstream.kit.oracle.readiness import NO_SPELLS, NO_VERSION, ReadySpells, node_turns, ready_status
from evictstream.kit.oracle.reading import Json, ObjectVersion, Statement, to_us

HEALTH = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_MIRROR = "kubernetes.io/config.mirror"

_Place: TypeAlias = tuple[str, str]
"""Node and UID of a pod."""

PodOwner: TypeAlias = tuple[str, str, str]
"""Namespace, kind and name of the controller of a pod."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeardTaint:
    """A `NoExecute` taint.

    Attributes:
        since_us: since when this instance of it is there.
        value_since_us: since when it has its value.
        added_us: the last `timeAdded` seen on it.
    """

    key: str
    value: str
    since_us: int
    value_since_us: int
    added_us: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeardNode:
    """A node from one record on, which has this offset. `uid` is None while it is not there."""

    append_at_us: int = 0
    offset: int = -1
    at_us: int = 0
    uid: str | None = None
    taints: tuple[HeardTaint, ...] = ()
    outage_us: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeardPod:
    """A pod from one record on.

    Attributes:
        absent: why it is not there; empty if it is.
        since_us: when it was first seen on the node.
        tolerations: with the seconds in force.
        in_spec: as the built-in controller reads them.
        tolerations_since_us: since when its tolerations decide: they are there, and the pod is not left alone.
        exempt: why it is left alone though it is there.
        is_restored: the state is of a later epoch than the previous one: changes in between may be undone.
        owner: its controller; of one that is gone, the last one that it had.
    """

    append_at_us: int = 0
    at_us: int = 0
    absent: str = "PodGone"
    since_us: int = 0
    tolerations: tuple[Json, ...] = ()
    in_spec: tuple[Json, ...] = ()
    tolerations_since_us: int = 0
    exempt: frozenset[str] = frozenset()
    is_restored: bool = False
    owner: PodOwner | None = None

    def counts_as(self, other: HeardPod) -> bool:
        """Tell whether nothing that counts differs."""
        same = replace(other, append_at_us=self.append_at_us, at_us=self.at_us, is_restored=self.is_restored)
        return same == self


@dataclass(slots=True, kw_only=True)
class PodHistory:
    """One pod, which is one UID.

    Attributes:
        version: the newest version.
        kept_version: the newest version that changed something: it is in the log, and no crash forgets it.
    """

    namespace: str
    name: str
    states: list[HeardPod] = field(default_factory=lambda: [HeardPod()])
    version: ObjectVersion = NO_VERSION
    kept_version: ObjectVersion = NO_VERSION


@dataclass(slots=True)
class PodHistories:
    """All pods that were ever seen on one node, by UID, and the offsets of records that were overtaken."""

    pods: dict[str, PodHistory] = field(default_factory=dict)
    overtaken: list[int] = field(default_factory=list)


def node_history(
    statements: Iterable[Statement], limits: OracleLimits, ready: ReadySpells = NO_SPELLS
) -> list[HeardNode]:
    """List the states of one node of a cluster, whose nodes were `ready`; the first is "not there"."""
    states = [HeardNode()]
    gap_us: int | None = None
    for statement, uid in node_turns(statements):
        now = states[-1]
        if uid is None:
            states.append(_node_gone(statement))
            gap_us = None
            continue
        taints = _taints(now.taints, statement)
        outage_us, gap_us = _outage((now.outage_us, gap_us), taints, statement, limits, ready)
        after = HeardNode(
            append_at_us=statement.record.append_at_us,
            offset=statement.record.offset,
            at_us=statement.at_us,
            uid=uid,
            taints=taints,
            outage_us=outage_us,
        )
        if (after.uid, after.taints, after.outage_us) != (now.uid, now.taints, now.outage_us):
            states.append(after)
    return states


def _node_gone(statement: Statement) -> HeardNode:
    record = statement.record
    return HeardNode(append_at_us=record.append_at_us, offset=record.offset, at_us=statement.at_us)


def _identity(statement: Statement) -> tuple[str, ObjectVersion]:
    return statement.content["metadata"]["uid"], statement.version


def _taints(before_taints: tuple[HeardTaint, ...], statement: Statement) -> tuple[HeardTaint, ...]:
    """Carry windows over: same key, same taint; a later `timeAdded` shows a missed removal."""
    taints = []
    for taint in (statement.content.get("spec") or {}).get("taints") or ():
        if taint["effect"] != "NoExecute":
            continue
        key, added_us = taint["key"], to_us(taint["timeAdded"]) if taint.get("timeAdded") else None
        value = taint.get("value") or ""
        since_us = value_since_us = statement.at_us
        before = next((old for old in before_taints if old.key == key), None)
        if before is not None and not (added_us and before.added_us and added_us > before.added_us):
            since_us, added_us = before.since_us, added_us or before.added_us
            value_since_us = before.value_since_us if value == before.value else statement.at_us
        taints.append(
            HeardTaint(key=key, value=value, since_us=since_us, value_since_us=value_since_us, added_us=added_us)
        )
    return tuple(taints)


def _outage(
    before: tuple[int | None, int | None],
    taints: tuple[HeardTaint, ...],
    statement: Statement,
    limits: OracleLimits,
    ready: ReadySpells,
) -> tuple[int | None, int | None]:
    """Give the start of the outage that the node is in, and since when that one is in a gap."""
    outage_us, gap_us = before
    if outage_us is not None and gap_us is not None and statement.at_us - gap_us > limits.outage_gap_us:
        is_followed = limits.outage_gap_us > 0 and not statement.is_added
        if not (is_followed and ready.cover(outage_us, statement.record.offset)):
            outage_us = gap_us = None
    if any(taint.key in HEALTH for taint in taints):
        return (statement.at_us if outage_us is None else outage_us), None
    if outage_us is None or ready_status(statement.content) in (None, "True"):
        return None, None
    return outage_us, statement.at_us if gap_us is None else gap_us


def pod_histories(node: str, statements: Iterable[Statement], taken: Collection[int] = ()) -> PodHistories:
    """List the states of each pod of a node; the first state is "not there".

    Args:
        node: its name.
        statements: the records about its pods, and the listings about them, by offset; also about the pods of all nodes
            that have had a pod of the same name, since a name has one holder in a cluster.
        taken: offsets of overtaken records that were taken as new.
    """
    reader = _PodsReader(taken)
    for statement in statements:
        if statement.kind == "LISTED":
            reader.end_unlisted(statement)
        elif statement.is_deleted:
            reader.end(statement)
        else:
            reader.see(statement)
    return PodHistories({uid: pod for (on, uid), pod in reader.pods.items() if on == node}, reader.overtaken)


class _PodsReader:
    """Reads the records about the pods of some nodes.

    Attributes:
        pods: all that were ever seen, by node and UID.
        overtaken: offsets of records that were overtaken.
    """

    def __init__(self, taken: Collection[int]) -> None:
        self.pods: dict[_Place, PodHistory] = {}
        self.overtaken: list[int] = []
        self._taken = taken
        self._holders: dict[tuple[str, str], _Place] = {}  # by namespace and name
        self._there: dict[_Place, tuple[str, str]] = {}  # the same, by node and UID
        self._dead: dict[_Place, ObjectVersion] = {}

    def end_unlisted(self, statement: Statement) -> None:
        """End the pods of a node that are missing from a listing, each as a `DELETED` would."""
        for place in [place for place in self._there if place[0] == statement.node and statement.ends(place[1])]:
            self._end_known(place, statement)

    def end(self, statement: Statement) -> None:
        """Process a `DELETED`."""
        uid, seen = _identity(statement)
        place = statement.node, uid
        if place in self._there:
            self._end_known(place, statement)
        else:
            self._dead[place] = max(seen, self._dead.get(place, NO_VERSION))

    def _end_known(self, place: _Place, statement: Statement) -> None:
        if not self._is_outdated(place, statement):
            self._leave(place, statement, "PodGone")

    def _leave(self, place: _Place, statement: Statement, why: str) -> None:
        states, record = self.pods[place].states, statement.record
        owner = states[-1].owner
        states.append(HeardPod(append_at_us=record.append_at_us, at_us=statement.at_us, absent=why, owner=owner))
        del self._holders[self._there.pop(place)]
        self._dead[place] = statement.version

    def see(self, statement: Statement) -> None:
        """Process the state of a pod."""
        uid, seen = _identity(statement)
        meta = statement.content["metadata"]
        name, place = (meta["namespace"], meta["name"]), (statement.node, uid)
        holder, is_there = self._holders.get(name), place in self._there
        if holder is not None and holder[0] != statement.node and not is_there:
            # The name was given to a pod on this node since, even if this pod is known to be gone again.
            if self._is_outdated(holder, statement):
                return
            self._leave(holder, statement, "PodReplaced")
            holder = None
        if seen <= self._dead.get(place, NO_VERSION):
            return
        if is_there and self._is_outdated(place, statement):
            return
        if holder is not None and holder != place:
            if self._is_outdated(holder, statement):
                return  # of an earlier pod of that name
            self._leave(holder, statement, "PodReplaced")
        self._holders[name], self._there[place] = place, name
        pod = self.pods.setdefault(place, PodHistory(namespace=name[0], name=name[1]))
        is_restored = statement.epoch > pod.version[0]
        pod.version = seen
        _see(pod, statement, is_restored=is_restored)

    def _is_outdated(self, place: _Place, statement: Statement) -> bool:
        """Tell whether a newer version of this pod outdates a record; remember the record if it was overtaken."""
        pod = self.pods[place]
        seen, newest, kept = statement.version, pod.version, pod.kept_version
        if seen > newest or (statement.is_deleted and seen == newest):
            return False
        if seen < kept or (seen == kept and not statement.is_deleted):
            return True
        if statement.record.offset not in self.overtaken:  # a listing may be overtaken for several pods
            self.overtaken.append(statement.record.offset)
        return statement.record.offset not in self._taken


def _see(pod: PodHistory, statement: Statement, *, is_restored: bool) -> None:
    meta, before = statement.content["metadata"], pod.states[-1]
    exempt = set()
    if meta.get("deletionTimestamp"):
        exempt.add("PodTerminating")
    if (statement.content.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        exempt.add("PodFinished")
    if _MIRROR in (meta.get("annotations") or {}):
        exempt.add("PodMirror")
    in_spec = tuple((statement.content.get("spec") or {}).get("tolerations") or ())
    tolerations = in_force(in_spec, (meta.get("annotations") or {}).get(ANNOTATION))
    is_new, is_edited = bool(before.absent), tolerations != before.tolerations
    is_freed = bool(before.exempt) and not exempt
    after = HeardPod(
        append_at_us=statement.record.append_at_us,
        at_us=statement.at_us,
        absent="",
        since_us=statement.at_us if is_new else before.since_us,
        tolerations=tolerations,
        in_spec=in_spec,
        tolerations_since_us=statement.at_us if is_new or is_edited or is_freed else before.tolerations_since_us,
        exempt=frozenset(exempt),
        is_restored=is_restored,
        owner=_controller(meta),
    )
    if not after.counts_as(before):
        pod.states.append(after)
        pod.kept_version = pod.version


def _controller(meta: Json) -> PodOwner | None:
    owners = (one for one in meta.get("ownerReferences") or () if one.get("controller"))
    return next(((meta["namespace"], one["kind"], one["name"]) for one in owners), None)
