"""What a service has decided about each eviction, by its own records: when it issued it, and how it ended."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Final

from evictstream.kit.recordings.record import RecordedRecord
from evictstream.kit.replay.departures import Departure
from evictstream.models.instants import instant_us
from evictstream.models.messages.decision import DecisionRecord, decode_decision
from evictstream.models.messages.unreadable import Unreadable
from evictstream.models.messages.vocabulary import DecisionKind, Outcome, Verdict

_LEAVING: Final = frozenset({Verdict.POD_GONE, Verdict.POD_REPLACED, Verdict.POD_TERMINATING})
_BEGINNINGS: Final = frozenset({DecisionKind.SCHEDULED, DecisionKind.DUE, DecisionKind.MOVED, DecisionKind.ISSUED})
"""After one of these, everything that was decided about the eviction until it is issued is known."""


@dataclasses.dataclass(slots=True, kw_only=True)
class DecidedEviction:
    """One eviction; instants are microseconds since 1970.

    Attributes:
        name: namespace and name of the pod.
        is_whole: its beginning is known, so that it is known whether it was issued.
        deadline_us: as decided last.
        issued_at_us: when the first attempt was issued; None if none was.
        is_done: an executor has carried an attempt out.
        ended_for: why it ended; None while it is open.
    """

    cluster: str
    pod_uid: str
    name: str
    node: str
    is_whole: bool
    deadline_us: int
    issued_at_us: int | None = None
    is_done: bool = False
    ended_for: Verdict | None = None

    @property
    def has_left(self) -> bool:
        """Whether it ended because something else let the pod leave."""
        return self.ended_for in _LEAVING

    def departure(self, at_us: int) -> Departure:
        """Return its pod's, at an instant."""
        return Departure(at_us=at_us, cluster=self.cluster, pod_uid=self.pod_uid, name=self.name, node=self.node)


class DecidedEvictions:
    """All evictions of a recording, from its decision records. Some 400 bytes each."""

    def __init__(self) -> None:
        self._evictions: dict[tuple[str, str], DecidedEviction] = {}

    def __iter__(self) -> Iterator[DecidedEviction]:
        """Give them in the order in which they were seen first."""
        return iter(self._evictions.values())

    def __len__(self) -> int:
        """Count them."""
        return len(self._evictions)

    def take(self, record: RecordedRecord) -> None:
        """Take in a record, those of one eviction in their order; one that is no decision means nothing."""
        if record.topic != "decisions":
            return
        try:
            it = decode_decision(record.value or b"")
        except Unreadable:
            return
        one = self._evictions.get((it.cluster, it.eviction_id))
        if one is None:
            one = self._evictions[it.cluster, it.eviction_id] = _begun(it)
        one.deadline_us = instant_us(it.deadline)
        match it.decision:
            case DecisionKind.ISSUED if one.issued_at_us is None:
                one.issued_at_us = instant_us(it.cause.at)
            case DecisionKind.REPORTED:
                one.is_done |= it.outcome is Outcome.SUCCEEDED
            case DecisionKind.CANCELLED | DecisionKind.COMPLETED:
                one.ended_for = it.verdict
            case _:
                pass


def _begun(it: DecisionRecord) -> DecidedEviction:
    return DecidedEviction(
        cluster=it.cluster,
        pod_uid=it.pod_uid,
        name=f"{it.namespace}/{it.pod}",
        node=it.node,
        is_whole=it.decision in _BEGINNINGS,
        deadline_us=instant_us(it.deadline),
    )
