"""Nodes that fall silent at once, with the release's settings: which get `unreachable:NoExecute`, and when."""

from __future__ import annotations

import pytest

from evictstream.kit.upstream.lifecycle import (
    INSTANT,
    Condition,
    LifecycleSettings,
    TaintsChanged,
    WatchedNode,
    WatchedPod,
)
from evictstream.kit.upstream.silence import play_silence
from evictstream.models.kubernetes import NO_EXECUTE

SECOND_US = 1_000_000
UNTIL_US = 160 * SECOND_US


def tainted(
    *zones: tuple[int, int], settings: LifecycleSettings | None = None, pods: int = 10
) -> list[tuple[str, int]]:
    """Return node and whole second of each taint; zones are given as nodes and silent nodes."""
    names = {
        f"z{zone}-n{number}": number < silent for zone, (size, silent) in enumerate(zones) for number in range(size)
    }
    nodes = [
        WatchedNode(
            name,
            labels={"topology.kubernetes.io/zone": name.partition("-")[0]},
            conditions=(Condition("Ready", "True"),),
        )
        for name in names
    ]
    found = play_silence(
        nodes,
        [WatchedPod("lab", f"{name}-{number}", name) for name in names for number in range(pods)],
        {name for name, is_silent in names.items() if is_silent},
        until_us=UNTIL_US,
        settings=settings,
    )
    return [
        (change.node, change.at_us // SECOND_US)
        for change in found
        if isinstance(change, TaintsChanged) and any(taint.effect == NO_EXECUTE for taint in change.added)
    ]


@pytest.mark.parametrize(
    ("zones", "expected"),
    [
        pytest.param([(3, 1)], [("z0-n0", 55)], id="one node, in the round after its grace"),
        pytest.param(
            [(10, 3), (10, 0)], [("z0-n0", 55), ("z0-n1", 65), ("z0-n2", 75)], id="a few nodes, one each ten seconds"
        ),
        pytest.param([(10, 0)], [], id="nobody is silent"),
    ],
)
def test_silent_nodes_are_tainted(zones: list[tuple[int, int]], expected: list[tuple[str, int]]) -> None:
    assert tainted(*zones) == expected


def test_a_whole_zone_is_tainted_node_by_node() -> None:
    assert len(tainted((10, 10), (10, 0))) == 10


def test_a_silent_cluster_is_spared_but_for_the_first_round() -> None:
    """Writing the pods takes the round seconds, and each zone loses a node before the round finds that all are."""
    assert [node for node, _ in tainted((6, 6), (6, 6))] == ["z0-n0", "z1-n0"]


def test_reading_leases_lets_a_silent_cluster_lose_more_nodes() -> None:
    """Since Kubernetes 1.37: one request more for each node, before its conditions are written (semantics.md 8.6)."""
    fewer, more = (
        tainted((90, 90), (90, 90), settings=LifecycleSettings(reads_live_leases=reads), pods=0)
        for reads in (False, True)
    )
    assert (len(fewer), len(more)) == (3, 6)


def test_flags_of_the_controller_count() -> None:
    fast = LifecycleSettings(monitor_grace_period_us=40 * SECOND_US, eviction_rate=1)
    assert tainted((10, 3), (10, 0), settings=fast) == [("z0-n0", 45), ("z0-n1", 46), ("z0-n2", 47)]


def test_what_comes_after_the_end_is_left_out() -> None:
    node = WatchedNode("n", conditions=(Condition("Ready", "True"),))
    for until_s, taints in ((50, 0), (56, 1)):
        found = play_silence([node], (), {"n"}, until_us=until_s * SECOND_US, pace=INSTANT)
        assert sum(isinstance(change, TaintsChanged) for change in found) == taints
