"""Every record that a feed writes is one that the service reads, and listings leave nothing out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from evictstream.models.eviction import EventType, NodeEvent, Origin
from evictstream.models.messages.decoding import read_node_record, read_pod_record
from evictstream.models.messages.fleet import ProfileRef
from evictstream.models.messages.signals import Heartbeat, Listed
from evictstream.models.messages.watch_event import decode_watch_event
from evictstream.streams.feed.feed_records import LISTING_BYTES, FeedRecords, ToldCluster

NOW_US = 1_795_227_353_000_000
NOWHERE = Origin("", 0, 0)
LARGEST_LISTED_BYTES = 262_144

records = FeedRecords(cluster="lab", uid="u-1", epoch=2)


def listed(value: bytes) -> Listed:
    decode_watch_event(value)
    found = read_pod_record(b"lab", value, NOW_US, NOWHERE)
    assert isinstance(found, Listed)
    return found


@pytest.mark.parametrize("epoch", [0, 7])
def test_a_change_is_read_as_it_was_written(epoch: int) -> None:
    head = FeedRecords(cluster="lab", uid="u", epoch=epoch).head("MODIFIED")
    node = b'{"kind":"Node","apiVersion":"v1","metadata":{"name":"n","uid":"u","resourceVersion":"7"}}'
    found = read_node_record(b"lab", FeedRecords.change(head, NOW_US - 5, node), NOW_US, NOWHERE)
    assert isinstance(found, NodeEvent)
    assert (found.type, found.at_us, found.epoch, found.node.uid) == (EventType.MODIFIED, NOW_US - 5, epoch, "u")


def test_a_cluster_name_with_quotes_breaks_nothing() -> None:
    odd = FeedRecords(cluster='a"b', uid="u", epoch=0)
    node = b'{"kind":"Node","apiVersion":"v1","metadata":{"name":"n","uid":"u","resourceVersion":"7"}}'
    found = read_node_record(odd.key, FeedRecords.change(odd.head("ADDED"), NOW_US, node), NOW_US, NOWHERE)
    assert isinstance(found, NodeEvent)


def test_a_heartbeat_is_read_as_it_was_written() -> None:
    value = records.heartbeat(NOW_US, NOW_US - 9)
    decode_watch_event(value)
    assert read_node_record(b"lab", value, NOW_US, NOWHERE) == Heartbeat(
        cluster="lab", at_us=NOW_US, listed_at_us=NOW_US - 9, epoch=2, cluster_uid="u-1"
    )


def test_a_heartbeat_says_what_the_cluster_is_called() -> None:
    profile = ProfileRef(namespace="fleet", name="lab", manager="hubs")
    for told in (None, ToldCluster({}), ToldCluster({"tier": "gold"}), ToldCluster({"tier": "gold"}, profile)):
        value = records.heartbeat(NOW_US, NOW_US - 9, told)
        decode_watch_event(value)
        found = read_node_record(b"lab", value, NOW_US, NOWHERE)
        assert isinstance(found, Heartbeat)
        assert (found.cluster_labels, found.cluster_profile) == (({}, None) if told is None else told)


def test_an_empty_cluster_is_listed_too() -> None:
    (found,) = (listed(value) for value in records.listed(NOW_US, "9", {}))
    assert (found.uids, found.after, found.through) == ({}, "", None)


@hypothesis_settings(deadline=None)  # machines are busy
@given(nodes=st.dictionaries(st.text("ab-0", min_size=1, max_size=4), st.integers(0, 12_000), max_size=8))
def test_ranges_hold_each_uid_once_and_adjoin(nodes: dict[str, int]) -> None:
    uids = {name: [f"{number:036}" for number in range(pods)] for name, pods in nodes.items()}
    end = uid_end = ""
    held: dict[str, list[str]] = {}
    for value in records.listed(NOW_US, "9", uids):
        found = listed(value)
        assert (found.after, found.uid_after) == (end, uid_end)
        assert len(value) < LARGEST_LISTED_BYTES
        for name, pods in found.uids.items():
            assert found.covers(name)
            assert all(found.covers_uid(uid) for uid in pods)
            held.setdefault(name, []).extend(pods)
        uid_end = found.uid_through or ""
        if found.uid_through is None:
            end = found.through or "end"
    assert held == uids
    assert end == "end"


def test_one_node_with_many_pods_is_several_records() -> None:
    uids = {"a": ["u"], "n": [f"{pod:036}" for pod in range(55_000)], "z": ["v"]}
    found = [listed(value) for value in records.listed(NOW_US, "9", uids)]
    assert [(one.after, one.through) for one in found] == [("", "a"), *[("a", "n")] * 11, ("n", None)]
    assert all(one.uids.keys() == {one.through or "z"} for one in found)


def test_a_large_listing_is_cut_between_nodes() -> None:
    uids = {f"n{number:04}": [f"{pod:036}" for pod in range(110)] for number in range(200)}
    values = list(records.listed(NOW_US, "9", uids))
    assert len(values) == -(-200 * 110 * 40 // LISTING_BYTES)
    assert max(map(len, values)) < LARGEST_LISTED_BYTES
