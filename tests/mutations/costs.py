"""Mutations of what keeps one record from costing more than its size, or from holding up the others."""

from __future__ import annotations

from tests.mutations.catalogue import Mutation

COST = "tests/models/eviction/test_cost.py"
UNDECIDABLE = "tests/models/eviction/test_undecidable.py"
SLICES = "tests/streams/service/test_slices.py"
STEPS = "tests/streams/engine/test_writer_steps.py"
POISON = "tests/streams/service/test_poison.py"
COSTLY = "tests/guarantees/test_costly_records.py"

OF_COSTS = (
    Mutation(
        "try each toleration with each taint",
        "models/eviction/coverage.py",
        (("> INDEXED_PAIRS:", "> 10**12:"),),
        (COST,),
    ),
    Mutation(
        "look through all known taints for each one seen",
        "models/eviction/windows.py",
        (
            (
                "                place = places.pop()\n",
                "                place = [places.pop(), *(0 for _ in self._known)][0]\n",
            ),
        ),
        (COST,),
    ),
    Mutation(
        "remember each node that a name has ever had",
        "models/eviction/memory.py",
        (("if len(departed) > MOST_DEPARTED:", "if False:"),),
        (COST,),
    ),
    Mutation(
        "read lists of any length",
        "models/messages/object_limits.py",
        (("LARGEST_LIST: Final = 1_000", "LARGEST_LIST: Final = 10**9"),),
        (f"{COSTLY}::test_what_is_beyond_a_limit_is_a_dead_letter_and_evicts_nobody",),
    ),
    Mutation(
        "go on evicting by what was known before a limit was passed",
        "models/eviction/pod_step.py",
        (("        marks |= OVER_LIMIT\n", "        pass\n"),),
        (UNDECIDABLE,),
    ),
    Mutation(
        "let broken text in tolerations end the worker",
        "models/eviction/glance.py",
        (("    except DECODE_ERRORS:", "    except msgspec.DecodeError:"),),
        (POISON,),
    ),
    Mutation(
        "step laborious records without a pause",
        "streams/service/partition.py",
        (('self._is_laborious = len(value or b"") > LABORIOUS_BYTES', "self._is_laborious = False"),),
        (POISON,),
    ),
    Mutation(
        "decide about all pods of a node at once",
        "models/eviction/slices.py",
        (("        if weight >= PODS_IN_SLICE:", "        if False:"),),
        (SLICES,),
    ),
    Mutation(
        "write the slices of a step as they come",
        "streams/service/effects.py",
        (("aside, self.stepped = Outbox(), aggregate", "aside, self.stepped = outbox, aggregate"),),
        (SLICES,),
    ),
    Mutation(
        "fire the node that is in the middle of a step",
        "streams/service/partition.py",
        (("            if aggregate is self._effects.stepped:", "            if False:"),),
        (SLICES,),
    ),
    Mutation(
        "step another input in the middle of a step",
        "streams/engine/core/writer.py",
        (("            if self._is_stepping:\n                await", "            if False:\n                await"),),
        (f"{STEPS}::test_another_input_waits_for_the_end_of_a_step",),
    ),
)
