"""Every record that a feed writes is one that the service reads, and listings cover every partition."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from evictstream.models.eviction import EventType, NodeEvent, Origin
from evictstream.models.messages.decoding import read_node_record, read_pod_record
from evictstream.models.messages.signals import Heartbeat, Listed
from evictstream.models.messages.watch_event import decode_watch_event
from evictstream.streams.feed.feed_records import LISTING_BYTES, FeedRecords
from evictstream.streams.partitioner import partition_of

NOW_US = 1_795_227_353_000_000
NOWHERE = Origin("", 0, 0)
LARGEST_LISTED_BYTES = 262_144

records = FeedRecords(cluster="lab", uid="u-1", epoch=2)


def listed(value: bytes) -> Listed:
    decode_watch_event(value)
    found = read_pod_record(b"lab/", value, NOW_US, NOWHERE)
    assert isinstance(found, Listed)
    return found


@pytest.mark.parametrize("epoch", [0, 7])
def test_a_change_is_read_as_it_was_written(epoch: int) -> None:
    head = FeedRecords(cluster="lab", uid="u", epoch=epoch).head("MODIFIED")
    node = b'{"kind":"Node","apiVersion":"v1","metadata":{"name":"n","uid":"u","resourceVersion":"7"}}'
    found = read_node_record(b"lab/n", FeedRecords.change(head, NOW_US - 5, node), NOW_US, NOWHERE)
    assert isinstance(found, NodeEvent)
    assert (found.type, found.at_us, found.epoch, found.node.uid) == (EventType.MODIFIED, NOW_US - 5, epoch, "u")


def test_a_cluster_name_with_quotes_breaks_nothing() -> None:
    odd = FeedRecords(cluster='a"b', uid="u", epoch=0)
    node = b'{"kind":"Node","apiVersion":"v1","metadata":{"name":"n","uid":"u","resourceVersion":"7"}}'
    found = read_node_record(odd.key("n"), FeedRecords.change(odd.head("ADDED"), NOW_US, node), NOW_US, NOWHERE)
    assert isinstance(found, NodeEvent)


def test_a_heartbeat_is_read_as_it_was_written() -> None:
    value = records.heartbeat(NOW_US, NOW_US - 9)
    decode_watch_event(value)
    assert read_node_record(b"lab/", value, NOW_US, NOWHERE) == Heartbeat(
        cluster="lab", at_us=NOW_US, listed_at_us=NOW_US - 9, epoch=2, cluster_uid="u-1"
    )


def test_an_empty_cluster_is_listed_in_every_partition() -> None:
    found = [(number, listed(value)) for number, value in records.listed(NOW_US, "9", {}, range(3))]
    assert [number for number, _ in found] == [0, 1, 2]
    assert all(one.uids == {} and one.through is None and one.after == "" for _, one in found)


@hypothesis_settings(deadline=None)  # each example hashes hundreds of names, and machines are busy
@given(
    nodes=st.dictionaries(st.text("ab-0", min_size=1, max_size=4), st.integers(0, 12_000), max_size=8),
    count=st.integers(1, 4),
)
def test_ranges_hold_each_uid_once_and_adjoin(nodes: dict[str, int], count: int) -> None:
    uids = {name: [f"{number:036}" for number in range(pods)] for name, pods in nodes.items()}
    ends, uid_ends = dict.fromkeys(range(count), ""), dict.fromkeys(range(count), "")
    held: dict[str, list[str]] = {}
    for number, value in records.listed(NOW_US, "9", uids, range(count)):
        found = listed(value)
        assert (found.after, found.uid_after) == (ends[number], uid_ends[number])
        assert len(value) < LARGEST_LISTED_BYTES
        for name, pods in found.uids.items():
            assert found.covers(name)
            assert all(found.covers_uid(uid) for uid in pods)
            assert partition_of(f"lab/{name}".encode(), count) == number
            held.setdefault(name, []).extend(pods)
        uid_ends[number] = found.uid_through or ""
        if found.uid_through is None:
            ends[number] = found.through or "end"
    assert held == uids
    assert set(ends.values()) == {"end"}


def test_one_node_with_many_pods_is_several_records() -> None:
    uids = {"a": ["u"], "n": [f"{pod:036}" for pod in range(55_000)], "z": ["v"]}
    found = [listed(value) for _, value in records.listed(NOW_US, "9", uids, [0])]
    assert [(one.after, one.through) for one in found] == [("", "a"), *[("a", "n")] * 11, ("n", None)]
    assert all(one.uids.keys() == {one.through or "z"} for one in found)


def test_a_large_listing_is_cut_between_nodes() -> None:
    uids = {f"n{number:04}": [f"{pod:036}" for pod in range(110)] for number in range(200)}
    values = [value for _, value in records.listed(NOW_US, "9", uids, [0])]
    assert len(values) == -(-200 * 110 * 40 // LISTING_BYTES)
    assert max(map(len, values)) < LARGEST_LISTED_BYTES
