"""Dead letters as a list shows them, read from their topic, and whether one would be read if it were sent again."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from evictstream.models.instants import MILLISECOND_US, instant_text
from evictstream.models.messages.dead_letter import DeadLetterHeaders
from evictstream.models.messages.decoding import read_node_record, read_pod_record, read_result_record
from evictstream.models.messages.events import NodeEvent, Origin, PodEvent
from evictstream.models.messages.signals import Signal
from evictstream.models.messages.unreadable import Unreadable
from evictstream.streams.broker.follow import follow
from evictstream.streams.partition.record_sizes import fitting

if TYPE_CHECKING:
    from evictstream.streams.broker.follow import FollowedRecord, Start
    from evictstream.streams.partition.config import PartitionConfig
    from evictstream.streams.settings import Settings

_MOST_OF_KEY: Final = 100
"""Characters of a key that a list has; a cluster's name is shorter."""


class SeenDeadLetter(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True, kw_only=True):
    """One dead letter, without its value.

    Attributes:
        place: where the record came from, `TOPIC/PARTITION/OFFSET`, without the prefix of the service's topics.
        at: when it became a dead letter.
        reason: one word.
        detail: what is wrong, by fields and types.
        key: the record's key, as far as it is text: the cluster's name.
        size: bytes of the whole value.
        truncated: only the beginning of the value was kept.
    """

    place: str
    at: str
    reason: str
    detail: str
    key: str | None = None
    size: int | None = None
    truncated: bool = False


class DeadLetter(NamedTuple):
    """A dead letter as it was read: what a list shows, its headers, and the record."""

    seen: SeenDeadLetter
    headers: DeadLetterHeaders
    record: FollowedRecord


def read_dead_letters(settings: Settings, since: Start) -> Iterator[DeadLetter]:
    """Yield the dead letters from an instant up to now; what is none is passed over.

    Raises:
        BrokerError: the topic cannot be read.
    """
    topic = settings.dead_letters_topic
    with follow(settings, topic, since, is_stopped=lambda: False, idle_seconds=0) as batches:
        for batch in batches:
            for record in batch:
                letter = dead_letter_of(settings, record)
                if letter is not None:
                    yield letter


def dead_letter_of(settings: Settings, record: FollowedRecord) -> DeadLetter | None:
    """Read a record of the dead-letters topic; None if it is none."""
    try:
        headers = DeadLetterHeaders.from_headers(record.headers.items())
    except Unreadable:
        return None
    topic = headers.origin_topic.removeprefix(settings.topic_prefix)
    key = None if headers.origin_key is None else base64.b64decode(headers.origin_key).decode(errors="replace")
    seen = SeenDeadLetter(
        place=f"{topic}/{headers.origin_partition}/{headers.origin_offset}",
        at=instant_text(record.timestamp_ms * MILLISECOND_US),
        reason=headers.reason,
        detail=headers.detail,
        key=None if key is None else key[:_MOST_OF_KEY],
        size=headers.size,
        truncated=headers.truncated,
    )
    return DeadLetter(seen, headers, record)


def why_not_again(letter: DeadLetter, at_us: int, config: PartitionConfig) -> str | None:
    """Say why a record would not be used if it were sent again; None if it would.

    Args:
        letter: the dead letter.
        at_us: when it would be appended, microseconds since 1970.
        config: topics and limits of the service.
    """
    headers, value = letter.headers, letter.record.value
    read = {
        config.nodes_topic: read_node_record,
        config.pods_topic: read_pod_record,
        config.results_topic: read_result_record,
    }.get(headers.origin_topic)
    if read is None:
        return "it comes from no input of this service"
    if headers.truncated:
        return "only the beginning of its value was kept"
    key = None if headers.origin_key is None else base64.b64decode(headers.origin_key)
    origin = Origin(headers.origin_topic, headers.origin_partition, headers.origin_offset)
    try:
        event = read(key, value if headers.size is not None else None, at_us, origin, config.limits)
    except Unreadable as error:
        return f"it would be a dead letter again: {error}"
    if isinstance(event, Signal):
        return "it changes no node, pod or eviction; a signal counts only when it is sent"
    fit = fitting(event, config.record_limit_bytes)
    if fit is None or (isinstance(fit, NodeEvent | PodEvent) and fit.is_undecidable):
        return f"it would be a dead letter again: {headers.detail}"
    return None
