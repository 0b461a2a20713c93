"""The record of an incident: what is read, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from evictstream.models.messages.codec import encode
from evictstream.models.messages.incident import IncidentState, decode_incident
from evictstream.models.messages.schemas import schema_texts
from evictstream.models.messages.unreadable import Unreadable

AT = "2026-11-21T12:02:16.000000Z"
INCIDENT: dict[str, Any] = {
    "apiVersion": "evictstream.io/v1",
    "kind": "Incident",
    "id": "3f9a2c1b07",
    "sequence": 7,
    "at": AT,
    "cluster": "lab",
    "policy": "large",
    "revision": 2,
    "taint": "agent",
    "state": "Waiting",
    "since": AT,
    "openedAt": AT,
    "openedWith": 4,
    "allowed": 3,
    "known": 10,
    "nodes": 4,
    "firstNodes": ["n0", "n1"],
    "evictions": 8,
    "due": 4,
    "losingAll": 1,
    "owners": [{"namespace": "x", "owner": "ReplicaSet/web", "pods": 2}],
}


@pytest.mark.parametrize(
    "more",
    [{}, {"zone": "eu-1a"}, {"zone": ""}, {"node": "n7", "of": "pods"}, {"of": "ownersLosingAll"}],
    ids=["", "of a zone", "without a zone", "of pods of a node", "of owners"],
)
def test_an_incident_is_read_and_written_as_it_was(more: dict[str, Any]) -> None:
    incident = decode_incident(json.dumps(INCIDENT | more))
    assert incident.state is IncidentState.WAITING
    assert json.loads(encode(incident)) == INCIDENT | more
    jsonschema.Draft202012Validator(json.loads(schema_texts()["incident.json"])).validate(INCIDENT | more)


@pytest.mark.parametrize(
    "change", [{"kind": "Policy"}, {"id": "x"}, {"at": "today"}, {"state": "Odd"}, {"nodes": -1}, {"since": "1"}]
)
def test_what_is_no_incident_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(Unreadable):
        decode_incident(json.dumps(INCIDENT | change))


def test_later_versions_may_add_fields() -> None:
    assert decode_incident(json.dumps(INCIDENT | {"more": 1})).id == INCIDENT["id"]
