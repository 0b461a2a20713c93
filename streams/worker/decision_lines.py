"""What a worker logs about single evictions and dead letters.

A line is written when something is decided, as counters count it. A step whose transaction is lost is repeated, and its
lines with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import structlog

from evictstream.models.kubernetes.taints import taint_text
from evictstream.models.messages.vocabulary import DecisionKind, Outcome
from evictstream.streams.partition.counters import seconds_late

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evictstream.models.messages.decision import DecisionRecord
    from evictstream.streams.deed_log import DeedLog, Level

log = structlog.get_logger(__name__)

_EVENTS: Final = {  # by value: members of an enum hash slowly
    DecisionKind.ISSUED._value_: "eviction issued",
    DecisionKind.RETRIED._value_: "eviction issued",
    DecisionKind.CANCELLED._value_: "eviction cancelled",
    DecisionKind.WITHDRAWN._value_: "eviction withdrawn",
    DecisionKind.REPORTED._value_: "eviction result",
}
_NEEDING_A_LOOK: Final = frozenset({Outcome.FAILED, Outcome.REFUSED})


class DecisionLines:
    """Logs decisions of all partitions of a worker, on its event loop."""

    def __init__(self, deeds: DeedLog) -> None:
        self._deeds = deeds

    def decided(self, decisions: Sequence[DecisionRecord]) -> None:
        """Log each `Evict`, each end of an eviction without one, and each result that is not `Succeeded`."""
        for decision in decisions:
            event = _EVENTS.get(decision.decision._value_)
            if event is None:
                continue
            outcome: Outcome | None = None
            level: Level = "info"
            if decision.decision is DecisionKind.REPORTED:
                outcome = decision.result
                if outcome is None or outcome is Outcome.SUCCEEDED:
                    continue
                level = "warning" if outcome in _NEEDING_A_LOOK else "info"
            if self._deeds.takes(event, decision.cluster, level, outcome or ""):
                (log.info if level == "info" else log.warning)(event, **_facts(decision))

    def dead_letter(self, cluster: str | None, origin: tuple[str, int, int], reason: str, detail: str) -> None:
        """Log that a record is set aside.

        Args:
            cluster: that of the record's key, if it is known.
            origin: topic, partition and offset.
            reason: as in the dead letter; it names no content.
            detail: likewise.
        """
        if self._deeds.takes("dead letter", cluster or "", "warning"):
            topic, partition, offset = origin
            named = {} if cluster is None else {"cluster": cluster}
            log.warning(
                "dead letter", **named, topic=topic, partition=partition, offset=offset, reason=reason, detail=detail
            )


def _facts(decision: DecisionRecord) -> dict[str, object]:
    kind = decision.decision
    facts: dict[str, object] = {
        "cluster": decision.cluster,
        "namespace": decision.namespace,
        "pod": decision.pod,
        "uid": decision.pod_uid,
        "node": decision.node,
        "taint": taint_text(decision.taint),
        "eviction": decision.eviction_id,
        "attempt": decision.attempt,
        "verdict": str(decision.verdict),
        "deadline": decision.deadline,
    }
    if kind is DecisionKind.ISSUED:
        facts["late_seconds"] = round(seconds_late(decision.known_at or decision.deadline, decision.cause.at), 3)
    if kind is DecisionKind.REPORTED:
        facts |= {"outcome": str(decision.result), "reason": decision.outcome_reason or ""}
    return facts
