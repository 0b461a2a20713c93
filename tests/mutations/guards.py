"""Mutations of what guards count of nodes and zones, of incidents, and of what an answer lets go."""

from __future__ import annotations

from tests.mutations import product
from tests.mutations.catalogue import Mutation
from tests.mutations.matching import Change

HELD = "tests/streams/partition/test_guards_held.py"
ANSWERED = "tests/streams/partition/test_guards_answered.py"
CHANGED = "tests/streams/partition/test_guards_changed.py"
BY_ZONE = "tests/streams/partition/test_guards_by_zone.py"
MACHINE = "tests/streams/partition/test_guards_machine.py"
PUBLISHED = "tests/streams/partition/test_published_incidents.py"
LATE = "tests/streams/partition/test_guards_late_records.py"
KNOWN = "tests/streams/partition/test_guards_known_nodes.py"

OF_GUARDS = (
    Mutation(
        "let an incident begin no earlier than it was found",
        (
            Change(
                product.STEERING_INCIDENTS,
                "begin_earlier",
                "is_of_it and is_near and one.part in (exceeded.part, ALL_NODES)",
                "False",
            ),
        ),
        (LATE,),
    ),
    Mutation(
        "let what was answered begin earlier",
        (Change(product.STEERING_INCIDENTS, "begin_earlier", "not one.answered_us", "True"),),
        (LATE,),
    ),
    Mutation(
        "release an incident without approval",
        (
            Change(
                product.STEERING_INCIDENTS,
                "StandingIncident._let_go_us",
                "return self.release_us",
                "return self.release_us or self.incident.opened_us",
            ),
        ),
        (HELD,),
    ),
    Mutation(
        "release what was rejected",
        (Change(product.STEERING_INCIDENTS, "StandingIncident._let_go_us", "return None", "return self.answer[1]"),),
        (ANSWERED,),
    ),
    Mutation(
        "end the incidents of nodes when zones are counted",
        (Change(product.STEERING_GUARDS, "GuardCount._counted_in", "part.node is not None", "False"),),
        (BY_ZONE,),
    ),
    Mutation(
        "end the incidents of zones when nodes are counted",
        (Change(product.STEERING_GUARDS, "GuardCount._counted_in", "part.zone is not None", "False"),),
        (BY_ZONE,),
    ),
    Mutation(
        "forget an incident after a takeover",
        (
            Change(
                product.GUARDING,
                "Guarding._look",
                "cluster.state.incidents",
                "() if not self._guards else $0",
            ),
            Change(
                product.GUARDING,
                "Guarding._count",
                "cluster = self._clusters.named(name)",
                "cluster = self._clusters.named(name)\n"
                "cluster.state = msgspec.structs.replace(cluster.state, incidents=())",
            ),
        ),
        (ANSWERED,),
    ),
    Mutation(
        "remember that a policy is idle when it is counted again",
        (Change(product.GUARDING, "Guarding._count", "self.idle.pop(name, None)", "pass"),),
        (CHANGED,),
    ),
    Mutation(
        "let an incident go by itself when its answer is lost",
        (Change(product.STEERING_INCIDENTS, "StandingIncident.release_us", "self.incident.by_person", "False"),),
        (ANSWERED,),
    ),
    Mutation(
        "say that an incident waits of which nothing is left",
        (Change(product.PUBLISHED_INCIDENTS, "PublishedIncidents.waiting_since_us", "not said.selected", "False"),),
        (PUBLISHED,),
    ),
    Mutation(
        "forget an answer with the next revision of the policy",
        (Change(product.STEERING_POLICIES, "StandingPolicy.counts_from_us", "answer.counts_from is None", "True"),),
        (ANSWERED,),
    ),
    Mutation(
        "end an incident once as few are left as are allowed",
        (
            Change(
                product.GUARDING,
                "Guarding._look",
                "count.has_any(incident.taint, covers)",
                "len(count.of_span(incident.taint, covers)) > incident.limit",
            ),
        ),
        (HELD, MACHINE),
    ),
    Mutation(
        "let an approval count for what comes later",
        (
            Change(
                product.STEERING_INCIDENTS,
                "StandingIncident.answered_us",
                "min(instants, default=None)",
                "None",
            ),
        ),
        (ANSWERED,),
    ),
    Mutation(
        "let an approval never expire",
        (
            Change(
                product.STEERING_INCIDENTS,
                "StandingIncident.state",
                "found[0].expires_at is None or now_us < microseconds(found[0].expires_at)",
                "True",
            ),
        ),
        (ANSWERED,),
    ),
    Mutation(
        "let all of an approved incident go at once",
        (Change(product.STEERING_INCIDENTS, "StandingIncident.hold", "let_go_us + ...", "let_go_us"),),
        (ANSWERED,),
    ),
    Mutation(
        "count deleted nodes not at all",
        (
            Change(
                product.STEERING_GUARDS,
                "GuardCount.see",
                "node.gone_us + DELETED_NODE_COUNTS_US",
                "node.gone_us",
            ),
        ),
        (KNOWN,),
    ),
    Mutation(
        "count deleted nodes for good",
        (Change(product.STEERING_GUARDS, "GuardCount.exceeded", "self._gone.get(name) == until_us", "False"),),
        (KNOWN,),
    ),
    Mutation(
        "round shares up",
        (
            Change(
                product.STEERING_GUARDS,
                "limit_of",
                "known * guard.share_percent // 100",
                "-(-known * guard.share_percent // 100)",
            ),
        ),
        (KNOWN,),
    ),
    Mutation(
        "let the higher of count and share bind",
        (Change(product.STEERING_GUARDS, "limit_of", "min(limits, default=0)", "max(limits, default=0)"),),
        (KNOWN,),
    ),
    Mutation(
        "look around for no time",
        (Change(product.STEERING_POLICIES, "_Clauses.held", "subject.taint_since_us + LOOK_AROUND_US", "now_us"),),
        (HELD,),
    ),
    Mutation(
        "count taints of all keys together",
        (Change(product.STEERING_INCIDENTS, "StandingIncident.hold", "subject.taint != incident.taint", "False"),),
        (HELD,),
    ),
    Mutation(
        "fire before the guards have looked",
        (Change(product.FIRING, "Firing.fire", "self.guarding.turn(now_us, outbox)", "pass"),),
        (HELD,),
    ),
    Mutation(
        "leave the record of an incident that has ended",
        (Change(product.PUBLISHED_INCIDENTS, "PublishedIncidents._take_back", "name not in stand", "False"),),
        (PUBLISHED,),
    ),
    Mutation(
        "let all go when a guard goes",
        (Change(product.STEERING_POLICIES, "ClusterPolicy._spread", "is_limited or is_guarded", "is_limited"),),
        (CHANGED,),
    ),
    Mutation(
        "make an incident of taints that all pods tolerate",
        (
            Change(
                product.GUARDING,
                "Guarding._has_to_leave",
                "self.idle.setdefault(cluster.name, {}).setdefault(place, set()).add(policy)",
                "return True",
            ),
        ),
        (HELD,),
    ),
    Mutation(
        "repeat for another taint before the guards have looked",
        (Change(product.FIRING, "Firing._wake", "aggregate.cluster in self.guarding.idle", "False"),),
        (HELD,),
    ),
    Mutation(
        "keep what has changed for a guard that has gone",
        (Change(product.GUARDING, "Guarding._take", "self._changed.clear()", "pass"),),
        (CHANGED,),
    ),
    Mutation(
        "keep the keys of a guard that has gone",
        (Change(product.GUARDING, "Guarding._take", "self.idle.clear()", "pass"),),
        (CHANGED,),
    ),
    Mutation(
        "never look again for a pod that has to leave",
        (Change(product.GUARDING, "Guarding._end_idle", "self._changed.add(aggregate.cluster)", "pass"),),
        (HELD,),
    ),
    Mutation(
        "hold all zones for the fault of one",
        (
            Change(
                product.STEERING_INCIDENTS,
                "OpenIncident.part",
                "GuardedPart(self.zone, self.node)",
                "GuardedPart(None, self.node)",
            ),
        ),
        (BY_ZONE,),
    ),
    Mutation(
        "count the nodes of all zones together",
        (Change(product.STEERING_GUARDS, "GuardCount._part", "self.guard.by is GuardScope.ZONE", "False"),),
        (BY_ZONE,),
    ),
    Mutation(
        "take the share of a zone of all nodes",
        (
            Change(
                product.STEERING_GUARDS,
                "GuardCount._take_limits",
                "known = self._known[part]",
                "known = sum(self._known.values())",
            ),
        ),
        (BY_ZONE,),
    ),
    Mutation(
        "forget the zone of a deleted node after a takeover",
        (Change(product.HELD_ATTEMPTS, "guarded_node", "zone=left.zone", "zone=None"),),
        (BY_ZONE,),
    ),
    Mutation(
        "count a node in the zone that it had before",
        (Change(product.STEERING_GUARDS, "GuardCount.see", "zone == was_in", "True"),),
        (BY_ZONE,),
    ),
    Mutation(
        "overlook that a node brings its leaving pods to another zone",
        (Change(product.GUARDING, "Guarding.see", "is_other and aggregate.cluster in self.idle", "False"),),
        (BY_ZONE,),
    ),
    Mutation(
        "overlook that deleted nodes count no longer",
        (Change(product.GUARDING, "Guarding.turn", "at_us <= now_us", "False"),),
        (KNOWN,),
    ),
    Mutation(
        "let evictions wait for a person that no policy selects",
        (Change(product.PUBLISHED_INCIDENTS, "PublishedIncidents._count", "_picks_pods(...)", "False"),),
        (PUBLISHED,),
    ),
    Mutation(
        "take it that no policy excepts pods",
        (Change(product.PUBLISHED_INCIDENTS, "_picks_pods", "spec.excluded is not None", "False"),),
        (PUBLISHED,),
    ),
    Mutation(
        "take it that no policy selects pods",
        (Change(product.PUBLISHED_INCIDENTS, "_picks_pods", "selected != of_nodes", "False"),),
        (PUBLISHED,),
    ),
)
