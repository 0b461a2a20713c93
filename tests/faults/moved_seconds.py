"""Seconds of tolerations as an admission policy may have moved them, and as nobody should have (semantics.md 12.12)."""

from __future__ import annotations

import json
import random
import zlib
from collections.abc import Callable

from tests.faults.objects import Json

MORE_SECONDS = 3600
LONGEST_SECONDS = 10**9
ANNOTATION = "evictstream.io/tolerations"
_VERSIONS_OF_A_WAY = 9  # of the whole run: a pod changes its way with some of its versions


def draw_built_in(seed: int) -> str | None:
    """Draw the clusters of a run where Kubernetes' own controller is on, as the setting names them; mostly none."""
    chance = random.Random(f"built-in/{seed}")
    return chance.choice(["c0", "c*", "c1,c2"]) if chance.random() < 0.25 else None


def moved(tolerations: list[Json], uid: str, version: int) -> tuple[Json, list[Json]]:
    """Give annotations and `spec.tolerations` of a pod; three of five pods have nothing moved, ever.

    It is a function of pod and version, so a version that is told twice is the same.
    """
    if zlib.crc32(uid.encode()) % 5 < 3:
        return {}, list(tolerations)
    way = _WAYS[zlib.crc32(f"{uid} {version // _VERSIONS_OF_A_WAY}".encode()) % len(_WAYS)]
    return way(tolerations)


def _not_moved(tolerations: list[Json]) -> tuple[Json, list[Json]]:
    return {}, list(tolerations)


def by_backstop(tolerations: list[Json], _uid: str = "", _version: int = 0) -> tuple[Json, list[Json]]:
    """Move as the policy with a backstop of an hour does."""

    def later(seconds: int) -> int:
        return LONGEST_SECONDS if seconds > LONGEST_SECONDS else max(seconds, 0) + MORE_SECONDS

    return _by_policy(tolerations, later)


def by_handover(tolerations: list[Json], _uid: str = "", _version: int = 0) -> tuple[Json, list[Json]]:
    """Move as the policy without one does."""
    return _by_policy(tolerations, lambda _: None)


def _edited_since(tolerations: list[Json]) -> tuple[Json, list[Json]]:
    annotations, _ = by_backstop(tolerations)
    return annotations, list(tolerations)


def _unreadable(tolerations: list[Json]) -> tuple[Json, list[Json]]:
    annotations, _ = by_backstop(tolerations)
    return {ANNOTATION: annotations.get(ANNOTATION, "")[:-1]}, list(tolerations)


def _by_policy(tolerations: list[Json], built_in: Callable[[int], int | None]) -> tuple[Json, list[Json]]:
    spec: list[Json] = []
    entries: list[Json] = []
    seen: list[Json] = []
    for toleration in tolerations:
        identity = {name: value for name, value in toleration.items() if name != "tolerationSeconds"}
        seconds = toleration.get("tolerationSeconds")
        if seconds is None or identity.get("effect") != "NoExecute" or identity in seen:
            spec.append(toleration)
        else:
            instead = built_in(seconds)
            spec.append(identity if instead is None else {**identity, "tolerationSeconds": instead})
            entries.append(toleration if instead is None else {**toleration, "builtInSeconds": instead})
        seen.append(identity)
    return ({ANNOTATION: json.dumps(entries, separators=(",", ":"))} if entries else {}), spec


_WAYS = (_not_moved, by_backstop, by_backstop, by_handover, _edited_since, _unreadable)
