"""From what records say to the states of a node and of each of its pods, one after the other (semantics.md 12.3, 12.4).

A history has only the states that differ from the one before in something that counts. Where one record does two
things (another UID under a known name: the old one is gone, the new one has come) it has two states.

Resource versions are numbers, and a deleted UID is remembered for good: runs are shorter than that memory.

A version of a pod that changes nothing that counts is promised to be remembered only as long as no worker ends
(docs/guarantees.md, "What is not promised"). What came late behind such a version is `overtaken`: it is outdated, and
after the end of a worker it may be taken for new.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace

from evictstream.streams.oracle.limits import OracleLimits
from evictstream.streams.oracle.reading import Json, Said, to_us

HEALTH = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
MIRROR = "kubernetes.io/config.mirror"


@dataclass(frozen=True, slots=True, kw_only=True)
class HeardTaint:
    """A `NoExecute` taint.

    Attributes:
        since_us: since when this instance of it is there.
        value_since_us: since when it has its value.
        added_us: the last `timeAdded` that it was seen with.
    """

    key: str
    value: str
    since_us: int
    value_since_us: int
    added_us: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeardNode:
    """A node from one record on. `uid` is None while it is not there."""

    append_at_us: int = 0
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
        tolerations_since_us: since when it has its tolerations.
        exempt: why it is left alone though it is there.
    """

    append_at_us: int = 0
    at_us: int = 0
    absent: str = "PodGone"
    since_us: int = 0
    tolerations: tuple[Json, ...] = ()
    tolerations_since_us: int = 0
    exempt: frozenset[str] = frozenset()

    def counts_as(self, other: HeardPod) -> bool:
        """Tell whether nothing that counts differs."""
        return replace(other, append_at_us=self.append_at_us, at_us=self.at_us) == self


@dataclass(slots=True, kw_only=True)
class PodHistory:
    """One pod, which is one UID.

    Attributes:
        version: the newest one.
        kept_version: the newest one that changed something: it is in the log, and no crash forgets it.
    """

    namespace: str
    name: str
    states: list[HeardPod] = field(default_factory=lambda: [HeardPod()])
    version: int = 0
    kept_version: int = 0


@dataclass(slots=True)
class PodHistories:
    """All pods that were ever seen on one node, by UID, and the offsets of records that were overtaken."""

    pods: dict[str, PodHistory] = field(default_factory=dict)
    overtaken: list[int] = field(default_factory=list)


def node_history(said: Iterable[Said], limits: OracleLimits) -> list[HeardNode]:
    """List the states of one node; the first one is "not there"."""
    states = [HeardNode()]
    dead: dict[str, int] = {}
    version = 0
    gap_us: int | None = None
    for one in said:
        uid, seen = _identity(one)
        now = states[-1]
        if one.is_deleted:
            if now.uid == uid and seen >= version:
                states.append(_node_gone(one))
                gap_us = None
                dead[uid] = seen
            elif now.uid != uid:
                dead[uid] = max(seen, dead.get(uid, 0))
            continue
        if seen <= dead.get(uid, 0) or (now.uid is not None and seen <= version):
            continue
        if now.uid is not None and now.uid != uid:
            dead[now.uid] = seen
            now = _node_gone(one)
            states.append(now)
            gap_us = None
        version = seen
        taints = _taints(now.taints, one)
        outage_us, gap_us = _outage(now.outage_us, gap_us, taints, one, limits)
        after = HeardNode(
            append_at_us=one.record.append_at_us, at_us=one.at_us, uid=uid, taints=taints, outage_us=outage_us
        )
        if (after.uid, after.taints, after.outage_us) != (now.uid, now.taints, now.outage_us):
            states.append(after)
    return states


def _node_gone(one: Said) -> HeardNode:
    return HeardNode(append_at_us=one.record.append_at_us, at_us=one.at_us)


def _identity(one: Said) -> tuple[str, int]:
    return one.content["metadata"]["uid"], int(one.content["metadata"]["resourceVersion"])


