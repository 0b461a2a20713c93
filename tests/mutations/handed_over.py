"""Mistakes about seconds that were moved into an annotation, and about who evicts then."""

from tests.mutations import product
from tests.mutations.catalogue import Mutation
from tests.mutations.matching import Change

FAST = "tests/streams/partition/test_fast_path_tolerations.py"
READING = "tests/models/kubernetes/test_handed_over.py"
OWNERS = "tests/models/eviction/test_built_in.py"
HOLDS = "tests/models/eviction/test_backstop.py"
TIMERS = "tests/models/eviction/test_built_in_timer.py"

OF_HANDED_OVER = (
    Mutation(
        "let an annotation prolong",
        (Change(product.HANDED_OVER, "_applies", "seconds < spec", "seconds != spec"),),
        (READING,),
    ),
    Mutation(
        "take an annotation though the spec was edited since",
        (Change(product.HANDED_OVER, "_applies", "spec == entry.built_in_seconds", "True"),),
        (READING,),
    ),
    Mutation(
        "take the last of two entries with one identity",
        (
            Change(
                product.HANDED_OVER,
                "handed_over",
                "by_identity.setdefault(flat_toleration(entry).identity, entry)",
                "by_identity[flat_toleration(entry).identity] = entry",
            ),
        ),
        (READING,),
    ),
    Mutation(
        "read an annotation of any size",
        (
            Change(
                product.HANDED_OVER,
                "_read",
                "len(text) > LARGEST_ANNOTATION_BYTES",
                "False",
            ),
        ),
        (READING,),
    ),
    Mutation(
        "evict what the built-in controller evicts as early",
        (Change(product.DECISION, "_is_later_for_built_in", "spec.deadline_us > due.deadline_us", "True"),),
        (OWNERS,),
    ),
    Mutation(
        "evict what was not moved where the built-in controller is on",
        (Change(product.DECISION, "decide", "rules.built_in", "False"),),
        (OWNERS,),
    ),
    Mutation(
        "take a move for an edit",
        (
            Change(
                product.POD_STEPS,
                "_take",
                "not is_same_in_force(seen.tolerations, pod.tolerations)",
                "seen.tolerations != pod.tolerations",
            ),
        ),
        (OWNERS,),
    ),
    Mutation(
        "take a move for a plain edit",
        (Change(product.FAST_PATH, "_is_move", "is_same_in_force(read, known)", "False"),),
        (FAST,),
    ),
    Mutation(
        "take the end of a move for a plain edit",
        (Change(product.FAST_PATH, "FastPath.apply", "kept[2] is not _NULL", "False"),),
        (FAST,),
    ),
    Mutation(
        "take the beginning of a move for a plain edit",
        (Change(product.FAST_PATH, "FastPath.apply", "annotation is not _NULL", "False"),),
        (FAST,),
    ),
    Mutation(
        "say that a hold outlasts a backstop that comes later",
        (Change(product.BACKSTOP, "_compare", "hold.until_us > first_us", "True"),),
        (HOLDS,),
    ),
    Mutation(
        "ask a policy now what it holds at the deadline",
        (Change(product.BACKSTOP, "_compare", "max(now_us, subject.due_us)", "now_us"),),
        (HOLDS,),
    ),
    Mutation(
        "let an edit set the built-in controller's timer again",
        (Change(product.BUILT_IN_TIMER, "timer_us", "pod.eviction is not None", "False"),),
        (TIMERS,),
    ),
    Mutation(
        "begin a timer when a pod is moved in its window",
        (Change(product.BUILT_IN_TIMER, "timer_us", "node is None", "True"),),
        (TIMERS,),
    ),
    Mutation(
        "take the timer from what a pod has tolerated since an edit",
        (Change(product.POD_STEPS, "apply_pod", "step.before is not None", "False"),),
        (TIMERS,),
    ),
    Mutation(
        "lose timers in a takeover",
        (Change(product.POD_ROWS, "eviction_value", "eviction.built_in_us is not None", "False"),),
        (TIMERS,),
    ),
)
