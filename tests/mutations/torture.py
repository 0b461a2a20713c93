"""Mutations that random schedules have to notice: nobody has thought of the moment at which each of them matters."""

from __future__ import annotations

from tests.mutations import product
from tests.mutations.catalogue import Mutation
from tests.mutations.matching import Change

TORTURE = "tests/faults/test_sample.py"
FOUND = "tests/faults/test_found.py"
STORMS = "tests/faults/test_storms.py"

BY_TORTURE = (
    Mutation(
        "torture: forget a cancel",
        (
            Change(
                product.RENDERING,
                "_tell",
                "step.commands.append",
                "(lambda command: None if command.action == 'Cancel' else $0(command))",
            ),
        ),
        (TORTURE,),
    ),
    Mutation(
        "torture: open the gates that wait for the inputs",
        (
            Change(product.GATES, "Gates.closed", "not writer.caught_up", "False"),
            Change(product.GATES, "Gates.closed", "age > self._lag_limit_seconds", "False"),
        ),
        (FOUND,),
    ),
    Mutation(
        "torture: fire without asking again",
        (Change(product.POD_STEPS, "fire", "reconcile(step, pod)", "pod.eviction.due"),),
        (TORTURE,),
    ),
    Mutation(
        "torture: let seconds overflow",
        (Change(product.DECISION, "_expiry", "deadline_us > LAST_INSTANT_US", "False"),),
        (TORTURE,),
    ),
    Mutation(
        "torture: begin windows anew at a restart",
        (
            Change(
                product.EVICTION_PARTITION,
                "EvictionPartition.loaded",
                "self._nodes[node.timer_key] = node",
                "$0\n[setattr(pod, 'since_us', self._config.now_us()) for pod in node.pods.values()]",
            ),
        ),
        (TORTURE,),
    ),
    Mutation(
        "torture: keep state after a failed transaction",
        (
            Change(
                product.PARTITION_PRODUCER,
                "PartitionProducer.commit",
                "broker_ms = await self._in_time(...)",
                'broker_ms = -1\nwith __import__("contextlib").suppress(PartitionLostError):\n    $0',
            ),
        ),
        (TORTURE,),
    ),
    Mutation(
        "torture: leave some edits out of the rows",
        (Change(product.POD_STEPS, "apply_pod", "step.write_pod(pod)", "pass"),),
        (TORTURE,),
    ),
    Mutation(
        "torture: skip the fence",
        (
            Change(
                product.PARTITION_PRODUCER,
                "PartitionProducer.__init__",
                "transactional_id=...",
                "$0 + str(id(self))",
            ),
        ),
        (TORTURE,),
    ),
    Mutation(
        "torture: read uncommitted rows",
        (
            Change(
                product.CHANGELOG,
                "KafkaLogReader.__init__",
                "isolation_level=isolation",
                'isolation_level="read_uncommitted"',
            ),
        ),
        (TORTURE,),
    ),
    Mutation(
        "torture: begin at the end of the inputs after a takeover",
        (Change(product.TAKEOVER, "_settle_positions", "max(position, start)", "end"),),
        (TORTURE,),
    ),
    Mutation(
        "torture: write positions without their rows and messages",
        (
            Change(
                product.COMMITTER,
                "Committer._commit",
                "self.outbox.take()",
                "[$0, Outbox()][self.transactions % 3 == 2]",
            ),
        ),
        (TORTURE,),
    ),
    Mutation(
        "torture: do not mind a silent feed",
        (
            Change(
                product.CLUSTER,
                "ClusterState.is_silent",
                "heard_at_us is not None and heard_at_us < older_than_us",
                "False",
            ),
        ),
        (TORTURE,),
    ),
    Mutation(
        "torture: trust any clock",
        (Change(product.CLOCK, "ClockWatch.objection", "ahead_us > self._skew_limit_us", "False"),),
        (FOUND,),
    ),
    Mutation(
        "torture: keep no timers over a restart",
        (Change(product.EVICTION_PARTITION, "EvictionPartition.loaded", "self._timers.rebuild()", "pass"),),
        (TORTURE,),
    ),
    Mutation(
        "torture: forget the former heap before its wake-ups are moved",
        (
            Change(
                product.TIMERS,
                "TimerHeap.push",
                "self._former, self._heap = self._heap, []",
                "self._former, self._heap = [], []",
            ),
        ),
        (TORTURE,),
    ),
    Mutation(
        "torture: begin a window anew when a taint's value changes",
        (Change(product.TAINT_HISTORY, "_carry", "before.since_us", "at_us"),),
        (TORTURE,),
    ),
    Mutation(
        "torture: forget incidents after a takeover",
        (
            Change(
                product.PARTITION_CLUSTERS,
                "Clusters.load",
                "_states.decode(value)",
                '__import__("msgspec").structs.replace($0, incidents=())',
            ),
        ),
        (STORMS,),
    ),
    Mutation(
        "torture: count owners of which a pod stays",
        (
            Change(
                product.LOSING_OWNERS,
                "LosingOwners.look",
                "{} if owner in self._staying else self._places.get(owner, {})",
                "self._places.get(owner, {})",
            ),
        ),
        (STORMS,),
    ),
    Mutation(
        "torture: count no owner of what a takeover has loaded",
        (Change(product.CLUSTER, "Cluster.count_losing", "self.nodes.values()", "()"),),
        (STORMS,),
    ),
    Mutation(
        "torture: count an owner on its first node",
        (
            Change(
                product.OWNER_COUNTS,
                "OwnerCount.see_owner",
                "max(self._arrivals_of(places), default=None)",
                "min(self._arrivals_of(places), default=None)",
            ),
        ),
        (STORMS,),
    ),
    Mutation(
        "torture: release an incident without approval",
        (
            Change(
                product.STEERING_INCIDENTS,
                "StandingIncident._let_go_us",
                "return self.release_us",
                "return self.release_us or self.incident.opened_us",
            ),
        ),
        (STORMS,),
    ),
    Mutation(
        "torture: let a recovery release an incident",
        (
            Change(
                product.GUARDING,
                "Guarding._look",
                "count.has_any(incident.taint, covers)",
                "len(count.of_span(incident.taint, covers)) > incident.limit",
            ),
        ),
        (STORMS,),
    ),
    Mutation(
        "torture: let an approval never expire",
        (
            Change(
                product.STEERING_INCIDENTS,
                "StandingIncident.state",
                "found[0].expires_at is None or now_us < microseconds(found[0].expires_at)",
                "True",
            ),
        ),
        (STORMS,),
    ),
    Mutation(
        "torture: keep a rejected incident for later nodes",
        (
            Change(
                product.STEERING_INCIDENTS,
                "StandingIncident.answered_us",
                "min(instants, default=None)",
                "None",
            ),
        ),
        (STORMS,),
    ),
    Mutation(
        "torture: let all of an approved incident go at once",
        (Change(product.STEERING_INCIDENTS, "StandingIncident.hold", "let_go_us + ...", "let_go_us"),),
        (STORMS,),
    ),
    Mutation(
        "torture: repeat for another taint before the guards have looked",
        (Change(product.FIRING, "Firing._wake", "aggregate.cluster in self.guarding.idle", "False"),),
        (STORMS,),
    ),
    Mutation(
        "torture: fire before the guards have looked",
        (Change(product.FIRING, "Firing.fire", "self.guarding.turn(now_us, outbox)", "pass"),),
        (STORMS,),
    ),
    Mutation(
        "torture: count all zones together",
        (Change(product.STEERING_GUARDS, "GuardCount._part", "self.guard.by is GuardScope.ZONE", "False"),),
        (STORMS,),
    ),
    Mutation(
        "torture: forget the zones of incidents after a takeover",
        (
            Change(
                product.PARTITION_CLUSTERS,
                "Clusters.load",
                "_states.decode(value)",
                "(lambda replace, row: replace(row, incidents=tuple(replace(one, zone=None) for one in row.incidents)))"
                '(__import__("msgspec").structs.replace, $0)',
            ),
        ),
        (STORMS,),
    ),
    Mutation(
        "torture: count only pods that are still there",
        (Change(product.LEAVING_PODS, "leaving_pods", "found.update(aggregate.left[1])", "pass"),),
        (STORMS,),
    ),
    Mutation(
        "torture: count a node in the zone that it had",
        (Change(product.STEERING_GUARDS, "GuardCount.see", "zone == was_in", "True"),),
        (STORMS,),
    ),
    Mutation(
        "torture: let an incident of a zone hold all zones",
        (
            Change(
                product.GUARDED_NODES,
                "GuardedPart.has",
                'self.zone is None or self.zone == (zone or "")',
                "True",
            ),
        ),
        (STORMS,),
    ),
    Mutation(
        "torture: forget in which zone a deleted node was",
        (Change(product.HELD_ATTEMPTS, "guarded_node", "zone=left.zone", "zone=None"),),
        (STORMS,),
    ),
)
