"""Records of owners that lose pods: what is read, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from evictstream.models.messages.codec import encode
from evictstream.models.messages.schemas import schema_texts
from evictstream.models.messages.unreadable import Unreadable
from evictstream.models.messages.workload import decode_fleet_workload

AT = "2026-11-21T12:02:16.000000Z"
STEP = {"at": AT, "left": 2}
WORKLOAD: dict[str, Any] = {
    "apiVersion": "evictstream.io/v1",
    "kind": "FleetWorkload",
    "cluster": "lab",
    "namespace": "shop",
    "ownerKind": "ReplicaSet",
    "ownerName": "web",
    "sequence": 7,
    "at": AT,
    "pods": {"bound": 3, "leaving": 2, "held": 0},
    "firstDeadline": AT,
    "steps": [STEP, {"at": "2026-11-21T12:03:16.000000Z", "until": "2026-11-21T12:04:16.000000Z", "left": 1}],
    "zones": ["z1"],
    "taints": ["k"],
}


def test_a_workload_is_written_as_it_was_read() -> None:
    assert json.loads(encode(decode_fleet_workload(json.dumps(WORKLOAD)))) == WORKLOAD


def test_a_record_of_before_has_no_steps() -> None:
    before = {name: value for name, value in WORKLOAD.items() if name != "steps"}
    assert decode_fleet_workload(json.dumps(before)).steps == ()


@pytest.mark.parametrize(
    "steps",
    [[{"at": "soon", "left": 2}], [STEP | {"until": "later"}], [STEP | {"left": -1}], [{"at": AT}], [STEP] * 17],
    ids=["at", "until", "left", "none left", "too many"],
)
def test_steps_that_are_refused(steps: list[dict[str, Any]]) -> None:
    validator = jsonschema.Draft202012Validator(
        json.loads(schema_texts()["fleet-workload.json"]),
        format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER,
    )
    validator.validate(WORKLOAD)
    with pytest.raises(Unreadable):
        decode_fleet_workload(json.dumps(WORKLOAD | {"steps": steps}))
