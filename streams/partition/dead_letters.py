"""Dead letters: records that cannot be read or decided, set aside as they came, with the reason.

A dead letter is part of its partition's transaction. So it exists, exactly once, if and only if the position has moved
past the record. A value that does not fit the topic is cut to its first 64 KB, or less; its hash is of the whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evictstream.models.messages.dead_letter import DeadLetterHeaders
from evictstream.models.messages.unreadable import UnreadableReason
from evictstream.streams.compression import Unusable
from evictstream.streams.engine.core.batches import UnusableRecord

if TYPE_CHECKING:
    from evictstream.streams.engine.core.batches import Record
    from evictstream.streams.engine.core.outbox import Outbox
    from evictstream.streams.engine.core.ports import Place

UNDECIDABLE_OBJECT = "Undecidable"  # beyond a limit; the detail is `TOO_LARGE` or `TOO_MUCH`
WRONG_PARTITION = "WrongPartition"  # the detail is `ELSEWHERE`
REASONS = (
    *(reason.value for reason in UnreadableReason),
    Unusable.BAD_BATCH.value,
    Unusable.TRANSACTIONAL.value,
    UNDECIDABLE_OBJECT,
    WRONG_PARTITION,
)

TOO_LARGE = "rows or messages about it would be too large"
TOO_MUCH = "taints or tolerations are too many or too long to be decided about: its pods are left alone"
ELSEWHERE = "the key hashes to another partition"

CUT_BYTES = 65_536  # most of a cut value: enough to recognise the object
HEADROOM_BYTES = 4_096  # most that the headers and Kafka's framing add to key and value
KEY_LIMIT_BYTES = 4_096  # most of a key that is kept; names of clusters and nodes are far shorter


def put_dead_letter(
    outbox: Outbox,
    dead_letters_topic: str,
    *,
    record: Record,
    origin: Place,
    reason: str,
    detail: str,
    limit_bytes: int,
) -> None:
    """Add a dead letter for a record of the partition `origin`.

    `detail` names fields and types, never content: it goes into a header, which people see first.
    """
    key_found, value_found = record.key, record.value
    if isinstance(record, UnusableRecord):
        key_found, value_found = record.content_key, record.content
    value, key = value_found or b"", key_found or b""
    cut = len(value) + len(key) + HEADROOM_BYTES > limit_bytes
    topic, partition = origin
    described = DeadLetterHeaders.describe(
        reason=reason,
        detail=detail,
        topic=topic,
        partition=partition,
        offset=record.offset,
        key=None if key_found is None else key_found[:KEY_LIMIT_BYTES],
        value=value_found,
        truncated=cut,
    )
    headers = [  # a CloudEvents 1.0 context in Kafka's binary mode
        ("ce_specversion", b"1.0"),
        ("ce_id", f"{topic}/{partition}/{record.offset}".encode()),
        ("ce_source", topic.encode()),
        ("ce_type", b"io.evictstream.dead-letter.v1"),
        *described.to_headers(),
    ]
    key = key[:KEY_LIMIT_BYTES]
    if cut:
        value = value[: max(0, min(CUT_BYTES, limit_bytes - HEADROOM_BYTES - len(key)))]
    outbox.send(dead_letters_topic, key, value, headers)
