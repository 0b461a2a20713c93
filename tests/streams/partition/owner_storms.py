"""Storms in which owners lose their pods, and guards that count those that lose all."""

from __future__ import annotations

from typing import Any

import pytest

from tests.streams.partition.storms import STAY_SECONDS, Storm

KILLS = pytest.mark.parametrize("kills", [False, True], ids=["", "a worker is killed"])
FOREVER = -1


def guard(count: int, **more: Any) -> dict[str, Any]:
    return {"guard": {"count": count, "of": "ownersLosingAll", "withinSeconds": 3_600, **more}}


def owned(*places: tuple[str, int], nodes: int = 8, **spec: Any) -> Storm:
    """Pods of owners on nodes; each tolerates all taints for 300 s. There are as many of others, without owners."""
    world = Storm(nodes)
    for place, (owner, number) in enumerate(places):
        world.pod(f"{owner}-{place}", number, STAY_SECONDS, f"ReplicaSet/{owner}")
    if spec:
        world.spec = spec
        world.apply(spec)
    world.run(0.2)
    return world


def left(world: Storm) -> set[str]:
    """The pods with owners that were evicted."""
    return {name for name in world.gone() if not name.startswith(("goes", "stays"))}
