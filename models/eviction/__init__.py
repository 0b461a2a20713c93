"""Our rules: one node with its pods as an aggregate, windows, deadlines, the life of an eviction (semantics.md 12).

An input is stepped through the aggregate of its node; the step returns the rows to write, the messages to send and the
instants at which to look again.
"""

from evictstream.models.eviction.aggregate import (
    apply_node,
    apply_pod,
    apply_result,
    crowd_slices,
    decide_all,
    decide_all_slices,
    expire,
    fire,
    forget,
    forget_slices,
    is_crowded,
    node_slices,
)
from evictstream.models.eviction.changes import DUPLICATE, STALE, UNCHANGED, UNDECIDABLE, Changes, Note
from evictstream.models.eviction.decision import Idle, decide
from evictstream.models.eviction.glance import glance_at
from evictstream.models.eviction.identity import EvictionId, eviction_id
from evictstream.models.eviction.row_keys import (
    CorruptRowError,
    RowError,
    RowKind,
    UnknownRowKeyError,
    UnsupportedFormatError,
    row_key,
    split_row_key,
)
from evictstream.models.eviction.rows import load_row, wakeups
from evictstream.models.eviction.rules import Rules
from evictstream.models.eviction.slices import PODS_IN_SLICE, weight_of
from evictstream.models.eviction.state import Due, Eviction, NodeAggregate, PodState
from evictstream.models.eviction.wakeups import eviction_wakeup_us
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
    "Idle",
    "NodeAggregate",
    "NodeEvent",
    "Note",
    "Origin",
    "Outcome",
    "PodEvent",
    "PodState",
    "ResultEvent",
    "RowError",
    "RowKind",
    "Rules",
    "UnknownRowKeyError",
    "UnsupportedFormatError",
    "Verdict",
    "apply_node",
    "apply_pod",
    "apply_result",
    "crowd_slices",
    "decide",
    "decide_all",
    "decide_all_slices",
    "eviction_id",
    "eviction_wakeup_us",
    "expire",
    "fire",
    "forget",
    "forget_slices",
    "glance_at",
    "is_crowded",
    "load_row",
    "node_slices",
    "row_key",
    "split_row_key",
    "wakeups",
    "weight_of",
]