def _taints(known: tuple[HeardTaint, ...], one: Said) -> tuple[HeardTaint, ...]:
    """Carry windows over: same key, same taint; a later `timeAdded` tells of a removal that was missed."""
    found = []
    for taint in (one.content.get("spec") or {}).get("taints") or ():
        if taint["effect"] != "NoExecute":
            continue
        key, added_us = taint["key"], to_us(taint["timeAdded"]) if taint.get("timeAdded") else None
        value = taint.get("value") or ""
        since_us = value_since_us = one.at_us
        before = next((old for old in known if old.key == key), None)
        if before is not None and not (added_us and before.added_us and added_us > before.added_us):
            since_us, added_us = before.since_us, added_us or before.added_us
            value_since_us = before.value_since_us if value == before.value else one.at_us
        found.append(
            HeardTaint(key=key, value=value, since_us=since_us, value_since_us=value_since_us, added_us=added_us)
        )
    return tuple(found)


def _outage(
    outage_us: int | None, gap_us: int | None, taints: tuple[HeardTaint, ...], one: Said, limits: OracleLimits
) -> tuple[int | None, int | None]:
    """Give the start of the outage that the node is in, and since when that one is in a gap."""
    is_too_long = gap_us is not None and one.at_us - gap_us > limits.outage_gap_us
    if any(taint.key in HEALTH for taint in taints):
        return (one.at_us if outage_us is None or is_too_long else outage_us), None
    conditions = (one.content.get("status") or {}).get("conditions") or ()
    ready = next((condition["status"] for condition in conditions if condition["type"] == "Ready"), None)
    if outage_us is None or is_too_long or ready is None or ready == "True":
        return None, None
    return outage_us, one.at_us if gap_us is None else gap_us


def pod_histories(said: Iterable[Said], taken: Collection[int] = ()) -> PodHistories:
    """List the states of each pod; the first state is "not there".

    Args:
        said: the records about one node's pods, by offset.
        taken: offsets of overtaken records that were taken for new.
    """
    found = PodHistories()
    pods = found.pods
    holders: dict[tuple[str, str], str] = {}
    dead: dict[str, int] = {}
    for one in said:
        uid, seen = _identity(one)
        meta = one.content["metadata"]
        name = (meta["namespace"], meta["name"])
        known = pods.get(uid)
        is_there = known is not None and not known.states[-1].absent
        if one.is_deleted:
            if known is not None and is_there and not _is_outdated(found, known, one, taken):
                _leave(known, one, "PodGone")
                holders.pop((known.namespace, known.name), None)
                dead[uid] = seen
            elif not is_there:
                dead[uid] = max(seen, dead.get(uid, 0))
            continue
        if seen <= dead.get(uid, 0) or (known is not None and is_there and _is_outdated(found, known, one, taken)):
            continue
        holder = holders.get(name)
        if holder is not None and holder != uid:
            if _is_outdated(found, pods[holder], one, taken):
                continue  # of an earlier pod of that name
            _leave(pods[holder], one, "PodReplaced")
            dead[holder] = seen
        holders[name] = uid
        known = pods.setdefault(uid, PodHistory(namespace=name[0], name=name[1]))
        known.version = seen
        _see(known, one)
    return found


def _is_outdated(found: PodHistories, known: PodHistory, one: Said, taken: Collection[int]) -> bool:
    """Tell whether a record is outdated by what is known under its UID or name; notes it if it was overtaken."""
    seen, newest, kept = _identity(one)[1], known.version, known.kept_version
    if seen > newest or (one.is_deleted and seen == newest):
        return False
    if seen < kept or (seen == kept and not one.is_deleted):
        return True
    found.overtaken.append(one.record.offset)
    return one.record.offset not in taken


def _leave(pod: PodHistory, one: Said, why: str) -> None:
    pod.states.append(HeardPod(append_at_us=one.record.append_at_us, at_us=one.at_us, absent=why))


def _see(pod: PodHistory, one: Said) -> None:
    meta, before = one.content["metadata"], pod.states[-1]
    exempt = set()
    if meta.get("deletionTimestamp"):
        exempt.add("PodTerminating")
    if (one.content.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        exempt.add("PodFinished")
    if MIRROR in (meta.get("annotations") or {}):
        exempt.add("PodMirror")
    tolerations = tuple((one.content.get("spec") or {}).get("tolerations") or ())
    is_new, is_edited = bool(before.absent), tolerations != before.tolerations
    after = HeardPod(
        append_at_us=one.record.append_at_us,
        at_us=one.at_us,
        absent="",
        since_us=one.at_us if is_new else before.since_us,
        tolerations=tolerations,
        tolerations_since_us=one.at_us if is_new or is_edited else before.tolerations_since_us,
        exempt=frozenset(exempt),
    )
    if not after.counts_as(before):
        pod.states.append(after)
        pod.kept_version = pod.version
