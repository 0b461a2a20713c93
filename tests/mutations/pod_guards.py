"""Mutations of guards that count pods, or owners that lose all."""

from __future__ import annotations

from tests.mutations import product
from tests.mutations.catalogue import Mutation
from tests.mutations.matching import Change

OF_PODS = "tests/streams/partition/test_guards_of_pods.py"
OF_OWNERS = "tests/streams/partition/test_guards_of_owners.py"
CHANGED = "tests/streams/partition/test_guards_of_owners_changed.py"

OF_POD_GUARDS = (
    Mutation(
        "let pods that have left make room for others",
        (Change(product.LEAVING_PODS, "has_left", "memory.evicted_for in since_us", "False"),),
        (OF_PODS,),
    ),
    Mutation(
        "forget for which taint a pod has left",
        (
            Change(
                product.POD_STEPS,
                "_remove",
                "step.remember_pod(pod.uid, version, pod.opened, pod)",
                "step.remember_pod(pod.uid, version, pod.opened)",
            ),
        ),
        (OF_PODS,),
    ),
    Mutation(
        "forget after a takeover for which taint a pod has left",
        (Change(product.POD_ROWS, "deleted_pod_value", "evicted_for=memory.evicted_for", 'evicted_for=""'),),
        (OF_PODS,),
    ),
    Mutation(
        "count pods that have left for an earlier taint",
        (
            Change(
                product.LEAVING_PODS,
                "has_left",
                "memory.evicted_us >= since_us[memory.evicted_for]",
                "True",
            ),
        ),
        (OF_PODS,),
    ),
    Mutation(
        "count pods that have left only until a takeover",
        (Change(product.FIRING, "Firing._wake", "not uid and self.guarding.counts_pods", "False"),),
        (OF_PODS,),
    ),
    Mutation(
        "overlook pods that have to leave later",
        (Change(product.GUARDING, "Guarding.moved", "self.look_at_pods(aggregate)", "pass"),),
        (OF_PODS,),
    ),
    Mutation(
        "count the pods of all nodes together",
        (Change(product.STEERING_GUARDS, "GuardCount._part", "self.guard.by is GuardScope.NODE", "False"),),
        (OF_PODS,),
    ),
    Mutation(
        "hold all nodes for the pods of one",
        (
            Change(
                product.STEERING_INCIDENTS,
                "OpenIncident.part",
                "GuardedPart(self.zone, self.node)",
                "GuardedPart(self.zone)",
            ),
        ),
        (OF_PODS,),
    ),
    Mutation(
        "let nodes go for which a cluster has no room for incidents",
        (Change(product.STEERING_INCIDENTS, "found_together", "len(found) < room", "True"),),
        (OF_PODS,),
    ),
    Mutation(
        "drop the incidents of a cluster that is not counted yet",
        (Change(product.GUARDING, "Guarding.turn", "changed.difference(self.uncounted)", "changed"),),
        (OF_PODS,),
    ),
    Mutation(
        "count owners of which a pod stays",
        (
            Change(
                product.LOSING_OWNERS,
                "LosingOwners.look",
                "{} if owner in self._staying else self._places.get(owner, {})",
                "self._places.get(owner, {})",
            ),
        ),
        (OF_OWNERS,),
    ),
    Mutation(
        "overlook that the last pod goes that stays",
        (Change(product.LOSING_OWNERS, "LosingOwners._stay", "staying == max(0, by)", "staying == 1"),),
        (OF_OWNERS,),
    ),
    Mutation(
        "overlook that a pod has another owner",
        (Change(product.LOSING_OWNERS, "LosingOwners.put", "self.look_at_node(aggregate.name)", "pass"),),
        (CHANGED,),
    ),
    Mutation(
        "overlook that a pod of an owner has left or is forgotten",
        (
            Change(
                product.LOSING_OWNERS,
                "LosingOwners.left",
                "of_node.count_left(memory.evicted_for, memory.owner, by)",
                "pass",
            ),
        ),
        ("tests/streams/partition/test_owners_that_left.py",),
    ),
    Mutation(
        "forget the owner of a pod that has left",
        (Change(product.STEP, "Step.remember_pod", "None if owner is None else shared_owner(owner)", "None"),),
        (OF_OWNERS,),
    ),
    Mutation(
        "forget after a takeover the owner of a pod that has left",
        (Change(product.POD_ROWS, "deleted_pod_value", "owner=memory.owner", "owner=None"),),
        (OF_OWNERS,),
    ),
    Mutation(
        "count an owner on its first node",
        (
            Change(
                product.OWNER_COUNTS,
                "OwnerCount.see_owner",
                "max(self._arrivals_of(places), default=None)",
                "min(self._arrivals_of(places), default=None)",
            ),
        ),
        (OF_OWNERS,),
    ),
    Mutation(
        "publish of a guard of owners those that lose all within its incident",
        (Change(product.PUBLISHED_INCIDENTS, "PublishedIncidents.turn", "isinstance(count, OwnerCount)", "False"),),
        (OF_OWNERS,),
    ),
    Mutation(
        "publish owners that have no pod any more",
        (
            Change(
                product.PUBLISHED_INCIDENTS,
                "_BoundPods.of",
                "+Counter(...)",
                "Counter({owner: pods(owner) for owner in owners})",
            ),
        ),
        (OF_OWNERS,),
    ),
    Mutation(
        "publish owners of taints of another time",
        (Change(product.OWNER_COUNTS, "OwnerCount.losing", "covered.span", "(0, None)"),),
        ("tests/models/steering/test_guards.py",),
    ),
    Mutation(
        "count owners that no policy selects",
        (Change(product.OWNER_COUNTS, "OwnerCount._selects", "self._selected_owners.match(owner)", "True"),),
        (OF_OWNERS,),
    ),
    Mutation(
        "count owners that a policy excepts",
        (Change(product.OWNER_COUNTS, "OwnerCount._selects", "not excluded.match(owner)", "True"),),
        (OF_OWNERS,),
    ),
    Mutation(
        "except owners of which it excepts some pods",
        (
            Change(
                product.OWNER_COUNTS,
                "_excluded",
                "selection == of_owners and bool(selection.namespaces or selection.owners)",
                "bool(selection.namespaces or selection.owners)",
            ),
        ),
        (OF_OWNERS,),
    ),
    Mutation(
        "keep owners on a node that has changed",
        (Change(product.OWNER_COUNTS, "OwnerCount._forget", "self._drop(owner, self._last[owner])", "pass"),),
        (CHANGED,),
    ),
    Mutation(
        "overlook that a node brings its owners along",
        (Change(product.GUARDING, "Guarding.see", "isinstance(aggregate.workloads, LosingOwners)", "False"),),
        (CHANGED,),
    ),
    Mutation(
        "count owners for no guard",
        (Change(product.GUARDING, "Guarding._take", "not self._has_owners(name)", "False"),),
        (CHANGED,),
    ),
    Mutation(
        "count all pods of a cluster in one turn",
        (Change(product.GUARDING, "Guarding.turn", "self._has_owners(name)", "False"),),
        (OF_OWNERS,),
    ),
    Mutation(
        "count no pod of an owner after a takeover",
        (Change(product.GUARDING, "Guarding._count_owners", "losing.count(sys.maxsize)", "pass"),),
        (CHANGED,),
    ),
)
