"""Whether what a service has published of its clusters is possible at each moment, and right at the end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from evictstream.kit.oracle import Violation
from evictstream.models.messages.fleet import FleetLevel, decode_fleet_cluster, decode_fleet_level
from evictstream.models.messages.workload import decode_fleet_workload
from evictstream.streams.engine.core.outbox import Outbox
from evictstream.streams.partition.eviction_partition import EvictionPartition
from tests.faults.simulated.log import Entry
from tests.harness.counted import evictions_anew, losses_of, nodes_anew, workloads_anew


def check_levels(entries: Iterable[Entry]) -> Iterator[Violation]:
    """Judge each record of the fleet topic, of one partition and in its order."""
    sequences: dict[bytes, int] = {}
    for entry in entries:
        key = entry.key or b""
        if entry.value is None:
            continue
        level = decode_fleet_level(entry.value)
        if f"{level.cluster}/{level.zone or ''}".encode() != key:
            yield Violation("published under another key", repr(key), cluster=level.cluster)
        if level.sequence <= sequences.get(key, 0):
            text = f"{level.sequence} behind {sequences[key]}"
            yield Violation("a sequence does not grow", text, cluster=level.cluster)
        sequences[key] = level.sequence
        problem = impossible(level)
        if problem:
            yield Violation("published sums are impossible", f"{problem}: {level}", cluster=level.cluster)


def impossible(level: FleetLevel) -> str:
    """Say what of a level cannot be; empty if all can."""
    counts, nodes = level.evictions, level.nodes
    if counts.open != counts.scheduled + counts.due + counts.issued + counts.retrying:
        return "open evictions are more or fewer than their parts"
    if counts.scheduled != counts.later + sum(bucket.evictions for bucket in counts.deadlines):
        return "deadlines are more or fewer than what is scheduled"
    if counts.failing > counts.retrying or counts.held > counts.open or nodes.tainted > nodes.healthy + nodes.unhealthy:
        return "a part is more than its whole"
    if min(msgspec.structs.astuple(nodes)) < 0 or counts.open < 0:
        return "a count is negative"
    if any(bucket.before <= level.at for bucket in counts.deadlines):
        return "a deadline ahead lies behind"
    return ""


def check_end(
    live: EvictionPartition,
    loaded: EvictionPartition,
    published: Mapping[str, Iterable[Entry]],
    now_us: int,
) -> Iterator[Violation]:
    """Compare the newest records of a partition, which has come to rest, with what its rows say.

    What has changed within the last second is published now, so the newest record of each level is right now, whenever
    it was written. `published` are the records by topic.
    """
    outbox = Outbox()
    for _ in live.published.turn(now_us, outbox):
        pass
    found, named, owners = (
        {entry.key: entry.value for entry in published[topic]} | _newest(outbox, topic)
        for topic in ("fleet", "clusters", "workloads")
    )
    yield from _check_owners(live, loaded, found, owners)
    for key, value in found.items():
        if value is None:
            continue
        level = decode_fleet_level(value)
        cluster = level.cluster
        known = [
            one
            for one in loaded.known_nodes()
            if one.cluster == cluster and level.zone in (None, None if one.node is None else one.node.zone)
        ]
        counted = (level.nodes, msgspec.structs.replace(level.evictions, held=0, held_by=()))
        anew = (nodes_anew(known), evictions_anew(known, now_us))
        if counted != anew:
            yield Violation("published levels differ", f"published {counted}, counted again {anew}", cluster=cluster)
        if (
            named.get(cluster.encode()) is None
            or decode_fleet_cluster(named[cluster.encode()] or b"").cluster != cluster
        ):
            yield Violation("a cluster is not published", repr(key), cluster=cluster)
    there = {f"{one.cluster}/".encode() for one in loaded.known_nodes()}
    there |= {
        f"{one.key.partition('/')[0]}/{one.node.zone}".encode()
        for one in loaded.known_nodes()
        if one.node is not None and one.node.zone
    }
    standing = {key for key, value in found.items() if value is not None}
    for key in there - standing:
        yield Violation("a level is not published", repr(key))
    for key in standing - there:
        level = decode_fleet_level(found[key] or b"")
        if level.zone is not None or level.nodes.healthy + level.nodes.unhealthy + level.nodes.unknown:
            yield Violation("a level stands for nothing", repr(key), cluster=level.cluster)


def _check_owners(
    live: EvictionPartition,
    loaded: EvictionPartition,
    levels: Mapping[bytes | None, bytes | None],
    owners: Mapping[bytes | None, bytes | None],
) -> Iterator[Violation]:
    """Compare the records of owners that count with what the rows say of their pods."""
    whole = [
        decode_fleet_level(value) for key, value in levels.items() if value is not None and key and key[-1:] == b"/"
    ]
    since = {level.cluster: level.workloads_from or 0 for level in whole}
    told = {}
    for key, value in owners.items():
        one = None if value is None else decode_fleet_workload(value)
        if one is not None and one.sequence >= since.get(one.cluster, one.sequence + 1):
            told[key or b""] = losses_of(one)
    held = {uid for places in live.firing.held.by_cluster.values() for _, uid in places}
    anew = workloads_anew(loaded.known_nodes(), held)
    for key in told.keys() | anew.keys():
        if told.get(key) != anew.get(key):
            yield Violation("an owner's losses differ", f"{key!r}: published {told.get(key)}, anew {anew.get(key)}")


def _newest(outbox: Outbox, topic: str) -> dict[bytes | None, bytes | None]:
    return {one.key: None if one.is_tombstone else one.value for one in outbox.messages.get(topic, ())}
