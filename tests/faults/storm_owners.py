"""Storms whose guards count owners that lose all of their pods, which owners have on several nodes.

It is drawn last, from a stream of its own, for a part of the storms: the others are what they are without.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

from tests.faults.objects import Json, controlled_by
from tests.faults.plan import Change, PolicyChange

_PART = 0.25
_ADOPTED = 0.1
_ORPHANS = 0.1


def with_owners(
    seed: int, changes: Sequence[Change], policies: Sequence[PolicyChange]
) -> tuple[tuple[Change, ...], tuple[PolicyChange, ...]]:
    """Draw whether the first policy counts owners, which limit it has then, and whose the pods are."""
    chance = random.Random(f"owners of a storm {seed}")
    if chance.random() >= _PART:
        return tuple(changes), tuple(policies)
    owners = [f"o{number}" for number in range(chance.choice([2, 3, 5, 8]))]
    return tuple(_owned(chance, owners, changes)), tuple(_counting(chance, policies))


def _counting(chance: random.Random, policies: Sequence[PolicyChange]) -> Iterator[PolicyChange]:
    """Give the same policies; each guard of the first one counts owners, and may allow fewer than the one before."""
    for change in policies:
        if change.name == policies[0].name and change.spec is not None and "guard" in change.spec:
            guard = {name: value for name, value in change.spec["guard"].items() if name not in ("sharePercent", "by")}
            guard |= {"of": "ownersLosingAll", "count": chance.choice([0, 0, 1, 1, 2])}
            yield replace(change, spec={**change.spec, "guard": guard})
        else:
            yield change


def _owned(chance: random.Random, owners: Sequence[str], changes: Sequence[Change]) -> Iterator[Change]:
    """Give the same records; a pod and what follows on it have one owner or none, and some get another one."""
    drawn: dict[str, tuple[str, str, int]] = {}
    versions = [_version(change) for change in changes if change.topic == "pods"]
    for change in changes:
        if change.topic != "pods":
            yield change
            continue
        told: Json = json.loads(change.value or b"")
        meta = told["object"]["metadata"]
        if meta["name"] not in drawn:
            first = "" if chance.random() < _ORPHANS else chance.choice(owners)
            later = chance.choice(["", *owners]) if chance.random() < _ADOPTED else first
            drawn[meta["name"]] = first, later, chance.choice(versions)
        first, later, version = drawn[meta["name"]]
        meta["ownerReferences"] = controlled_by(first if int(meta["resourceVersion"]) < version else later)
        yield replace(change, value=json.dumps(told).encode())


def _version(change: Change) -> int:
    return int(json.loads(change.value or b"")["object"]["metadata"]["resourceVersion"])
