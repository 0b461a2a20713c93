"""Mutations of what policies hold in outages of zones, and of the counts of nodes."""

from __future__ import annotations

from tests.mutations import product
from tests.mutations.catalogue import Mutation
from tests.mutations.matching import Change

COUNTS = "tests/models/steering/test_node_counts.py"
HOLDS = "tests/models/steering/test_zone_holds.py"
HELD = "tests/streams/partition/test_outages_held.py"
TRIAL = "tests/kit/replay/test_zone_trial.py"

OF_OUTAGES = (
    Mutation(
        "ignore the hold of a zone after a takeover",
        (Change(product.CLUSTER, "Cluster.count_nodes", "known_nodes(...)", "KnownNodes()"),),
        (HELD,),
    ),
    Mutation(
        "forget until when a zone was out after a takeover",
        (Change(product.CLUSTER, "Cluster.count_nodes", "self.state.history", "None"),),
        (HELD,),
    ),
    Mutation(
        "count no deleted node",
        (Change(product.NODE_STANDING, "node_standing", "left is None", "True"),),
        (HELD,),
    ),
    Mutation(
        "count deleted nodes as healthy",
        (Change(product.NODE_STANDING, "node_left", "is_unhealthy(node)", "False"),),
        (HELD,),
    ),
    Mutation(
        "count a node by its taints alone",
        (Change(product.NODE_STANDING, "is_unhealthy", "node.is_unready", "False"),),
        (HELD, TRIAL),
    ),
    Mutation(
        "round shares of unhealthy nodes up",
        (
            Change(
                product.NODE_COUNTS,
                "KnownNodes.unhealthy_until_us",
                "of_zone.unhealthy * _ALL >= percent * of_zone.known",
                "of_zone.unhealthy * _ALL + of_zone.known > percent * of_zone.known",
            ),
        ),
        (COUNTS,),
    ),
    Mutation(
        "end joined peaks with the first one",
        (
            Change(
                product.NODE_COUNTS, "_Zone.end", "Peak(second.until_us, ...)", "$0._replace(until_us=first.until_us)"
            ),
        ),
        (COUNTS,),
    ),
    Mutation(
        "let all go when an outage is over",
        (Change(product.ZONE_HOLDS, "OutageHold.open_us", "until_us + share_us(...)", "until_us"),),
        (HOLDS, HELD, TRIAL),
    ),
    Mutation(
        "spread what became due after an outage",
        (Change(product.ZONE_HOLDS, "OutageHold.open_us", "subject.due_us > until_us", "False"),),
        (HOLDS,),
    ),
    Mutation(
        "hold each attempt for the longest time of a hold",
        (Change(product.HELD_ATTEMPTS, "subject_of", "max(eviction.owed_us, due.deadline_us)", "None"),),
        (HELD,),
    ),
    Mutation(
        "hold other taints in an outage",
        (Change(product.ZONE_HOLDS, "OutageHold.open_us", "subject.taint in HEALTH_KEYS", "True"),),
        (HOLDS,),
    ),
    Mutation(
        "wake nothing when an outage is over",
        (Change(product.FIRING, "Firing._wake_recovered", "has_ended is not None", "False"),),
        (HELD,),
    ),
    Mutation(
        "hold a cancel in an outage",
        (
            Change(
                product.NODE_STEPS,
                "_update",
                "taints != node.taints",
                "(taints != node.taints and (taints or not (aggregate.known and aggregate.known.unhealthy(None, 0))))",
            ),
        ),
        (HELD,),
    ),
    Mutation(
        "keep a history without a policy",
        (Change(product.OUTAGE_HISTORIES, "_asks_until_us", "policy.clauses.outage is not None", "True"),),
        (HELD,),
    ),
    Mutation(
        "drop histories while a policy cannot be read",
        (Change(product.OUTAGE_HISTORIES, "OutageHistories.turn", "not self._held.is_current", "False"),),
        (HELD,),
    ),
    Mutation(
        "drop a history before what it spreads has gone",
        (Change(product.OUTAGE_HISTORIES, "_asks_until_us", "ended_us + spread_us", "ended_us"),),
        (HELD,),
    ),
    Mutation(
        "keep no history of a new cluster",
        (Change(product.EFFECTS, "StepEffects.see_new", "self.histories.see_new(...)", "None"),),
        (HELD,),
    ),
)
