"""Mutations of how many evictions may be in flight at once."""

from __future__ import annotations

from tests.mutations import product
from tests.mutations.catalogue import Mutation
from tests.mutations.matching import Change

SLOTS = "tests/models/steering/test_in_flight.py"
HELD = "tests/streams/partition/test_in_flight_held.py"

OF_IN_FLIGHT = (
    Mutation(
        "begin with all slots free after a takeover",
        (Change(product.STEERING_LIMITS, "Limits._count_flying", "(policy, cluster, limit) in self._counted", "True"),),
        (SLOTS, HELD),
    ),
    Mutation(
        "free the slot of a pod that is terminating",
        (Change(product.HELD_ATTEMPTS, "is_in_flight", "not pod.exemptions & FINISHED", "False"),),
        (HELD,),
    ),
    Mutation(
        "keep the slot of a pod that has gone",
        (Change(product.EFFECTS, "StepEffects.put", "self.held.limits.flying", "False"),),
        (HELD,),
    ),
    Mutation(
        "keep the slot of a pod that does not go for good",
        (Change(product.IN_FLIGHT, "Slots._free", "self._flying.get(place) == until_us", "False"),),
        (SLOTS, HELD),
    ),
    Mutation(
        "let a repeated attempt wait for a slot",
        (Change(product.IN_FLIGHT, "Slots.get", "subject.first_issued_us is not None", "False"),),
        (SLOTS,),
    ),
    Mutation(
        "let each pod of a node take a slot",
        (Change(product.IN_FLIGHT, "Slots._unit", "of is InFlightUnit.NODES", "False"),),
        (SLOTS, HELD),
    ),
    Mutation(
        "let a newcomer take the slot of those that wait",
        (Change(product.IN_FLIGHT, "Slots.get", "self._waiting or free <= 0", "free <= 0"),),
        (SLOTS,),
    ),
    Mutation(
        "count nothing anew when policies change",
        (Change(product.HELD, "HeldEvictions.begin_turn", "self.limits.count_anew()", "()"),),
        (HELD,),
    ),
    Mutation(
        "forget when the first attempt was made",
        (Change(product.POD_ROWS, "eviction_value", "eviction.first_issued_us", "None"),),
        (HELD,),
    ),
    Mutation(
        "let what was observed be tried without a slot",
        (Change(product.HELD_ATTEMPTS, "_is_only_observed", "eviction.first_issued_us == ONLY_OBSERVED_US", "False"),),
        (HELD,),
    ),
    Mutation(
        "count a share of the nodes of a cluster before it was forgotten",
        (Change(product.STEERING_LIMITS, "Limits._bucket", "isinstance(bucket, Slots)", "False"),),
        (SLOTS,),
    ),
)
