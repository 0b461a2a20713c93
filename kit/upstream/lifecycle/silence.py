"""When a node counts as silent, and which conditions are then written (semantics.md 7.3).

Source: `pkg/controller/nodelifecycle/node_lifecycle_controller.go` (`tryUpdateNodeHealth`). A heartbeat is a changed
`lastHeartbeatTime` of the condition `Ready`, or a node lease with a later renewal. The controller counts from the
moment at which *it* saw the heartbeat, so clocks of nodes do not matter.

Two things follow from the source that look odd and are kept:
- A new node status forgets the remembered lease. The same old lease then counts as a heartbeat in the next round.
- Conditions other than `Ready` are written only together with a change of `Ready`. A node whose `Ready` is Unknown
  already keeps its other conditions, however long it is silent.
"""

import dataclasses
from typing import Final

from evictstream.kit.upstream.lifecycle.leases import NodeLease
from evictstream.kit.upstream.lifecycle.nodes import (
    DISK_PRESSURE,
    MEMORY_PRESSURE,
    PID_PRESSURE,
    READY,
    UNKNOWN,
    Condition,
    WatchedNode,
    find_condition,
)
from evictstream.kit.upstream.lifecycle.settings import LifecycleSettings
from evictstream.models.instants import SECOND_US

SILENCED_TYPES: Final = (READY, MEMORY_PRESSURE, DISK_PRESSURE, PID_PRESSURE)
"""Conditions that become Unknown, in the order of writing. Not `NetworkUnavailable`: the kubelet does not report it."""

STOPPED_REASON: Final = "NodeStatusUnknown"
STOPPED_MESSAGE: Final = "Kubelet stopped posting node status."
NEVER_REASON: Final = "NodeStatusNeverUpdated"
NEVER_MESSAGE: Final = "Kubelet never posted node status."


@dataclasses.dataclass(frozen=True, slots=True)
class NodeHealth:
    """The controller's memory of a node between rounds.

    Attributes:
        probe_at_us: when the last heartbeat was seen; the grace period counts from here.
        ready_transition_at_us: when the last change of `Ready` was seen.
        ready: the condition `Ready` of the last change, None if there was none.
        lease: the lease that was a heartbeat last, None if none was.
    """

    probe_at_us: int
    ready_transition_at_us: int
    ready: Condition | None = None
    lease: NodeLease | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class HealthUpdate:
    """The result of checking one node.

    Attributes:
        health: the memory for the next round.
        unwritten: the same if the controller leaves it at this check and writes nothing.
        grace_period_us: how long this node may be silent.
        is_silent: whether it has been silent for longer.
        observed: `Ready` before this check. Unknown, as old as the node, if it has none.
        current: `Ready` after this check, None if there still is none. It decides about the zone's state and, since
            Kubernetes 1.29, about the health taint.
        written: all conditions of the node to write, None if none changed.
    """

    health: NodeHealth
    unwritten: NodeHealth
    grace_period_us: int
    is_silent: bool
    observed: Condition
    current: Condition | None
    written: tuple[Condition, ...] | None


def update_health(
    node: WatchedNode,
    saved: NodeHealth | None,
    lease: NodeLease | None,
    settings: LifecycleSettings,
    now_us: int,
) -> HealthUpdate:
    """Check one node.

    Args:
        node: as it is now.
        saved: the memory from the previous round, None in the first one.
        lease: its lease as the cache has it, None if it has none.
        settings: the two grace periods.
        now_us: the time.
    """
    current = find_condition(node.conditions, READY)
    if current is None:
        observed = Condition(READY, UNKNOWN, heartbeat_at_us=node.created_at_us, transition_at_us=node.created_at_us)
        grace_period_us = settings.startup_grace_period_us
        health = (
            NodeHealth(node.created_at_us, node.created_at_us)
            if saved is None
            else dataclasses.replace(saved, ready=None)
        )
    else:
        observed = current
        grace_period_us = settings.monitor_grace_period_us
        health = _health_with_ready(saved, current, now_us)
    saved_lease = None if saved is None else saved.lease
    if lease is not None and (saved_lease is None or saved_lease.renewed_at_us < lease.renewed_at_us):
        health = dataclasses.replace(health, lease=lease, probe_at_us=now_us)

    is_silent = now_us > health.probe_at_us + grace_period_us
    if is_silent:
        silenced = _silenced(node, now_us)
        ready = find_condition(silenced, READY)
        if ready is not None and ready != observed:
            # The controller's own copy keeps the fraction of a second that the API server drops.
            remembered = dataclasses.replace(ready, transition_at_us=now_us)
            return HealthUpdate(
                health=NodeHealth(health.probe_at_us, now_us, remembered, lease),
                unwritten=health,
                grace_period_us=grace_period_us,
                is_silent=True,
                observed=observed,
                current=ready,
                written=silenced,
            )
    return HealthUpdate(
        health=health,
        unwritten=health,
        grace_period_us=grace_period_us,
        is_silent=is_silent,
        observed=observed,
        current=current,
        written=None,
    )


def _health_with_ready(saved: NodeHealth | None, current: Condition, now_us: int) -> NodeHealth:
    """Build the memory after a heartbeat in `Ready`: the grace period starts now, and the lease is forgotten."""
    if saved is None or saved.ready is None:
        return NodeHealth(now_us, now_us, current)
    if saved.ready.heartbeat_at_us == current.heartbeat_at_us:
        return saved
    has_turned = saved.ready.transition_at_us != current.transition_at_us
    return NodeHealth(now_us, now_us if has_turned else saved.ready_transition_at_us, current)


def _silenced(node: WatchedNode, now_us: int) -> tuple[Condition, ...]:
    """Turn the kubelet's conditions to Unknown; missing ones come at the end, those that are Unknown stay."""
    at_us = now_us - now_us % SECOND_US  # API objects keep whole seconds
    conditions = list(node.conditions)
    for wanted in SILENCED_TYPES:
        place = next((index for index, one in enumerate(conditions) if one.type == wanted), None)
        if place is None:
            conditions.append(
                Condition(
                    wanted,
                    UNKNOWN,
                    NEVER_REASON,
                    NEVER_MESSAGE,
                    heartbeat_at_us=node.created_at_us,
                    transition_at_us=at_us,
                )
            )
        elif conditions[place].status != UNKNOWN:
            heartbeat_at_us = conditions[place].heartbeat_at_us
            conditions[place] = Condition(
                wanted,
                UNKNOWN,
                STOPPED_REASON,
                STOPPED_MESSAGE,
                heartbeat_at_us=heartbeat_at_us,
                transition_at_us=at_us,
            )
    return tuple(conditions)
