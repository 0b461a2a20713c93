"""Nodes that fall silent, as a plan for a bad day: what the node lifecycle controller would make of it, and when."""

from collections.abc import Collection, Iterable

from evictstream.kit.upstream.lifecycle import (
    ClusterChange,
    LifecycleClock,
    LifecycleSettings,
    NodeLifecycle,
    RequestPace,
    WatchedNode,
    WatchedPod,
)
from evictstream.models.instants import SECOND_US

HEARTBEAT_US = 10 * SECOND_US
"""Between two renewals of a lease: a quarter of `nodeLeaseDurationSeconds`, as kubelets do it."""


def play_silence(
    nodes: Iterable[WatchedNode],
    pods: Iterable[WatchedPod],
    silent: Collection[str],
    *,
    until_us: int,
    settings: LifecycleSettings | None = None,
    pace: RequestPace | None = None,
) -> list[ClusterChange]:
    """Let nodes fall silent for good at the instant 0; all others go on.

    Args:
        nodes: of the whole cluster, as they are right before; zones are judged by all their nodes.
        pods: of the whole cluster: marking those of silent nodes is what makes a round slow.
        silent: names of the nodes that send no more heartbeats.
        until_us: the end.
        settings: flags of the controller; the release's defaults if absent.
        pace: how long its requests take; the release's defaults if absent.

    Returns:
        All changes in the order of their times, microseconds after the last heartbeat.
    """
    lifecycle = NodeLifecycle(settings)
    clock = LifecycleClock(lifecycle, 0, pace or RequestPace())
    names = []
    for node in nodes:
        clock.put_node(node, 0)
        lifecycle.renew_lease(node.name, 0)
        names.append(node.name)
    for pod in pods:
        clock.put_pod(pod, 0)
    others = [name for name in names if name not in silent]
    changes: list[ClusterChange] = []
    for at_us in range(0, until_us, HEARTBEAT_US):
        for name in others:
            lifecycle.renew_lease(name, at_us)
        changes += clock.advance(min(at_us + HEARTBEAT_US - 1, until_us))
    return [*changes, *clock.advance(until_us)]
