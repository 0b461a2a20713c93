"""The parameters of the eviction rules: limits of work, waits and switches. Durations are integer microseconds.

The limits bound how much work one record may cause. A step costs near linear work in its record and in the pods that it
is about: taints and tolerations are found by key, and `evictstream.models.messages.object_limits` bounds how many one
object has. No limit counts several pods together, so no pod decides about another one. One product remains, earlier
nodes of a name times changes of the node, so it has a limit.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from evictstream.models.instants import SECOND_US
from evictstream.models.steering.patterns import Patterns

MOST_EARLIER_NODES: Final = 32
"""Earlier nodes of one name that are remembered: those that left last. They are in the node's row, which each change of
the node writes."""

_MINUTE_US = 60 * SECOND_US


_WAITS: Final = (
    "retry_base_us",
    "retry_ceiling_us",
    "silence_us",
    "success_grace_us",
    "accepted_silence_us",
    "accepted_limit_us",
    "report_silence_us",
)


class RuleParameters(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters that can be set. A change takes effect with the next decision about each pod.

    Attributes:
        outage_gap_us: longest gap without a health taint that belongs to one outage whatever the rest of the cluster
            shows. Default 5 s: a restarted controller manager takes the taint off and puts it back within 0.1 s. 0:
            every gap begins a new outage (semantics.md 12.4).
        retry_base_us: wait after the first failed attempt; doubles with every further one. Default 1 s: by then the
            executor has done its own quick tries (semantics.md 12.8).
        retry_ceiling_us: longest wait between two attempts. Default 300 s: a mended webhook is noticed within minutes,
            and 45,000 owed evictions are 150 attempts per second.
        silence_us: wait for a result of the first attempt; doubles with every further one. Default 30 s: a
            running executor answers within seconds, even with a queue.
        success_grace_us: wait for the pod to terminate after `Succeeded` or `Gone`. Default 120 s: the watch
            shows it within seconds, so by then the result was wrong or the feed is behind.
        accepted_silence_us: wait for another word after `Accepted`. Default 60 s: an executor repeats it each 20 s for
            what is still queued, so three of them were lost by then, or the executor is gone.
        accepted_limit_us: how long after an attempt `Accepted`, or reports of an executor, keep the next one back.
            Default 900 s: 200 evictions a second are 180,000 in that time, more than a full cluster has.
        report_silence_us: how long a report of an executor counts. Default 30 s: an executor with a queue reports each
            10 s, so two reports were lost by then, or the executor is gone.
        remember_deleted_us: how long a deleted UID is remembered. Default 1 h: at least the longest delay of a feed,
            so that a late event cannot bring a deleted pod back (semantics.md 12.3).
        comparison_operators: whether `Gt` and `Lt` compare, the feature gate `TaintTolerationComparisonOperators`.
            Default off, as upstream (semantics.md 11.2).
        built_in: whether Kubernetes' own controller is on in the cluster. Then only what it would do later or never is
            evictstream's (semantics.md 12.12).
    """

    outage_gap_us: int = 5 * SECOND_US
    retry_base_us: int = 1 * SECOND_US
    retry_ceiling_us: int = 5 * _MINUTE_US
    silence_us: int = 30 * SECOND_US
    success_grace_us: int = 2 * _MINUTE_US
    accepted_silence_us: int = _MINUTE_US
    accepted_limit_us: int = 15 * _MINUTE_US
    report_silence_us: int = 30 * SECOND_US
    remember_deleted_us: int = 60 * _MINUTE_US
    comparison_operators: bool = False
    built_in: bool = False

    def __post_init__(self) -> None:
        """Refuse a wait of 0, which would repeat attempts without a pause, and negative durations.

        Raises:
            ValueError: a wait is not positive, or another duration is negative; names the field.
        """
        for field in _WAITS:
            if getattr(self, field) <= 0:
                message = f"{field} must be positive"
                raise ValueError(message)
        for field in ("outage_gap_us", "remember_deleted_us"):
            if getattr(self, field) < 0:
                message = f"{field} must not be negative"
                raise ValueError(message)


class ClusterRules:
    """The rules of each cluster: they differ in whether Kubernetes' own controller is on there.

    Attributes:
        usual: those of clusters where it is off; durations are the same everywhere.
    """

    __slots__ = ("_built_in", "_with_built_in", "usual")

    def __init__(self, usual: RuleParameters, built_in: Sequence[str] = ()) -> None:
        """Take the usual rules, and patterns of the clusters where Kubernetes' own controller is on."""
        self.usual = usual
        self._with_built_in = msgspec.structs.replace(usual, built_in=True)
        self._built_in = Patterns(built_in) if built_in else None

    def of(self, cluster: str) -> RuleParameters:
        """Return the rules of a cluster."""
        return self.usual if self._built_in is None or not self._built_in.match(cluster) else self._with_built_in
