"""Mutations of what keeps one record from costing more than its size, or from holding up the others."""

from __future__ import annotations

from tests.mutations import product
from tests.mutations.catalogue import Mutation
from tests.mutations.matching import Change

COST = "tests/models/eviction/test_cost.py"
COUNTED = "tests/models/steering/test_guards.py"
ROWS = "tests/models/eviction/test_rows.py"
DEEP_RECORDS = "tests/models/messages/test_deep_records.py"
RECORDING_FOLDER = "tests/kit/recordings/test_recording_folder.py"
DECIDING = "tests/models/eviction/test_decision.py"
UNDECIDABLE = "tests/models/eviction/test_undecidable.py"
JOINED = "tests/streams/partition/test_due_and_issued.py"
SLICES = "tests/streams/partition/test_slices.py"
WRITER = "tests/streams/engine/test_writer.py"
STEPS = "tests/streams/engine/test_writer_steps.py"
FAST = "tests/streams/partition/test_fast_path.py"
EDITS = "tests/streams/partition/test_fast_path_tolerations.py"
POISON = "tests/streams/partition/test_poison.py"
COSTLY = "tests/guarantees/test_costly_records.py"

OF_COSTS = (
    Mutation(
        "join a decision with one that had another reason",
        (Change(product.MESSAGES, "with_due", "due.taint == issued.taint", "True"),),
        (JOINED,),
    ),
    Mutation(
        "replace a message that has been taken",
        (Change(product.OUTBOX, "Outbox.take", "self.drafts = {}", "pass"),),
        (JOINED,),
    ),
    Mutation(
        "try each toleration with each taint",
        (Change(product.DECISION, "_finder", "... > INDEXED_PAIRS", "False"),),
        (COST,),
    ),
    Mutation(
        "look through all known taints for each one seen",
        (Change(product.TAINT_HISTORY, "_Unclaimed.claim", "places.pop()", "[$0, *(0 for _ in self._known)][0]"),),
        (COST,),
    ),
    Mutation(
        "remember each node that a name has ever had",
        (Change(product.STEP, "Step.remember_node", "len(earlier_nodes) > MOST_EARLIER_NODES", "False"),),
        (COST,),
    ),
    Mutation(
        "look one by one at what an answered incident covers",
        (
            Change(
                product.GUARDED_NODES,
                "uncovered",
                "[one for one in covered if one.part not in (part, ALL_NODES)]",
                "covered",
            ),
            Change(
                product.GUARDED_NODES,
                "uncovered",
                "[one.span for one in covered if one.part in (part, ALL_NODES)]",
                "[]",
            ),
        ),
        (COUNTED,),
    ),
    Mutation(
        "look at all that came after what has changed",
        (Change(product.STEERING_GUARDS, "GuardCount._of_part", "from_us > changed[1]", "False"),),
        (COUNTED,),
    ),
    Mutation(
        "overlook what begins with what has changed",
        (Change(product.STEERING_GUARDS, "GuardCount._of_part", "from_us > changed[1]", "from_us >= changed[1]"),),
        (COUNTED,),
    ),
    Mutation(
        "read lists of any length",
        (Change(product.OBJECT_LIMITS, "", "LARGEST_LIST: Final = 1_000", "LARGEST_LIST: Final = 10**6"),),
        (f"{COSTLY}::test_an_object_beyond_a_limit_is_a_dead_letter",),
    ),
    Mutation(
        "let long lists of some pods decide about all pods of a node",
        (
            Change(
                product.NODE_STEPS,
                "_step",
                "event.is_undecidable",
                "$0 or sum(len(pod.tolerations) for pod in aggregate.pods.values()) > 100_000",
            ),
        ),
        (UNDECIDABLE,),
    ),
    Mutation(
        "look only at the first taint of a toleration",
        (Change(product.DECISION, "cover", "came_us.get(...) <= since_us", "id(match) in came_us"),),
        (DECIDING,),
    ),
    Mutation(
        "keep how each list of tolerations covers the taints",
        (Change(product.DECISION, "_coverage", "len(coverages) < MOST_COVERAGES", "True"),),
        (DECIDING,),
    ),
    Mutation(
        "refuse a pod for the size of what decides nothing",
        (Change(product.DECODING, "_decoded", "record.type not in _CHANGES", "True"),),
        (DEEP_RECORDS,),
    ),
    Mutation(
        "let a kubelet's conditions keep the pods of its node",
        (Change(product.DECODING, "_drop_long_node_lists", "msgspec.Raw(entries_with(...))", "NULL"),),
        (UNDECIDABLE,),
    ),
    Mutation(
        "let deep JSON end a worker",
        (
            Change(
                product.ENVELOPE,
                "",
                "(msgspec.DecodeError, UnicodeDecodeError, RecursionError)",
                "(msgspec.DecodeError, UnicodeDecodeError)",
            ),
        ),
        (DEEP_RECORDS,),
    ),
    Mutation(
        "keep deep JSON in a line that no Python reads again",
        (Change(product.RECORDING_FOLDER, "_is_line_of_json", "_levels(value) <= DEEPEST_LEVELS", "True"),),
        (RECORDING_FOLDER,),
    ),
    Mutation(
        "go on evicting by what was known before a limit was passed",
        (Change(product.POD_STEPS, "_exemptions", "exemptions |= OVER_LIMIT", "pass"),),
        (UNDECIDABLE,),
    ),
    Mutation(
        "let broken text in tolerations end the worker",
        (Change(product.FAST_PATH, "_read_tolerations", "DECODE_ERRORS", "msgspec.DecodeError"),),
        (POISON,),
    ),
    Mutation(
        "take a terminating pod for a plain one",
        (
            Change(
                product.PLAIN_PODS,
                "_PlainMetadata",
                "deletion_timestamp: None = None",
                "deletion_timestamp: str | None = None",
            ),
        ),
        (FAST,),
    ),
    Mutation(
        "take a finished pod for a plain one",
        (
            Change(
                product.PLAIN_PODS,
                "_PlainStatus",
                'phase: Literal["Pending", "Running", "Unknown"] | None = None',
                "phase: str | None = None",
            ),
        ),
        (FAST,),
    ),
    Mutation(
        "edit tolerations on a tainted node by the fast path",
        (Change(product.PLAIN_EDIT, "take_plain_version", "has_to_decide(aggregate, pod)", "False"),),
        (EDITS,),
    ),
    Mutation(
        "take a pod that was left alone for a plain one",
        (Change(product.PLAIN_EDIT, "take_plain_version", "pod.exemptions", "False"),),
        (FAST,),
    ),
    Mutation(
        "take in changes from before a forgetting by the fast path",
        (Change(product.FAST_PATH, "FastPath.apply", "... <= state.forgotten_at_us", "False"),),
        (FAST,),
    ),
    Mutation(
        "pass over names beyond the limit by the fast path",
        (Change(product.PLAIN_PODS, "", "msgspec.Meta(...)", "msgspec.Meta(min_length=1)"),),
        (FAST,),
    ),
    Mutation(
        "take other tolerations for known ones",
        (Change(product.FAST_PATH, "FastPath.apply", "kept[1] != spec.tolerations", "False"),),
        (EDITS,),
    ),
    Mutation(
        "decode the tolerations of each edit",
        (Change(product.FAST_PATH, "_read_tolerations", "_lists.get(both)", "None"),),
        (EDITS,),
    ),
    Mutation(
        "step laborious records without a pause",
        (Change(product.EVICTION_PARTITION, "EvictionPartition._apply_record", "len(...) > LARGE_BYTES", "False"),),
        (POISON,),
    ),
    Mutation(
        "decide about all pods of a node at once",
        (Change(product.NODE_STEPS, "_reconcile_all", "weight >= PODS_IN_SLICE", "False"),),
        (SLICES,),
    ),
    Mutation(
        "pass over evictions of a node without taints",
        (Change(product.NODE_STEPS, "_reconcile_all", "pod.eviction is not None", "False"),),
        ("tests/models/eviction/test_lifecycle.py",),
    ),
    Mutation(
        "load a pod's row without the eviction that has come before",
        (Change(product.LOADING, "_load_pod", "aggregate.orphans.pop(uid, None)", "None"),),
        (ROWS,),
    ),
    Mutation(
        "load rows of evictions as if they were of pods",
        (Change(product.LOADING, "RowLoader._take_apart", "row_key(kind, ...)", "row_key(_POD, aggregate_key)"),),
        (ROWS,),
    ),
    Mutation(
        "load as many tolerations as rows without limits have",
        (Change(product.POD_ROWS, "read_pod_value", "len(text) > LARGEST_LIST", "False"),),
        (UNDECIDABLE,),
    ),
    Mutation(
        "load long texts of tolerations from rows without limits",
        (Change(product.POD_ROWS, "read_pod_value", "is_long and has_long_text(tolerations)", "False"),),
        (UNDECIDABLE,),
    ),
    Mutation(
        "write the slices of a step as they come",
        (Change(product.EFFECTS, "StepEffects.put_aside", "outbox.aside()", "outbox"),),
        (SLICES,),
    ),
    Mutation(
        "fire the node that is in the middle of a step",
        (Change(product.FIRING, "Firing.fire", "self._timers.keeps(wakeup)", "False"),),
        (SLICES,),
    ),
    Mutation(
        "step another input in the middle of a step",
        (Change(product.WRITER, "PartitionWriter.apply", "await self._step_is_whole()", "pass"),),
        (f"{STEPS}::test_another_input_waits_for_the_end_of_a_step",),
    ),
    Mutation(
        "step many records at once, whatever they cost",
        (Change(product.WRITER, "PartitionWriter._run", "cost += part.cost", "cost += 1"),),
        (f"{WRITER}::test_the_event_loop_runs_during_a_large_record",),
    ),
)
