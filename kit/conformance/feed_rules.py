"""What has to hold of a feed, by docs/messages.md; each rule is a function of what was recorded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Final

from evictstream.kit.conformance.command_writer import partition_of
from evictstream.kit.conformance.feed_evidence import CHANGES, QUIET_SECONDS, FeedEvidence, FeedRecord, KnownObjects
from evictstream.kit.conformance.findings import Finding, broken, held, not_shown, rules_of, unless
from evictstream.kit.conformance.playground import CLUSTER

LONGEST_VALUE_BYTES: Final = 1_572_864
LONGEST_LISTING_BYTES: Final = 262_144

PACE_SECONDS: Final = 20.0
"""Between heartbeats: one is due each 10 s."""

Judge = Callable[[FeedEvidence], Finding]

_WHOLE_KEY: Final = f"{CLUSTER}/".encode()
_KINDS: Final = ("Node", "Pod")
_TYPES: Final = CHANGES | {"BOOKMARK", "LISTED", "HEARTBEAT"}


def _place(record: FeedRecord) -> str:
    return f"{record.kind.lower()}s, partition {record.partition}, offset {record.offset}"


def _readable(evidence: FeedEvidence) -> Finding:
    wrong = [f"{_place(one)}: {one.problem}" for one in evidence.records if one.problem]
    return unless(wrong, f"{len(evidence.records)} records") if evidence.records else not_shown("no records")


def _kind(evidence: FeedEvidence) -> Finding:
    changes = [one for one in evidence.records if one.type in CHANGES]
    wrong = []
    for one in changes:
        found = one.event.get("object") or {}
        if found.get("kind") != one.kind or found.get("apiVersion", "v1") != "v1":
            wrong.append(f"{_place(one)}: {one.type} with kind {found.get('kind')!r}")
    return unless(wrong, f"{len(changes)} changes") if changes else not_shown("no changes")


def _keys(evidence: FeedEvidence) -> Finding:
    wrong = []
    for one in evidence.records:
        if one.problem or one.type == "BOOKMARK":
            continue
        if one.event.get("cluster") != CLUSTER:
            wrong.append(f"{_place(one)}: cluster {one.event.get('cluster')!r}")
        elif one.is_change:
            key = f"{CLUSTER}/{one.used().node}".encode()
            if one.key != key or one.partition != partition_of(key, evidence.partitions):
                wrong.append(f"{_place(one)}: key {one.key!r} for a {one.kind.lower()} of {one.used().node!r}")
        elif one.key != _WHOLE_KEY:
            wrong.append(f"{_place(one)}: {one.type} has the key {one.key!r}")
    return unless(wrong, f"{len(evidence.records)} records") if evidence.records else not_shown("no records")


def _says(situation: str, seen: str) -> Judge:
    """Make a rule: after a situation the topics say what the cluster holds."""

    def judge(evidence: FeedEvidence) -> Finding:
        snapshot = evidence.snapshots.get(situation)
        if snapshot is None:
            return not_shown("not played")
        known = KnownObjects(evidence.records[: snapshot.records]).objects
        wrong = []
        for uid, found in snapshot.held.items():
            if uid not in known:
                wrong.append(f"{found.kind} {found.name} is missing")
            elif known[uid] != found:
                wrong.append(
                    f"{found.kind} {found.name} on {known[uid].node}: {known[uid].content}, is {found.content}"
                )
        wrong += [f"{known[uid].kind} {known[uid].name} is gone" for uid in known if uid not in snapshot.held]
        return unless(wrong, f"{len(snapshot.held)} objects; {seen}")

    return judge


def _listed(evidence: FeedEvidence) -> Finding:
    if not evidence.of("LISTED"):
        return not_shown("no LISTED; a feed may remember what it has written instead")
    there = evidence.snapshots["listing"].held
    for kind in _KINDS:
        found = evidence.of("LISTED", kind)
        version = found[0].version if found else (0, 0)
        named = set[str]()
        for partition in range(evidence.partitions):
            ranges = [one for one in found if one.partition == partition and one.version == version]
            problem = _gap(ranges)
            if problem:
                return broken(f"{kind.lower()}s, partition {partition}: {problem}")
            uids = {uid for one in ranges for known in one.event["listing"]["uids"].values() for uid in known}
            late = _late(evidence, kind, partition, uids, ranges[0].offset)
            if late:
                return broken(f"{late} of {kind.lower()}s were ADDED only after LISTED, in partition {partition}")
            named |= uids
        wanted = {uid for uid, one in there.items() if one.kind == kind}
        if named != wanted:
            return broken(f"{kind.lower()}s: {len(wanted - named)} are not named, {len(named - wanted)} are not there")
    return held(f"{len(evidence.of('LISTED'))} records, in each of {evidence.partitions} partitions of both topics")


def _gap(ranges: list[FeedRecord]) -> str:
    """Say what part of the names, or of the UIDs of a range of names, the ranges of a listing leave out."""
    by_names: dict[tuple[str, str | None], dict[str, str | None]] = {}
    for one in ranges:
        found = one.event["listing"]
        by_uids = by_names.setdefault((found.get("after", ""), found.get("through")), {})
        by_uids[found.get("uidAfter", "")] = found.get("uidThrough")
    problems = [_hole(dict(list(by_names)), "names"), *(_hole(by_uids, "UIDs") for by_uids in by_names.values())]
    return next(filter(None, problems), "")


def _hole(through: Mapping[str, str | None], what: str) -> str:
    """Say where ranges, given as their ends by their begins, do not adjoin."""
    at: str | None = ""
    for _ in range(len(through) + 1):
        if at is None:
            return ""
        if at not in through:
            return f"nothing is said of {what} behind {at!r}" if through else "no LISTED"
        at = through[at]
    return f"ranges of {what} do not end"


def _late(evidence: FeedEvidence, kind: str, partition: int, uids: set[str], offset: int) -> int:
    """Count what a listing names and no record before it has told of."""
    told = {
        one.uid
        for one in evidence.records
        if one.is_change and one.kind == kind and one.partition == partition and one.offset < offset
    }
    return len(uids - told)


def _heartbeats(evidence: FeedEvidence) -> Finding:
    found = evidence.of("HEARTBEAT")
    if not found:
        return not_shown("no heartbeats; a feed may do without")
    wrong = []
    for kind in _KINDS:
        for partition in range(evidence.partitions):
            here = evidence.of("HEARTBEAT", kind, partition)
            listed = evidence.of("LISTED", kind, partition)
            place = f"{kind.lower()}s, partition {partition}"
            if not here:
                wrong.append(f"none in {place}")
            elif listed and here[0].offset < listed[0].offset:
                wrong.append(f"before the listing was told, in {place}")
            elif "listedAt" not in here[0].event:
                wrong.append(f"without listedAt, in {place}")
    return unless(wrong, f"{len(found)}, in each of {evidence.partitions} partitions of both topics")


def _pace(evidence: FeedEvidence) -> Finding:
    until = evidence.silent_at or evidence.ended_at
    times = [one.at for one in evidence.of("HEARTBEAT", "Pod", 0) if one.at < until]
    gaps = [after - before for before, after in pairwise(times) if not _is_interrupted(evidence, before, after)]
    if not gaps:
        return not_shown("fewer than two heartbeats without an interruption")
    return (held if max(gaps) <= PACE_SECONDS else broken)(f"at most {max(gaps):.1f} s between them")


def _is_interrupted(evidence: FeedEvidence, before: float, after: float) -> bool:
    """Whether the feed was killed, or the cluster rebuilt, between two moments."""
    return any(before < at < after for at in (*(evidence.away or ()), evidence.rebuilt_at or 0.0))


def _silence(evidence: FeedEvidence) -> Finding:
    if evidence.silent_at is None:
        return not_shown("no heartbeats, or not played")
    times = [one.event_at - evidence.silent_at for one in evidence.of("HEARTBEAT", "Pod")]
    last = max((one for one in times if one > 0), default=0.0)
    if last > evidence.silent_seconds:
        return broken(f"heartbeats on pods went on for {last:.0f} s")
    watched = evidence.ended_at - evidence.silent_at
    if watched < evidence.silent_seconds and watched - last < QUIET_SECONDS:
        return not_shown("the run ended too early")
    return held(f"the last one on pods came {last:.0f} s after the watch had fallen silent")


def _no_errors(evidence: FeedEvidence) -> Finding:
    wrong = [
        f"{_place(one)}: {one.type}"
        for one in evidence.records
        if one.type not in _TYPES or (one.event.get("object") or {}).get("kind") == "Status"
    ]
    return unless(wrong, "none") if evidence.records else not_shown("no records")


def _deleted(evidence: FeedEvidence) -> Finding:
    known: dict[str, tuple[int, int]] = {}
    wrong, count = [], 0
    for one in evidence.records:
        if not one.is_change:
            continue
        if one.type == "DELETED":
            count += 1
            if one.version < known.get(one.uid, (0, 0)):
                wrong.append(f"{one.used().name}: version {one.version[1]}, after {known[one.uid][1]}")
        known[one.uid] = max(one.version, known.get(one.uid, (0, 0)))
    return unless(wrong, f"{count} DELETED") if count else not_shown("no DELETED")


def _order(evidence: FeedEvidence) -> Finding:
    known: dict[tuple[str, int], tuple[int, int]] = {}
    wrong, count = [], 0
    for one in evidence.records:
        if not one.is_change:
            continue
        count += 1
        which = (one.uid, one.partition)
        if one.version < known.get(which, (0, 0)):
            wrong.append(f"{one.used().name}: version {one.version[1]} after {known[which][1]}")
        known[which] = max(one.version, known.get(which, (0, 0)))
    return unless(wrong, f"{count} changes") if count else not_shown("no changes")


def _epoch(evidence: FeedEvidence) -> Finding:
    if evidence.rebuilt_at is None:
        return not_shown("not played")
    before = max((one.epoch for one in evidence.records if one.at < evidence.rebuilt_at), default=0)
    found = _says("rebuilt", "")(evidence)
    if max(one.epoch for one in evidence.records) <= before:
        return broken(f"it is {before} as before; {found.seen}")
    for kind in _KINDS:
        for partition in range(evidence.partitions):
            here = [one for one in evidence.records if (one.kind, one.partition) == (kind, partition)]
            later = [one for one in here if one.epoch > before]
            if not later:
                return broken(f"nothing of the new epoch in {kind.lower()}s, partition {partition}")
            old = [one for one in here if one.offset > later[0].offset and one.epoch <= before]
            if old:
                return broken(f"{_place(old[0])}: of the old epoch, behind one of the new")
    return found._replace(seen=f"from {before} to {before + 1}; {found.seen}".removesuffix("; "))


def _unbound(evidence: FeedEvidence) -> Finding:
    wrong = [
        f"{_place(one)}: key {one.key!r}"
        for one in evidence.records
        if one.is_change and one.uid in evidence.unbound and one.key != _WHOLE_KEY
    ]
    return unless(wrong, "none under a node's key") if evidence.records else not_shown("no records")


def _fields(evidence: FeedEvidence) -> Finding:
    wrong, count = [], 0
    for one in evidence.records:
        if not one.is_change or one.type == "DELETED":
            continue
        states = evidence.states.get((one.uid, one.version[1]), ())
        count += bool(states)
        if states and one.used() not in states:
            wrong.append(f"{one.used().name}: {one.used().content}")
    return unless(wrong, f"{count} changes are as the API server had them") if count else not_shown("no changes")


def _not_cached(evidence: FeedEvidence) -> Finding:
    count = evidence.cached_lists
    return broken(f"{count} lists with resourceVersion=0") if count else held("no list with resourceVersion=0")


def _sizes(evidence: FeedEvidence) -> Finding:
    if not evidence.records:
        return not_shown("no records")
    listing = max((one.size for one in evidence.of("LISTED")), default=0)
    value = max(one.size for one in evidence.records)
    is_right = value <= LONGEST_VALUE_BYTES and listing <= LONGEST_LISTING_BYTES
    return (held if is_right else broken)(f"at most {value} bytes, a LISTED {listing}")


def _cluster_uid(evidence: FeedEvidence) -> Finding:
    signals = evidence.of("LISTED") + evidence.of("HEARTBEAT")
    wrong = [
        f"{_place(one)}: {one.type} with {one.event.get('clusterUid')!r}"
        for one in signals
        if one.event.get("clusterUid") != evidence.cluster_uid
    ]
    return unless(wrong, f"{len(signals)} LISTED and HEARTBEAT") if signals else not_shown("neither")


_REQUIRED: Final[tuple[tuple[str, str, Judge], ...]] = (
    ("readable", "Every value is a watch event by its schema", _readable),
    ("kind", "Every object has its kind, also if it comes from a list", _kind),
    ("keys", "Key and partition are those of the node, by murmur2", _keys),
    ("listing", "The first records are all nodes and bound pods", _says("listing", "all pages of the list")),
    ("listed", "LISTED goes to every partition, after the objects, and names them all", _listed),
    ("heartbeats", "Heartbeats go to every partition of both topics, after LISTED, with listedAt", _heartbeats),
    ("pace", "A heartbeat each 10 s", _pace),
    ("silence", "Heartbeats end within 60 s of a dead watch", _silence),
    ("changes", "Changes are written", _says("changes", "added, changed, bound, moved, deleted")),
    (
        "cut",
        "A watch cut in the middle of a line: no half line is forwarded, no change is lost",
        _says("cut", "after it"),
    ),
    ("half-line", "A watch that ends in order in the middle of a line: the same", _says("half-line", "after it")),
    ("garbage", "An unreadable line: the same", _says("garbage", "after it")),
    ("error-event", "ERROR ends the watch, and nothing is lost", _says("error-event", "after it")),
    ("no-errors", "ERROR events are not forwarded", _no_errors),
    ("forgotten", "410: lists again, and reports vanished objects", _says("forgotten", "after 410")),
    ("away", "Objects that vanished while it was down are reported", _says("away", "after the kill")),
    ("deleted-version", "The version of DELETED is not lower than the last one of the object", _deleted),
    ("order", "Within an epoch, versions of an object never decrease", _order),
    ("epoch", "Decreasing versions begin an epoch, and every later record names it", _epoch),
    ("unbound", "Pods without a node do not use a node's key", _unbound),
    ("fields", "The fields in use match the API server", _fields),
    ("not-cached", "Lists ask for the newest state, not for a cached one", _not_cached),
    ("sizes", "Values stay under 1.5 MiB, LISTED under 256 KiB", _sizes),
    ("stays", "It does not exit by itself", lambda evidence: evidence.process.stays()),
)

_RECOMMENDED: Final[tuple[tuple[str, str, Judge], ...]] = (
    ("cluster-uid", "LISTED and HEARTBEAT name the UID of kube-system", _cluster_uid),
    ("stops", "SIGTERM stops it", lambda evidence: evidence.process.stops()),
)

FEED_RULES: Final = rules_of(_REQUIRED, _RECOMMENDED)
"""In the order in which they are shown."""
