"""Storms under guards, as random schedules have them: incidents, answers that expire, policies that change or go."""

from __future__ import annotations

import itertools
import json
from collections import defaultdict
from dataclasses import replace

import pytest

from tests.faults import generate
from tests.faults.generate import VIRTUAL_START_US
from tests.faults.plan import SIMULATED_KINDS, Shape
from tests.faults.simulated.many import simulate_many
from tests.faults.storms import draw_storms

SOME = range(40)


def test_storms_change_nothing_else_of_a_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seeds that are known for what they see go on seeing it."""
    stormy = [plan for plan in map(generate.generate, SOME) if plan.policies]
    assert 0 < len(stormy) < len(SOME) / 2
    monkeypatch.setattr(generate, "draw_storms", lambda *_: ((), ()))
    for plan in stormy:
        changes = set(draw_storms(plan.seed, plan.shape, VIRTUAL_START_US)[0])
        others = tuple(change for change in plan.changes if change not in changes)
        assert replace(plan, changes=others, policies=()) == generate.generate(plan.seed)


def test_policies_are_written_changed_and_deleted() -> None:
    policies = [policy for seed in range(300) for policy in draw_storms(seed, Shape(), VIRTUAL_START_US)[1]]
    specs = [policy.spec for policy in policies]
    assert None in specs
    assert any(spec is not None and "guard" not in spec for spec in specs)
    guards = [spec["guard"] for spec in specs if spec is not None and "guard" in spec]
    assert any({"count", "sharePercent"} <= guard.keys() for guard in guards)
    assert any("releaseAfterSeconds" in guard for guard in guards)
    counted = {(guard.get("of", "nodes"), guard.get("by", "taintKey")) for guard in guards}
    others = {("pods", "node"), ("ownersLosingAll", "taintKey")}
    assert counted == {*itertools.product(["nodes", "pods"], ["taintKey", "zone"]), *others}


def test_nodes_of_a_storm_have_zones_and_some_move() -> None:
    zones: defaultdict[tuple[int, str], set[str | None]] = defaultdict(set)
    for seed in range(100):
        for change in draw_storms(seed, Shape(), VIRTUAL_START_US)[0]:
            if change.topic == "nodes" and change.value is not None:
                meta = json.loads(change.value)["object"]["metadata"]
                zones[seed, meta["name"]].add(meta.get("labels", {}).get("topology.kubernetes.io/zone"))
    assert set().union(*zones.values()) == {"a", "b", None}
    assert 0 < sum(len(of_node) > 1 for of_node in zones.values()) < len(zones) / 4


@pytest.mark.parametrize("seed", [21, 45, 248, 268, 532, 858])
def test_what_an_incident_holds_goes_when_it_may(seed: int) -> None:
    (outcome,) = simulate_many([seed], kinds=SIMULATED_KINDS, processes=1)
    assert [str(found) for found in outcome.violations] == []
    assert outcome.seen["incidents"] > 0


@pytest.mark.parametrize("seed", [787, 909, 969])
def test_owners_that_lose_all_are_counted(seed: int) -> None:
    (outcome,) = simulate_many([seed], kinds=SIMULATED_KINDS, processes=1)
    assert [str(found) for found in outcome.violations] == []
    assert outcome.seen["incidents"] > 0


def test_owners_have_pods_on_several_nodes() -> None:
    nodes: defaultdict[str, set[str]] = defaultdict(set)
    for change in draw_storms(787, Shape(), VIRTUAL_START_US)[0]:
        if change.topic == "pods" and change.value is not None:
            pod = json.loads(change.value)["object"]
            for owner in pod["metadata"]["ownerReferences"]:
                nodes[owner["name"]].add(pod["spec"]["nodeName"])
    assert max(map(len, nodes.values())) > 1
