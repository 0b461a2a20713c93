"""Brakes and policies that come and go while a run goes on. All of them have ended soon after it is quiet.

A policy that observes holds what a brake of the same lists holds, and its deletion spreads as the release does. So a
plan has brakes alone, and those whose key begins with `p` are written as policies. One with a `limit`, `inFlight` or
`while` is written as a policy that limits, or holds in outages.
"""

from __future__ import annotations

import dataclasses
import json
import random
from collections.abc import Iterable, Mapping
from typing import Any

from evictstream.kit.oracle import KeyedRecord
from evictstream.models.steering.brakes import NO_BRAKES
from evictstream.models.steering.holds import Subject, longest_hold
from tests.faults.objects import NOT_READY, UNREACHABLE, instant
from tests.faults.plan import Shape

SECOND_US = 1_000_000
LONGEST_SECONDS = 6.0
LONGEST_SPREAD_SECONDS = 3
LATEST_SECONDS = 3.0
"""A brake is released at the latest so long after the run has become quiet."""


def draw_brakes(seed: int, shape: Shape, start_at_us: int) -> tuple[KeyedRecord, ...]:
    """Draw the records of the brakes topic: in half of the runs there are some."""
    chance = random.Random(f"brakes {seed}")
    records: list[KeyedRecord] = []
    for number in range(chance.choice([0, 0, 0, 1, 2, 4])):
        key = f"b{number}".encode()
        at_seconds, lasts_seconds = chance.uniform(0.1, shape.active_seconds), chance.uniform(0.2, LONGEST_SECONDS)
        end_seconds = min(at_seconds + lasts_seconds, shape.active_seconds + LATEST_SECONDS)

        def put(seconds: float, value: bytes | None, key: bytes = key) -> None:
            records.append(KeyedRecord(append_at_us=start_at_us + int(seconds * SECOND_US), key=key, value=value))

        fields = _fields(chance, number)
        draw = chance.random()
        is_policy = draw >= 0.7
        if draw < 0.1:
            put(at_seconds, b"{")  # holds all, whatever it was meant to be
            put(end_seconds, None)
        elif draw < 0.3:
            ends_at = instant(start_at_us + int(end_seconds * SECOND_US))
            put(at_seconds, _brake(fields | {"endsAt": ends_at}))
        elif draw < 0.45:
            put(at_seconds, _brake(fields))
            put(end_seconds, None)
        elif is_policy:
            key, fields = b"p%d" % number, fields | {"id": f"p{number}", "zones": []}
            if draw >= 0.78:
                fields |= chance.choice([_limit, _limit, _in_flight, _outage])(chance)
            if "limit" not in fields:  # so long that what it is about surely happens meanwhile
                at_seconds, end_seconds = 0.1, shape.active_seconds + LATEST_SECONDS
            put(at_seconds, _brake(fields), key)
            put(end_seconds, _brake(fields | {"releasedBy": "ben"}), key)
        else:
            put(at_seconds, _brake(fields))
            if chance.random() < 0.3:  # and it holds something else from then on
                fields = _fields(chance, number)
                put((at_seconds + end_seconds) / 2, _brake(fields))
            put(end_seconds, _brake(fields | {"releasedBy": "ben"}))
    return tuple(sorted(records, key=lambda record: record.append_at_us))


def as_policy(record: KeyedRecord) -> KeyedRecord | None:
    """Write a brake whose key begins with `p` as the policy that it stands for; None for a real brake."""
    if not record.key.startswith(b"p"):
        return None
    brake = json.loads(record.value or b"{}")
    names = ("clusters", "taints", "namespaces")
    clause = _clause(brake)
    spec = {**clause, "for": {name: brake[name] for name in names if name in brake}}
    is_over = "releasedBy" in brake
    policy = {
        "apiVersion": "evictstream.io/v1",
        "kind": "Policy",
        "name": brake["id"],
        "revision": 1 + is_over,
        "why": "w",
        "by": "anna",
        "appliedAt": instant(0),
        "spreadSeconds": brake["spreadSeconds"],
        **({"earlier": [{"spec": spec}]} if is_over else {"spec": spec}),
    }
    return dataclasses.replace(record, value=json.dumps(policy).encode())


def held_by(records: Iterable[KeyedRecord], command: Mapping[str, Any], now_us: int) -> str | None:
    """Say which brake an executor holds a command for that has read these records; it takes zones for its own."""
    brakes = NO_BRAKES
    for entry in records:
        brakes = brakes.with_record(entry.key, entry.value, entry.append_at_us // 1000)
    subject = Subject(command["namespace"], command["podUid"], command["reason"]["taint"]["key"], 0, "a")
    hold = longest_hold(brakes.of_cluster(command["cluster"], now_us), subject, now_us)
    return None if hold is None else hold.by


def _clause(brake: dict[str, Any]) -> dict[str, Any]:
    """Give the clause that a brake stands for."""
    if "while" in brake:
        return {"hold": {"while": brake["while"], "spreadSeconds": brake["spreadSeconds"]}}
    limits: dict[str, Any] = {name: brake[name] for name in brake if name in {"limit", "inFlight"}}
    return limits or {"observe": True}


def _fields(chance: random.Random, number: int) -> dict[str, Any]:
    fields: dict[str, Any] = {"id": f"b{number}", "spreadSeconds": chance.randint(0, LONGEST_SPREAD_SECONDS)}
    if chance.random() < 0.5:
        fields["clusters"] = chance.choice([["c0"], ["c1", "c2"]])
    if chance.random() < 0.3:
        fields["taints"] = chance.choice([[NOT_READY], [NOT_READY, UNREACHABLE]])
    if chance.random() < 0.3:
        fields["namespaces"] = chance.choice([["ns"], ["ns", "other"], ["other"]])
    if chance.random() < 0.1:
        fields["zones"] = ["a"]
    return fields


def _limit(chance: random.Random) -> dict[str, Any]:
    """Draw a limit that some evictions of a run feel."""
    limit = {
        "evictions": chance.randint(1, 3),
        "inSeconds": chance.randint(1, 2),
        "burst": chance.randint(1, 3),
        "per": chance.choice(["cluster", "node"]),
    }
    return {"limit": limit}


def _in_flight(chance: random.Random) -> dict[str, Any]:
    """Draw how many may be in flight."""
    limit = {
        "count": chance.choice([1, 1, 2]),
        "of": chance.choice(["pods", "pods", "nodes"]),
        "per": "cluster",
        "countsSeconds": chance.choice([4, 1_800, 1_800]),
    }
    return {"inFlight": limit}


def _outage(chance: random.Random) -> dict[str, Any]:
    """Draw an outage of a zone, or of all, that some runs have."""
    zone = {"unhealthyPercent": chance.choice([1, 30, 50, 100]), "atLeast": chance.randint(1, 2)}
    return {"while": chance.choice([{"zone": zone}, {"zone": zone}, {"zones": "allFull"}])}


def _brake(fields: dict[str, Any]) -> bytes:
    common = {"apiVersion": "evictstream.io/v1", "kind": "Brake", "why": "w", "by": "anna", "heldAt": instant(0)}
    return json.dumps(common | fields).encode()
