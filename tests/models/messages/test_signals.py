"""Signals of a feed: heartbeats, listings, bookmarks, and orders about a cluster, on the topics of nodes and pods."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from evictstream.models.messages.decoding import read_node_record, read_pod_record
from evictstream.models.messages.fleet import ProfileRef
from evictstream.models.messages.signals import AcceptGap, Bookmark, Forget, Heartbeat, Listed
from evictstream.models.messages.unreadable import Unreadable, UnreadableReason
from tests.models.messages.test_decoding import APPEND_US, ORIGIN

LISTED = Listed(
    cluster="c",
    at_us=APPEND_US,
    origin=ORIGIN,
    epoch=2,
    cluster_uid="u",
    resource_version="7",
    after="",
    through=None,
    uids={"n": ("p",)},
)


@pytest.mark.parametrize(
    ("changes", "signal"),
    [
        ({"type": "HEARTBEAT"}, Heartbeat(cluster="c", at_us=APPEND_US, listed_at_us=None)),
        (
            {"type": "HEARTBEAT", "observedAt": "2026-11-21T02:15:52Z", "listedAt": "2026-11-21T02:00:00Z"},
            Heartbeat(cluster="c", at_us=APPEND_US - 1_000_000, listed_at_us=APPEND_US - 953_000_000),
        ),
        (
            {"type": "HEARTBEAT", "epoch": 2, "clusterUid": "u"},
            Heartbeat(cluster="c", at_us=APPEND_US, listed_at_us=None, epoch=2, cluster_uid="u"),
        ),
        (
            {"type": "HEARTBEAT", "clusterLabels": {"tier": "gold"}},
            Heartbeat(cluster="c", at_us=APPEND_US, listed_at_us=None, cluster_labels={"tier": "gold"}),
        ),
        (
            {"type": "HEARTBEAT", "clusterProfile": {"namespace": "fleet", "name": "c", "manager": "m", "later": 1}},
            Heartbeat(
                cluster="c",
                at_us=APPEND_US,
                listed_at_us=None,
                cluster_profile=ProfileRef(namespace="fleet", name="c", manager="m"),
            ),
        ),
        (
            {
                "type": "LISTED",
                "epoch": 2,
                "clusterUid": "u",
                "listing": {"resourceVersion": "7", "uids": {"n": ["p"]}},
            },
            LISTED,
        ),
        (
            {"type": "LISTED", "listing": {"resourceVersion": "7", "after": "a", "through": "b", "uids": {}}},
            msgspec.structs.replace(LISTED, epoch=0, cluster_uid="", after="a", through="b", uids={}),
        ),
        ({"type": "BOOKMARK"}, Bookmark("c")),
        ({"type": "FORGET"}, Forget("c", APPEND_US)),
        ({"type": "ACCEPT_GAP"}, AcceptGap("c", APPEND_US)),
    ],
)
def test_signals(changes: dict[str, Any], signal: object) -> None:
    value = json.dumps({"cluster": "c"} | changes).encode()
    assert read_node_record(b"c", value, APPEND_US, ORIGIN) == signal
    assert read_pod_record(b"c", value, APPEND_US, ORIGIN) == signal


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        pytest.param({}, UnreadableReason.MISSING_FIELD, id="no-listing"),
        pytest.param({"listing": {"uids": {}}}, UnreadableReason.MISSING_FIELD, id="no-version"),
        pytest.param({"listing": {"resourceVersion": "7"}}, UnreadableReason.MISSING_FIELD, id="no-uids"),
        pytest.param({"listing": {"resourceVersion": "7", "uids": {"n": "p"}}}, UnreadableReason.WRONG_TYPE, id="text"),
        pytest.param({"listing": {"resourceVersion": "7" * 129, "uids": {}}}, UnreadableReason.OVERSIZED, id="version"),
        pytest.param({"clusterUid": "u" * 129}, UnreadableReason.OVERSIZED, id="cluster-uid"),
        pytest.param({"epoch": -1, "listing": None}, UnreadableReason.WRONG_TYPE, id="epoch-below-0"),
        pytest.param({"epoch": 2**31, "listing": None}, UnreadableReason.WRONG_TYPE, id="epoch-beyond-its-limit"),
    ],
)
def test_listings_that_cannot_be_read(changes: dict[str, Any], reason: UnreadableReason) -> None:
    value = json.dumps({"cluster": "c", "type": "LISTED"} | changes).encode()
    for read in (read_node_record, read_pod_record):
        with pytest.raises(Unreadable) as refused:
            read(b"c", value, APPEND_US, ORIGIN)
        assert refused.value.reason is reason


def test_bookmark_has_an_object_with_little_in_it() -> None:
    found = {"kind": "Pod", "metadata": {"resourceVersion": "9"}, "spec": {"containers": None}, "status": {}}
    value = json.dumps({"cluster": "c", "type": "BOOKMARK", "object": found}).encode()
    assert read_pod_record(b"c", value, APPEND_US, ORIGIN) == Bookmark("c")


@pytest.mark.parametrize(
    "labels",
    [
        pytest.param({"k" * 318: "v"}, id="a long key"),
        pytest.param({"k": "v" * 64}, id="a long value"),
        pytest.param({f"k{number}": "v" for number in range(51)}, id="many"),
    ],
)
def test_labels_that_make_a_row_large_are_refused(labels: dict[str, str]) -> None:
    value = json.dumps({"cluster": "c", "type": "HEARTBEAT", "clusterLabels": labels}).encode()
    with pytest.raises(Unreadable) as error:
        read_node_record(b"c", value, APPEND_US, ORIGIN)
    assert (error.value.reason, error.value.detail) == (UnreadableReason.OVERSIZED, "clusterLabels")


@pytest.mark.parametrize(
    "change",
    [{"namespace": "n" * 64}, {"name": "n" * 254}, {"manager": "m" * 64}],
    ids=lambda change: next(iter(change)),
)
def test_a_profile_that_makes_a_row_large_is_refused(change: dict[str, str]) -> None:
    profile = {"namespace": "fleet", "name": "c"} | change
    value = json.dumps({"cluster": "c", "type": "HEARTBEAT", "clusterProfile": profile}).encode()
    with pytest.raises(Unreadable) as error:
        read_node_record(b"c", value, APPEND_US, ORIGIN)
    assert (error.value.reason, error.value.detail) == (UnreadableReason.OVERSIZED, "clusterProfile")
