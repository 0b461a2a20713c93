"""What a recording shows of the ends of pods: when each was first seen to leave, and who had it leave."""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from evictstream.kit.recordings.record import RecordedRecord
from evictstream.kit.replay.departures import Departure
from evictstream.kit.replay.recorded_events import read_event
from evictstream.kit.upstream.taint_eviction import CONDITION_REASON
from evictstream.models.kubernetes.shapes import DISRUPTION_TARGET, DisruptedPod
from evictstream.models.messages.envelope import DECODE_ERRORS
from evictstream.models.messages.events import PodEvent
from evictstream.models.messages.vocabulary import EventType

_SIGNS: Final = (DISRUPTION_TARGET.encode(), b"deletionTimestamp", EventType.DELETED.encode())
"""A record without one of these shows no end; most have none, and are not decoded."""


class PodEnd(NamedTuple):
    """The first that was seen of a pod's end.

    Attributes:
        by: reason of its condition `DisruptionTarget`; empty if it has none, as when a person deletes it.
    """

    departure: Departure
    by: str

    @property
    def is_by_taint(self) -> bool:
        """Whether a taint eviction controller deletes it."""
        return self.by == CONDITION_REASON


class _PodChange(msgspec.Struct, gc=False):
    object: DisruptedPod | None = None


_decoder: Final = msgspec.json.Decoder(_PodChange)


class RecordedEnds:
    """The ends of pods, by cluster and UID; some 300 bytes each.

    Attributes:
        of_pods: what was seen so far.
    """

    def __init__(self) -> None:
        self.of_pods: dict[tuple[str, str], PodEnd] = {}

    def take(self, record: RecordedRecord) -> None:
        """Take the next record, in order of time."""
        value = record.value or b""
        if record.topic != "pods" or not any(sign in value for sign in _SIGNS):
            return
        event = read_event(record)
        if not isinstance(event, PodEvent):
            return
        by, pod = _disruption(value), event.pod
        if by or pod.is_terminating or event.type is EventType.DELETED:
            name = f"{pod.namespace}/{pod.name}"
            departure = Departure(
                at_us=event.at_us, cluster=record.cluster, pod_uid=pod.uid, name=name, node=pod.node_name
            )
            self.of_pods.setdefault((record.cluster, pod.uid), PodEnd(departure, by))


def _disruption(value: bytes) -> str:
    """Return the reason of the condition; empty without one, or where it does not hold."""
    try:
        pod = _decoder.decode(value).object
    except DECODE_ERRORS:
        return ""  # the service reads no conditions of pods either
    conditions = () if pod is None or pod.status is None else pod.status.conditions or ()
    of_target = (one.reason or "" for one in conditions if one.type == DISRUPTION_TARGET and one.status == "True")
    return next(of_target, "")
