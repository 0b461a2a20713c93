"""Where a pod that leaves could land, and that a large cluster takes seconds."""

from __future__ import annotations

import time

import pytest

from evictstream.kit.rules.scheduling.node_affinity import (
    ANYWHERE,
    NodePlacement,
    NodeRequirement,
    NodeTerm,
)
from evictstream.kit.what_if.facts import NodeFacts
from evictstream.kit.what_if.places import Places, PlaceToGo
from evictstream.models.kubernetes import Taint, Toleration

EXECUTE = Taint("down", "", "NoExecute")
GPU = Taint("gpu", "", "NoSchedule")
FOR_EVER = (Toleration("down", "Exists"),)
FOR_300_S = (Toleration("down", "Exists", toleration_seconds=300),)
ON_N1 = NodePlacement((), (NodeTerm(None, (NodeRequirement("metadata.name", "In", ("n-1",)),)),))


def node(*taints: Taint, cordoned: bool = False, **labels: str) -> NodeFacts:
    return NodeFacts(labels=labels, has_all_labels=True, taints=taints, unschedulable=cordoned)


def labelled(key: str, operator: str, *values: str) -> NodePlacement:
    return NodePlacement((), (NodeTerm((NodeRequirement(key, operator, values),)),))


TRIMMED = NodeFacts(labels={"zone": "a"})


@pytest.mark.parametrize(
    ("nodes", "tolerations", "placement", "expected"),
    [
        pytest.param([node()], (), ANYWHERE, "Somewhere", id="an open node"),
        pytest.param([], (), ANYWHERE, "Nowhere", id="no node"),
        pytest.param([node(EXECUTE), node(GPU)], (), ANYWHERE, "Nowhere", id="taints everywhere"),
        pytest.param([node(Taint("x", "", "PreferNoSchedule"))], (), ANYWHERE, "Somewhere", id="a soft taint"),
        pytest.param([node(cordoned=True)], (), ANYWHERE, "Nowhere", id="cordoned"),
        pytest.param(
            [node(cordoned=True)], (Toleration("", "Exists"),), ANYWHERE, "Somewhere", id="a cordon that is tolerated"
        ),
        pytest.param([node(EXECUTE)], FOR_EVER, ANYWHERE, "Somewhere", id="tolerated forever"),
        pytest.param([node(EXECUTE)], FOR_300_S, ANYWHERE, "ForAWhile", id="tolerated for some seconds"),
        pytest.param([node(EXECUTE), node()], FOR_300_S, ANYWHERE, "Somewhere", id="another node for good"),
        pytest.param([node(zone="a")], (), labelled("zone", "In", "a"), "Somewhere", id="affinity"),
        pytest.param([node(zone="a")], (), labelled("zone", "NotIn", "a"), "Nowhere", id="affinity against it"),
        pytest.param([node(zone="a")], (), NodePlacement((("zone", "b"),)), "Nowhere", id="no node of the zone"),
        pytest.param([node(EXECUTE, zone="a"), node()], (), NodePlacement((("zone", "a"),)), "Nowhere", id="tainted"),
        pytest.param([node(), node(EXECUTE)], (), ON_N1, "Nowhere", id="bound to a tainted node by name"),
        pytest.param([node(EXECUTE), node()], (), ON_N1, "Somewhere", id="bound to an open node by name"),
        pytest.param([node()], (), None, "NotKnown", id="what it asks is not known"),
        pytest.param([node(EXECUTE)], (), None, "Nowhere", id="taints are enough to know"),
        pytest.param([TRIMMED], (), labelled("pool", "In", "gpu"), "NotKnown", id="labels are not known"),
        pytest.param([TRIMMED], (), NodePlacement((("zone", "a"),)), "NotKnown", id="not all labels are known"),
        pytest.param([TRIMMED], (), ANYWHERE, "Somewhere", id="labels are not asked for"),
        pytest.param(
            [TRIMMED, node(zone="a")], (), NodePlacement((("zone", "a"),)), "Somewhere", id="one node is known"
        ),
        pytest.param(
            [TRIMMED, node(EXECUTE, zone="a")],
            FOR_300_S,
            NodePlacement((("zone", "a"),)),
            "NotKnown",
            id="for a while, perhaps for good",
        ),
    ],
)
def test_where_a_pod_could_go(
    nodes: list[NodeFacts], tolerations: tuple[Toleration, ...], placement: NodePlacement | None, expected: str
) -> None:
    places = Places(((f"n-{number}", one) for number, one in enumerate(nodes)), comparison_operators=False)
    for _ in range(2):  # the second answer is remembered
        assert places.place_for(tolerations, placement) == PlaceToGo(expected)


def test_a_large_cluster_takes_seconds() -> None:
    """5,000 nodes; 50,000 pods, of which ten times 5,000 are bound to their node by name, as those of DaemonSets."""
    nodes = [(f"n-{number}", node(zone=f"z-{number % 3}", host=str(number))) for number in range(5_000)]
    places = Places(nodes, comparison_operators=False)
    began = time.process_time()
    found = set()
    for name, facts in nodes:
        bound = NodePlacement((), (NodeTerm(None, (NodeRequirement("metadata.name", "In", (name,)),)),))
        found |= {places.place_for(FOR_300_S, bound) for _ in range(10)}
        found.add(places.place_for((), NodePlacement((("host", facts.labels["host"]),))))
    assert found == {PlaceToGo.SOMEWHERE}
    assert time.process_time() - began < 5  # 0.2 s when it was written: far from 5,000 times 5,000 looks
