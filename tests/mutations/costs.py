"""Mutations of what keeps one record from costing more than its size, or from holding up the others."""

from __future__ import annotations

from tests.mutations import product
from tests.mutations.catalogue import Mutation
from tests.mutations.matching import Change

COST = "tests/models/eviction/test_cost.py"
UNDECIDABLE = "tests/models/eviction/test_undecidable.py"
SLICES = "tests/streams/service/test_slices.py"
STEPS = "tests/streams/engine/test_writer_steps.py"
POISON = "tests/streams/service/test_poison.py"
COSTLY = "tests/guarantees/test_costly_records.py"

OF_COSTS = (
    Mutation(
        "try each toleration with each taint",
        (Change(product.COVERAGE, "_finder", "... > INDEXED_PAIRS", "False"),),
        (COST,),
    ),
    Mutation(
        "look through all known taints for each one seen",
        (Change(product.WINDOWS, "_Left.take", "places.pop()", "[$0, *(0 for _ in self._known)][0]"),),
        (COST,),
    ),
    Mutation(
        "remember each node that a name has ever had",
        (Change(product.MEMORY, "remember_node", "len(departed) > MOST_DEPARTED", "False"),),
        (COST,),
    ),
    Mutation(
        "read lists of any length",
        (Change(product.OBJECT_LIMITS, "", "LARGEST_LIST: Final = 1_000", "LARGEST_LIST: Final = 10**9"),),
        (f"{COSTLY}::test_what_is_beyond_a_limit_is_a_dead_letter_and_evicts_nobody",),
    ),
    Mutation(
        "go on evicting by what was known before a limit was passed",
        (Change(product.POD_STEP, "_marks", "marks |= OVER_LIMIT", "pass"),),
        (UNDECIDABLE,),
    ),
    Mutation(
        "let broken text in tolerations end the worker",
        (Change(product.GLANCE, "_tolerations", "DECODE_ERRORS", "msgspec.DecodeError"),),
        (POISON,),
    ),
    Mutation(
        "step laborious records without a pause",
        (Change(product.EVICTION_PARTITION, "EvictionPartition._apply_pods", "len(...) > LABORIOUS_BYTES", "False"),),
        (POISON,),
    ),
    Mutation(
        "decide about all pods of a node at once",
        (Change(product.SLICES, "reconcile_all", "weight >= PODS_IN_SLICE", "False"),),
        (SLICES,),
    ),
    Mutation(
        "write the slices of a step as they come",
        (
            Change(
                product.EFFECTS,
                "StepEffects.put_slices",
                "aside, self.stepped = Outbox(), aggregate",
                "aside, self.stepped = outbox, aggregate",
            ),
        ),
        (SLICES,),
    ),
    Mutation(
        "fire the node that is in the middle of a step",
        (Change(product.EVICTION_PARTITION, "EvictionPartition.fire", "aggregate is self._effects.stepped", "False"),),
        (SLICES,),
    ),
    Mutation(
        "step another input in the middle of a step",
        (Change(product.WRITER, "PartitionWriter.apply", "if self._is_stepping: ...", "pass"),),
        (f"{STEPS}::test_another_input_waits_for_the_end_of_a_step",),
    ),
)
