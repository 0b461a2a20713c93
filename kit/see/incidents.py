"""Incidents as their topic tells them, and those that other policies would find in the rows."""

from __future__ import annotations

import sys
from collections.abc import Callable

from evictstream.kit.see.steering import Steering
from evictstream.kit.see.stored_state import StoredCluster
from evictstream.models.eviction.held_attempts import guarded_node
from evictstream.models.eviction.losing_owners import LosingOwners
from evictstream.models.messages.incident import Incident, decode_incident
from evictstream.models.messages.unreadable import Unreadable
from evictstream.models.steering.guarded_nodes import Covered
from evictstream.models.steering.incidents import (
    MOST_INCIDENTS,
    OpenIncident,
    found_together,
    open_incident,
    standing_incidents,
)
from evictstream.models.steering.owner_counts import OwnerCount, guard_count
from evictstream.streams.broker.follow import FollowedRecord, follow
from evictstream.streams.settings import Settings


def read_incidents(settings: Settings, on_problem: Callable[[str], None]) -> dict[str, Incident]:
    """Read the incidents that stand, by id; `on_problem` is told of each record that cannot be read.

    Raises:
        BrokerError: the topic cannot be read, or is missing.
    """
    topic = settings.incidents_topic
    newest: dict[bytes, FollowedRecord] = {}
    with follow(settings, topic, "beginning", is_stopped=lambda: False, idle_seconds=0.0) as batches:
        for batch in batches:
            for record in sorted(batch, key=lambda one: (one.partition, one.offset)):
                newest[record.key or b""] = record
    found: dict[str, Incident] = {}
    for record in newest.values():
        if record.value is None:
            continue
        try:
            incident = decode_incident(record.value)
        except Unreadable as error:
            on_problem(f"{topic}, {record.place} cannot be read: {error}")
            continue
        found[incident.id] = incident
    return found


def found_incidents(cluster: StoredCluster, steering: Steering, now_us: int) -> tuple[OpenIncident, ...]:
    """Return the incidents of a cluster that stand under some policies, and those that their guards would find now."""
    policies = [one for one in steering.policies.of_cluster(cluster.name) if one.guard is not None]
    found = list(cluster.state.incidents)
    covered: dict[str, dict[str, list[Covered]]] = {}
    for standing in standing_incidents(found, policies):
        of_policy = covered.setdefault(standing.incident.policy, {})
        of_policy.setdefault(standing.incident.taint, []).append(standing.covered(now_us))
    for policy in policies:
        assert policy.policy.spec is not None  # noqa: S101 - it has a guard
        count, name = guard_count(policy.policy.spec, cluster.name), policy.policy.name
        for aggregate in cluster.nodes.values():
            count.see(guarded_node(aggregate, counts_pods=count.counts_pods))
        if isinstance(count, OwnerCount):
            losing = LosingOwners(cluster.nodes.values())
            losing.count(sys.maxsize)
            for owner, places in losing.look(cluster.nodes):
                count.see_owner(owner, places)
        exceeded = count.exceeded(now_us, covered.get(name, {}))
        room = MOST_INCIDENTS - len(found)
        found += [open_incident(cluster.name, policy, one, now_us) for one in found_together(exceeded, room)]
    return tuple(found)
