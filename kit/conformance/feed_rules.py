"""The rules for feeds, by docs/messages.md; each is a function of the recorded evidence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Final

from evictstream.kit.conformance.command_writer import partition_of_key
from evictstream.kit.conformance.feed_evidence import CHANGES, QUIET_SECONDS, FeedEvidence, FeedRecord, TopicObjects
from evictstream.kit.conformance.findings import Finding, broken, conformance_rules, held, not_shown, unless
from evictstream.kit.conformance.playground import CLUSTER

LONGEST_VALUE_BYTES: Final = 1_572_864
LONGEST_LISTING_BYTES: Final = 262_144

PACE_SECONDS: Final = 20.0
"""Between heartbeats: record is due each 10 s."""

_Judge = Callable[[FeedEvidence], Finding]

_KEY: Final = CLUSTER.encode()
_KINDS: Final = ("Node", "Pod")
_TYPES: Final = CHANGES | {"BOOKMARK", "LISTED", "HEARTBEAT"}


def _place(record: FeedRecord) -> str:
    return f"{record.kind.lower()}s, partition {record.partition}, offset {record.offset}"


def _readable(evidence: FeedEvidence) -> Finding:
    wrong = [f"{_place(record)}: {record.problem}" for record in evidence.records if record.problem]
    return unless(wrong, f"{len(evidence.records)} records") if evidence.records else not_shown("no records")


def _kind(evidence: FeedEvidence) -> Finding:
    changes = [record for record in evidence.records if record.type in CHANGES]
    wrong = []
    for record in changes:
        content = record.event.get("object") or {}
        if content.get("kind") != record.kind or content.get("apiVersion", "v1") != "v1":
            wrong.append(f"{_place(record)}: {record.type} with kind {content.get('kind')!r}")
    return unless(wrong, f"{len(changes)} changes") if changes else not_shown("no changes")


def _keys(evidence: FeedEvidence) -> Finding:
    partition = partition_of_key(_KEY, evidence.partitions)
    wrong = []
    for one in evidence.records:
        if one.problem:
            continue
        if one.event.get("cluster") != CLUSTER:
            wrong.append(f"{_place(one)}: cluster {one.event.get('cluster')!r}")
        elif one.key != _KEY:
            wrong.append(f"{_place(one)}: {one.type} has the key {one.key!r}")
        elif one.partition != partition:
            wrong.append(f"{_place(one)}: {one.type}, not in partition {partition}")
    return unless(wrong, f"{len(evidence.records)} records") if evidence.records else not_shown("no records")


def _says(situation: str, seen: str) -> _Judge:
    """Make a rule: after a situation the topics show the state of the cluster."""

    def judge(evidence: FeedEvidence) -> Finding:
        snapshot = evidence.snapshots.get(situation)
        if snapshot is None:
            return not_shown("not played")
        written = TopicObjects(evidence.records[: snapshot.records]).objects
        wrong = []
        for uid, actual in snapshot.objects.items():
            if uid not in written:
                wrong.append(f"{actual.kind} {actual.name} is missing")
            elif written[uid] != actual:
                wrong.append(
                    f"{actual.kind} {actual.name} on {written[uid].node}: {written[uid].content}, is {actual.content}"
                )
        wrong += [f"{written[uid].kind} {written[uid].name} is gone" for uid in written if uid not in snapshot.objects]
        return unless(wrong, f"{len(snapshot.objects)} objects; {seen}")

    return judge


def _listed(evidence: FeedEvidence) -> Finding:
    if not evidence.of("LISTED"):
        return not_shown("no LISTED; a feed may remember what it has written instead")
    there = evidence.snapshots["listing"].objects
    for kind in _KINDS:
        records = evidence.of("LISTED", kind)
        ranges = [one for one in records if one.version == records[0].version]
        problem = _gap(ranges)
        if problem:
            return broken(f"{kind.lower()}s: {problem}")
        named = {uid for one in ranges for uids in one.event["listing"]["uids"].values() for uid in uids}
        late = _late(evidence, ranges[0], named)
        if late:
            return broken(f"{late} of {kind.lower()}s were ADDED only after LISTED")
        wanted = {uid for uid, one in there.items() if one.kind == kind}
        if named != wanted:
            return broken(f"{kind.lower()}s: {len(wanted - named)} are not named, {len(named - wanted)} are not there")
    return held(f"{len(evidence.of('LISTED'))} records, on both topics")


def _gap(ranges: list[FeedRecord]) -> str:
    """Describe the first gap in the names of a listing, or in the UIDs of a range of names; empty if there is none."""
    by_names: dict[tuple[str, str | None], dict[str, str | None]] = {}
    for record in ranges:
        listing = record.event["listing"]
        by_uids = by_names.setdefault((listing.get("after", ""), listing.get("through")), {})
        by_uids[listing.get("uidAfter", "")] = listing.get("uidThrough")
    problems = [_hole(dict(list(by_names)), "names"), *(_hole(by_uids, "UIDs") for by_uids in by_names.values())]
    return next(filter(None, problems), "")


def _hole(through: Mapping[str, str | None], what: str) -> str:
    """Describe the first gap between ranges, given as their ends by their starts."""
    at: str | None = ""
    for _ in range(len(through) + 1):
        if at is None:
            return ""
        if at not in through:
            return f"no {what} after {at!r}" if through else "no LISTED"
        at = through[at]
    return f"ranges of {what} do not end"


def _late(evidence: FeedEvidence, listed: FeedRecord, uids: set[str]) -> int:
    """Count what a listing names and no record before it has told of."""
    written = {one.uid for one in evidence.before(listed) if one.is_change and one.kind == listed.kind}
    return len(uids - written)


def _heartbeats(evidence: FeedEvidence) -> Finding:
    heartbeats = evidence.of("HEARTBEAT")
    if not heartbeats:
        return not_shown("no heartbeats; a feed may do without")
    wrong = []
    for kind in _KINDS:
        here = evidence.of("HEARTBEAT", kind)
        listed = evidence.of("LISTED", kind)
        if not here:
            wrong.append(f"none of {kind.lower()}s")
        elif listed and listed[0] not in evidence.before(here[0]):
            wrong.append(f"before the listing of {kind.lower()}s was told")
        elif "listedAt" not in here[0].event:
            wrong.append(f"of {kind.lower()}s, without listedAt")
    return unless(wrong, f"{len(heartbeats)}, on both topics")


def _pace(evidence: FeedEvidence) -> Finding:
    until = evidence.silent_at or evidence.ended_at
    times = [one.at for one in evidence.of("HEARTBEAT", "Pod") if one.at < until]
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
    times = [record.event_at - evidence.silent_at for record in evidence.of("HEARTBEAT", "Pod")]
    last = max((after_s for after_s in times if after_s > 0), default=0.0)
    if last > evidence.silent_seconds:
        return broken(f"heartbeats on pods continued for {last:.0f} s")
    watched = evidence.ended_at - evidence.silent_at
    if watched < evidence.silent_seconds and watched - last < QUIET_SECONDS:
        return not_shown("the run ended too early")
    return held(f"the last record on pods came {last:.0f} s after the watch had fallen silent")


def _no_errors(evidence: FeedEvidence) -> Finding:
    wrong = [
        f"{_place(record)}: {record.type}"
        for record in evidence.records
        if record.type not in _TYPES or (record.event.get("object") or {}).get("kind") == "Status"
    ]
    return unless(wrong, "none") if evidence.records else not_shown("no records")


def _deleted(evidence: FeedEvidence) -> Finding:
    newest: dict[str, tuple[int, int]] = {}
    wrong, count = [], 0
    for record in evidence.records:
        if not record.is_change:
            continue
        if record.type == "DELETED":
            count += 1
            if record.version < newest.get(record.uid, (0, 0)):
                wrong.append(f"{record.used().name}: version {record.version[1]}, after {newest[record.uid][1]}")
        newest[record.uid] = max(record.version, newest.get(record.uid, (0, 0)))
    return unless(wrong, f"{count} DELETED") if count else not_shown("no DELETED")


def _order(evidence: FeedEvidence) -> Finding:
    newest: dict[str, tuple[int, int]] = {}
    wrong, count = [], 0
    for record in evidence.records:
        if not record.is_change:
            continue
        count += 1
        if record.version < newest.get(record.uid, (0, 0)):
            wrong.append(f"{record.used().name}: version {record.version[1]} after {newest[record.uid][1]}")
        newest[record.uid] = max(record.version, newest.get(record.uid, (0, 0)))
    return unless(wrong, f"{count} changes") if count else not_shown("no changes")


def _epoch(evidence: FeedEvidence) -> Finding:
    if evidence.rebuilt_at is None:
        return not_shown("not played")
    before = max((record.epoch for record in evidence.records if record.at < evidence.rebuilt_at), default=0)
    contents = _says("rebuilt", "")(evidence)
    if max(record.epoch for record in evidence.records) <= before:
        return broken(f"it is {before} as before; {contents.seen}")
    for kind in _KINDS:
        of_kind = [one for one in evidence.records if one.kind == kind]
        later = next((number for number, one in enumerate(of_kind) if one.epoch > before), None)
        if later is None:
            return broken(f"nothing of the new epoch on {kind.lower()}s")
        old = [one for one in of_kind[later:] if one.epoch <= before]
        if old:
            return broken(f"{_place(old[0])}: of the old epoch, behind one of the new")
    return contents._replace(seen=f"from {before} to {before + 1}; {contents.seen}".removesuffix("; "))


def _fields(evidence: FeedEvidence) -> Finding:
    wrong, count = [], 0
    for record in evidence.records:
        if not record.is_change or record.type == "DELETED":
            continue
        states = evidence.states.get((record.uid, record.version[1]), ())
        count += bool(states)
        if states and record.used() not in states:
            wrong.append(f"{record.used().name}: {record.used().content}")
    return unless(wrong, f"{count} changes are as the API server had them") if count else not_shown("no changes")


def _not_cached(evidence: FeedEvidence) -> Finding:
    count = evidence.cached_lists
    return broken(f"{count} lists with resourceVersion=0") if count else held("no list with resourceVersion=0")


def _sizes(evidence: FeedEvidence) -> Finding:
    if not evidence.records:
        return not_shown("no records")
    listing = max((record.size for record in evidence.of("LISTED")), default=0)
    value = max(record.size for record in evidence.records)
    is_right = value <= LONGEST_VALUE_BYTES and listing <= LONGEST_LISTING_BYTES
    return (held if is_right else broken)(f"at most {value} bytes, a LISTED {listing}")


def _cluster_uid(evidence: FeedEvidence) -> Finding:
    signals = evidence.of("LISTED") + evidence.of("HEARTBEAT")
    wrong = [
        f"{_place(record)}: {record.type} with {record.event.get('clusterUid')!r}"
        for record in signals
        if record.event.get("clusterUid") != evidence.cluster_uid
    ]
    return unless(wrong, f"{len(signals)} LISTED and HEARTBEAT") if signals else not_shown("neither")


_REQUIRED: Final[tuple[tuple[str, str, _Judge], ...]] = (
    ("readable", "Every value is a watch event by its schema", _readable),
    ("kind", "Every object has its kind, also if it comes from a list", _kind),
    ("keys", "Key and partition are those of the cluster, by murmur2", _keys),
    ("listing", "The first records are all nodes and bound pods", _says("listing", "all pages of the list")),
    ("listed", "LISTED comes after the objects, and names them all", _listed),
    ("heartbeats", "Heartbeats go to both topics, after LISTED, with listedAt", _heartbeats),
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
    ("fields", "The fields in use match the API server", _fields),
    ("not-cached", "Lists ask for the newest state, not for a cached one", _not_cached),
    ("sizes", "Values stay under 1.5 MiB, LISTED under 256 KiB", _sizes),
    ("stays", "It does not exit by itself", lambda evidence: evidence.process.stays()),
)

_RECOMMENDED: Final[tuple[tuple[str, str, _Judge], ...]] = (
    ("cluster-uid", "LISTED and HEARTBEAT name the UID of kube-system", _cluster_uid),
    ("stops", "SIGTERM stops it", lambda evidence: evidence.process.stops()),
)

FEED_RULES: Final = conformance_rules(_REQUIRED, _RECOMMENDED)
"""In the order in which they are shown."""
