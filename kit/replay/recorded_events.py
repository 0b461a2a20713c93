"""What a recorded record says of nodes and pods."""

from __future__ import annotations

from typing import Final

from evictstream.kit.recordings.record import RecordedRecord
from evictstream.models.messages.decoding import decode_pod_record, read_decoded_pod, read_node_record
from evictstream.models.messages.envelope import DEFAULT_LIMITS, InputLimits
from evictstream.models.messages.events import NodeEvent, Origin, PodEvent
from evictstream.models.messages.signals import Signal
from evictstream.models.messages.unreadable import Unreadable

_NOWHERE: Final = Origin("", 0, 0)


def read_event(record: RecordedRecord, limits: InputLimits = DEFAULT_LIMITS) -> NodeEvent | PodEvent | Signal | None:
    """Read a change of a node or of a bound pod, or a signal; None for everything else."""
    at_us = record.appended_us
    try:
        if record.topic == "nodes":
            return read_node_record(record.key, record.value, at_us, _NOWHERE, limits)
        if record.topic == "pods":
            decoded = decode_pod_record(record.value, limits)
            return read_decoded_pod(decoded, record.key, at_us, _NOWHERE, limits)
    except Unreadable:
        pass
    return None
