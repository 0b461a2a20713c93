"""evictstream's rules for one node and its pods: windows, deadlines, the life of an eviction (semantics.md 12).

A step function applies an input (a watch event, a result, a wake-up) to the aggregate of its node, the state of one
node with its pods. It returns the rows to write, the messages to send and the instants of the next wake-ups. To follow
a pod, read `pod_steps`, `lifecycle`, `decision`, `transitions` and `rendering`, in this order. The inputs and their
enums are defined in `evictstream.models.messages`; they are imported from here too, so that a caller of the steps needs
one import.

About constants such as `_DELETED = EventType.DELETED`: Python 3.11 looks a member of an enum up through a descriptor
that is written in Python, which takes three times as long as a global. Code that runs for every event or every pod of
a tainted node binds the members that it needs once; all other code writes them out.
"""

from evictstream.models.eviction.aggregate import NodeAggregate
from evictstream.models.eviction.decision import NothingDue, built_in_due, decide
from evictstream.models.eviction.lifecycle import has_to_decide
from evictstream.models.eviction.listing_steps import unlisted_node_slices, unlisted_pod_slices
from evictstream.models.eviction.loading import RowLoader, wakeups
from evictstream.models.eviction.node_steps import (
    PODS_IN_SLICE,
    decide_all_slices,
    expire,
    forget_slices,
    node_slices,
    weight_of,
)
from evictstream.models.eviction.pod_steps import apply_pod, end_elsewhere, fire
from evictstream.models.eviction.result_steps import apply_result
from evictstream.models.eviction.row_keys import (
    CorruptRowError,
    RowError,
    RowKind,
    UnknownRowKeyError,
    UnsupportedFormatError,
    row_key,
    split_row_key,
)
from evictstream.models.eviction.rule_parameters import RuleParameters
from evictstream.models.eviction.state import Due, Eviction, PodState
from evictstream.models.eviction.step import (
    DUPLICATE,
    STALE,
    UNCHANGED,
    UNDECIDABLE,
    Changes,
    EvictionId,
    InputEffect,
    eviction_id,
)
from evictstream.models.messages.events import NodeEvent, Origin, PodEvent, ResultEvent
from evictstream.models.messages.vocabulary import EventType, EvictionState, Outcome, Verdict

__all__ = [
    "DUPLICATE",
    "PODS_IN_SLICE",
    "STALE",
    "UNCHANGED",
    "UNDECIDABLE",
    "Changes",
    "CorruptRowError",
    "Due",
    "EventType",
    "Eviction",
    "EvictionId",
    "EvictionState",
    "InputEffect",
    "NodeAggregate",
    "NodeEvent",
    "NothingDue",
    "Origin",
    "Outcome",
    "PodEvent",
    "PodState",
    "ResultEvent",
    "RowError",
    "RowKind",
    "RowLoader",
    "RuleParameters",
    "UnknownRowKeyError",
    "UnsupportedFormatError",
    "Verdict",
    "apply_pod",
    "apply_result",
    "built_in_due",
    "decide",
    "decide_all_slices",
    "end_elsewhere",
    "eviction_id",
    "expire",
    "fire",
    "forget_slices",
    "has_to_decide",
    "node_slices",
    "row_key",
    "split_row_key",
    "unlisted_node_slices",
    "unlisted_pod_slices",
    "wakeups",
    "weight_of",
]
