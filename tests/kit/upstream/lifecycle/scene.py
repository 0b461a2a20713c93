"""Nodes and times for the tests of the node lifecycle model; named as in Kubernetes' own tests."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from evictstream.kit.upstream.lifecycle import Condition, LifecycleSettings, NodeLifecycle, WatchedNode
from evictstream.models.kubernetes import Taint

SECOND_US = 1_000_000
MINUTE_US = 60 * SECOND_US
HOUR_US = 60 * MINUTE_US

LONG_AGO_US = 1_325_376_000 * SECOND_US  # 2012-01-01T00:00:00Z
FAKE_NOW_US = 1_420_113_600 * SECOND_US  # 2015-01-01T12:00:00Z

REGION = "failure-domain.beta.kubernetes.io/region"
ZONE = "failure-domain.beta.kubernetes.io/zone"
ZONE_1 = "region1:\0:zone1"
ZONE_2 = "region1:\0:zone2"

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"


def ready(status: str, heartbeat_at_us: int = FAKE_NOW_US, transition_at_us: int = FAKE_NOW_US) -> Condition:
    return Condition("Ready", status, heartbeat_at_us=heartbeat_at_us, transition_at_us=transition_at_us)


def node(
    name: str = "node0",
    *conditions: Condition,
    zone: str = "zone1",
    region: str = "region1",
    created_at_us: int = LONG_AGO_US,
    taints: tuple[Taint, ...] = (),
    labels: Mapping[str, str] | None = None,
) -> WatchedNode:
    """Make a node; an empty region and zone leave the labels out."""
    place = {REGION: region, ZONE: zone} if region or zone else {}
    return WatchedNode(
        name, f"uid-{name}", {**place, **(labels or {})}, created_at_us, conditions=conditions, taints=taints
    )


def settings(rate: float = float("inf")) -> LifecycleSettings:
    """Make the settings of Kubernetes' own tests; their limiter of 100,000 per second is none at all here."""
    return LifecycleSettings(eviction_rate=rate, secondary_eviction_rate=rate, large_cluster_size_threshold=20)


def started(*nodes: WatchedNode, at_us: int = FAKE_NOW_US, rate: float = float("inf")) -> NodeLifecycle:
    """Make a controller that knows some nodes and has not done a round yet."""
    lifecycle = NodeLifecycle(settings(rate))
    for one in nodes:
        lifecycle.put_node(one, at_us)
    return lifecycle


def taints_of(lifecycle: NodeLifecycle, name: str, effect: str = "NoExecute") -> list[str]:
    """List the keys of a node's taints with an effect, in node order."""
    return [taint.key for taint in lifecycle.nodes[name].taints if taint.effect == effect]


def down(name: str, zone: str = "zone1", region: str = "region1") -> WatchedNode:
    return node(name, ready("Unknown"), zone=zone, region=region, created_at_us=FAKE_NOW_US)


def up(name: str, zone: str = "zone1", region: str = "region1", labels: Mapping[str, str] | None = None) -> WatchedNode:
    return node(name, ready("True"), zone=zone, region=region, created_at_us=FAKE_NOW_US, labels=labels)


def put_status(lifecycle: NodeLifecycle, name: str, *conditions: Condition, at_us: int) -> None:
    lifecycle.put_node(dataclasses.replace(lifecycle.nodes[name], conditions=conditions), at_us)
