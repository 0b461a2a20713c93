"""Records of the fleet's topics: what is read, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from evictstream.models.messages.codec import encode
from evictstream.models.messages.fleet import decode_fleet_cluster, decode_fleet_level
from evictstream.models.messages.schemas import schema_texts
from evictstream.models.messages.unreadable import Unreadable

AT = "2026-11-21T12:02:16.000000Z"
COUNTS: dict[str, Any] = {
    **dict.fromkeys(("scheduled", "due", "issued", "retrying", "failing", "observed", "held", "later"), 0),
    "open": 1,
    "scheduled": 1,
    "deadlines": [{"before": "2026-11-21T12:03:00.000000Z", "evictions": 1}],
    "heldBy": [{"by": "b-1", "evictions": 1, "oldestAt": AT}],
}
LEVEL: dict[str, Any] = {
    "apiVersion": "evictstream.io/v1",
    "kind": "FleetLevel",
    "cluster": "lab",
    "sequence": 7,
    "at": AT,
    "nodes": {"healthy": 1, "unhealthy": 0, "unknown": 0, "tainted": 1},
    "pods": 3,
    "evictions": COUNTS,
    "feed": {"silent": False, "heardAt": AT},
}
CLUSTER: dict[str, Any] = {
    "apiVersion": "evictstream.io/v1",
    "kind": "FleetCluster",
    "cluster": "lab",
    "sequence": 8,
    "at": AT,
    "clusterUid": "u",
    "labels": {"tier": "gold"},
    "profile": {"namespace": "fleet", "name": "lab", "manager": "hubs"},
}


def test_a_level_is_written_as_it_was_read() -> None:
    assert json.loads(encode(decode_fleet_level(json.dumps(LEVEL)))) == LEVEL
    assert json.loads(encode(decode_fleet_cluster(json.dumps(CLUSTER)))) == CLUSTER


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "FleetCluster"},
        {"apiVersion": "evictstream.io/v2"},
        {"cluster": ""},
        {"zone": ""},
        {"sequence": 0},
        {"at": "today"},
        {"pods": -1},
        {"evictions": COUNTS | {"open": -1}},
        {"evictions": COUNTS | {"deadlines": [{"before": "soon", "evictions": 1}]}},
        {"evictions": COUNTS | {"heldBy": [{"by": "b-1", "evictions": 1, "oldestAt": "long ago"}]}},
        {"evictions": COUNTS | {"oldestDueAt": "long ago"}},
        {"feed": {"silent": False, "heardAt": "just now"}},
    ],
    ids=str,
)
def test_levels_that_are_refused(change: dict[str, Any]) -> None:
    validator = jsonschema.Draft202012Validator(
        json.loads(schema_texts()["fleet-level.json"]),
        format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER,
    )
    validator.validate(LEVEL)
    with pytest.raises(Unreadable):
        decode_fleet_level(json.dumps(LEVEL | change))


@pytest.mark.parametrize(
    "change", [{"kind": "FleetLevel"}, {"at": "today"}, {"labels": {"a": 1}}, {"profile": {"name": "lab"}}], ids=str
)
def test_clusters_that_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(Unreadable):
        decode_fleet_cluster(json.dumps(CLUSTER | change))
