"""Nodes that fall silent, foreseen from what is known of a cluster: all labels count, and every order of nodes."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from evictstream.kit.upstream.lifecycle import LifecycleSettings, RequestPace
from evictstream.kit.what_if import silent_nodes
from evictstream.kit.what_if.change import NodeChoice
from evictstream.kit.what_if.facts import NodeFacts
from evictstream.kit.what_if.preview import PreviewCluster, PreviewNode
from evictstream.kit.what_if.silent_nodes import SilencePreview, preview_silence
from evictstream.models.eviction import NodeAggregate, PodState
from evictstream.models.eviction.state import NodeState
from evictstream.models.kubernetes import UNREACHABLE
from evictstream.models.kubernetes.tolerations import Toleration

SECOND_US = 1_000_000
ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
EXCLUDED = {"node.kubernetes.io/exclude-disruption": ""}
A, B = {ZONE: "a"}, {ZONE: "b"}


@pytest.fixture(autouse=True)
def _only_extremes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Play as in a large cluster, which is quick with few nodes."""
    monkeypatch.setattr(silent_nodes, "FEW_NODES", 0)


def node(name: str, labels: Mapping[str, str], pods: int, seconds: int) -> PreviewNode:
    aggregate = NodeAggregate("c", name)
    aggregate.node = NodeState(uid=f"uid-{name}", version=1)
    for number in range(pods):
        aggregate.put_pod(
            PodState(
                uid=f"{name}-{number}",
                address=f"shop/{name}-{number}",
                version=1,
                tolerations=(Toleration(UNREACHABLE, "Exists", "", "NoExecute", seconds),),
                since_us=0,
                tolerations_since_us=0,
            )
        )
    return PreviewNode(aggregate, NodeFacts(labels=labels, has_all_labels=True))


def preview(
    silent: list[tuple[Mapping[str, str], int]],
    others: list[Mapping[str, str]],
    *,
    seconds: int = 10,
    until: int = 200,
    settings: LifecycleSettings | None = None,
    pace: RequestPace | None = None,
) -> SilencePreview:
    """Let nodes fall silent, each with its labels and its count of pods, beside others that do not."""
    nodes = {f"s{at}": node(f"s{at}", labels, pods, seconds) for at, (labels, pods) in enumerate(silent)}
    chosen = NodeChoice(names=frozenset(nodes))
    nodes |= {f"o{at}": node(f"o{at}", labels, 0, seconds) for at, labels in enumerate(others)}
    known = PreviewCluster(nodes=nodes, pods={})
    return preview_silence(known, chosen, until_us=until * SECOND_US, settings=settings, pace=pace)


@pytest.mark.parametrize(
    ("silent", "others", "taints"),
    [
        pytest.param(A, [A] * 4, (0, 1), id="six of ten nodes, a zone in partial disruption"),
        pytest.param(A | {REGION: "r"}, [A | {REGION: "s"}] * 4, (6, 6), id="another region, so another zone"),
        pytest.param(A, [*([A | EXCLUDED] * 4), B], (6, 6), id="all that count in their zone"),
        pytest.param(A | EXCLUDED, [A] * 4, (6, 6), id="none that counts in its zone"),
        pytest.param(A | {BETA_ZONE: "c"}, [A] * 4, (6, 6), id="the beta label wins"),
    ],
)
def test_labels_tell_the_zone(
    silent: Mapping[str, str], others: list[Mapping[str, str]], taints: tuple[int, int]
) -> None:
    assert preview([(silent, 1)] * 6, others).outcome.taints == taints


def test_any_node_of_a_zone_may_come_first() -> None:
    """One of two nodes is tainted in time: it may be the full one or the other."""
    found = preview([(A, 20), (A, 2)], [A] * 8, seconds=0, until=60).outcome
    assert found.taints == (1, 1)
    assert found.evictions == (2, 20)
    assert (len(found.surely_evicted), len(found.possibly_evicted)) == (0, 22)


def test_a_pod_goes_surely_with_time_on_the_last_node() -> None:
    in_time = preview([(A, 1)] * 3, [A] * 8, seconds=100).outcome
    assert (in_time.evictions, len(in_time.surely_evicted)) == ((3, 3), 3)
    too_late = preview([(A, 1)] * 3, [A] * 8, seconds=130).outcome
    assert too_late.evictions == (2, 2)
    assert (len(too_late.surely_evicted), len(too_late.possibly_evicted)) == (0, 3)


def test_flags_of_the_controller_count() -> None:
    def taints(**flags: float) -> tuple[int, int]:
        return preview([(A, 0)] * 6, [A] * 20, until=62, settings=LifecycleSettings(**flags)).outcome.taints  # type: ignore[arg-type]

    assert taints() == (1, 1)
    assert taints(eviction_rate=100.0)[1] == 6
    assert taints(monitor_grace_period_us=40 * SECOND_US) == (2, 2)
    assert taints(eviction_rate=0.0) == (0, 0)


def test_labels_that_are_not_known_are_counted() -> None:
    nodes = {"n": PreviewNode(node("n", A, 0, 0).aggregate, NodeFacts(labels=A))}
    found = preview_silence(PreviewCluster(nodes=nodes, pods={}), NodeChoice(), until_us=SECOND_US)
    assert (found.nodes, found.unlabelled) == (1, 1)
