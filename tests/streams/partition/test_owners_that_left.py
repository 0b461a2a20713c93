"""Owners of which pods have left: what is remembered of these is counted as it comes and goes."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from evictstream.models.eviction import RuleParameters
from evictstream.models.eviction.losing_owners import LosingOwners
from tests.harness.examples import examples
from tests.streams.partition.storms import Storm
from tests.streams.partition.test_guards_of_pods import Watched, node_of

GUARD: dict[str, Any] = {"guard": {"count": 1_000, "of": "ownersLosingAll", "withinSeconds": 3_600}}

RULES = RuleParameters()


def losing_of(world: Storm) -> LosingOwners:
    found = world.logic._clusters.named("lab").losing
    assert found is not None
    return found


def test_owners_that_left_are_counted_once_for_all_turns() -> None:
    world = Storm(1, **GUARD)
    world.storm([0])
    node, watched = node_of(world), Watched()
    for number in range(60):
        if number == 30:
            watched.update(node.deleted_pods)
            node.deleted_pods = watched
        world.pod(f"p{number}", 0, None, f"Job/j{number}")
        world.run(2 + number)
        world.pod_gone(f"p{number}", 0)
        world.run(2.5 + number)
    assert len(losing_of(world)._places) == 60
    assert watched.looked == 0, "31 turns, each with some 45 pods that have left"


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["pod", "stays", "gone", "run", "taint", "untaint", "zone", "long", "dies"]), st.integers(0, 5)
    )
)


@given(STEPS)
@settings(max_examples=examples(40))
def test_owners_counted_by_steps_are_those_of_the_rows(steps: list[tuple[str, int]]) -> None:
    world, at = Storm(2, **GUARD), 1.0
    for what, number in steps:
        node, owner = number % 2, f"Job/j{number % 3}"
        if what == "pod":
            world.pod(f"p{number}", node, None, owner)
        elif what == "stays":
            world.pod(f"p{number}", node, -1, owner)
        elif what == "gone":
            world.pod_gone(f"p{number}", node)
        elif what == "taint":
            world.storm([node], key=f"k{number % 3}")
        elif what == "zone":
            world.storm([node], key="k0", zone="z")
        elif what == "untaint":
            world.node(node)
        elif what == "dies":
            world.die()
        at += {"run": 2, "long": 1_900}.get(what, 0.1)
        world.logic.firing.look_at_policies()
        world.run(at)
        cluster = world.logic._clusters.named("lab")
        kept = losing_of(world)
        dict(kept.look(cluster.nodes, RULES))
        anew = LosingOwners(cluster.nodes.values())
        anew.count(1_000)
        dict(anew.look(cluster.nodes, RULES))
        assert (kept._places, kept._staying) == (anew._places, anew._staying)
        for aggregate in cluster.nodes.values():
            aggregate.workloads = kept
