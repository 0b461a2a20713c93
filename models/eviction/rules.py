"""The numbers of the eviction rules, each with its reason. All durations are integer microseconds.

The limits bound how much work one record may cause. A step costs near linear work in its record: tolerations are found
by key, taints are carried over by key. Two things still multiply, so each has a limit. Real nodes are far below: they
have up to a dozen taints and a hundred pods. `evictstream.models.messages.object_limits` bounds the objects themselves.
"""

from typing import Final

import msgspec

from evictstream.models.instants import MICROSECONDS_PER_SECOND

LARGEST_WORK: Final = 100_000
"""`NoExecute` taints times pods of one node, and the tolerations of those with long lists. One change of a node's
taints decides about each of its pods by each of them, in slices: this many look-ups are a tenth of a second of work."""

MOST_DEPARTED: Final = 32
"""Earlier nodes of one name that are remembered, in the node's row: those that left last. Each change of the node
writes that row."""

LONG_LIST: Final = 64
"""Tolerations from which on a list is work that counts; real ones are shorter."""

_MINUTE_US = 60 * MICROSECONDS_PER_SECOND


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """What can be set about the decisions. A change takes effect with the next decision about each pod.

    Attributes:
        outage_gap_us: longest gap without a health taint that still belongs to one outage. Default 5 s: a restarted
            controller manager takes the taint off and puts it back within 0.1 s, and longer gaps are meant as a fresh
            start (semantics.md 12.4).
        retry_base_us: wait after the first failed attempt; doubles with every further one. Default 1 s: the executor
            has done its own quick tries by then (semantics.md 12.8).
        retry_ceiling_us: longest wait between two attempts. Default 300 s: a mended webhook is noticed within minutes,
            and 45,000 owed evictions are 150 attempts per second.
        silence_us: wait for a result of the first attempt; doubles with every further one. Default 30 s: executors
            that live answer within seconds, also with a queue.
        success_grace_us: wait for the pod to terminate after `Succeeded` or `Gone`. Default 120 s: the watch tells
            within seconds, so by then the report was wrong or the feed is behind.
        remember_deleted_us: how long a deleted UID is remembered. Default 1 h: at least the longest delay of a feed,
            so that a late one cannot bring back the dead (semantics.md 12.3).
        comparison_operators: whether `Gt` and `Lt` compare, the gate `TaintTolerationComparisonOperators`. Default
            off, as upstream (semantics.md 11.2).
        largest_work: `LARGEST_WORK`, smaller in tests. No setting: beyond it somebody wants to stop the service.
    """

    outage_gap_us: int = 5 * MICROSECONDS_PER_SECOND
    retry_base_us: int = 1 * MICROSECONDS_PER_SECOND
    retry_ceiling_us: int = 5 * _MINUTE_US
    silence_us: int = 30 * MICROSECONDS_PER_SECOND
    success_grace_us: int = 2 * _MINUTE_US
    remember_deleted_us: int = 60 * _MINUTE_US
    comparison_operators: bool = False
    largest_work: int = LARGEST_WORK

    def __post_init__(self) -> None:
        """Refuse numbers that would repeat attempts without a pause.

        Raises:
            ValueError: a wait is not positive, or a limit is negative; names the field.
        """
        for field in ("retry_base_us", "retry_ceiling_us", "silence_us", "success_grace_us"):
            if getattr(self, field) <= 0:
                message = f"{field} must be positive"
                raise ValueError(message)
        for field in ("outage_gap_us", "remember_deleted_us"):
            if getattr(self, field) < 0:
                message = f"{field} must not be negative"
                raise ValueError(message)
