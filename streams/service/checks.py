"""What must be true of the topics before a worker touches anything; differences are told, never mended."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from streams.broker.admin import check_topics

if TYPE_CHECKING:
    from streams.settings import Settings

log = structlog.get_logger(__name__)

FRAMING_BYTES = 4_096  # what Kafka adds to a record that is alone in its batch, headers of ours included


async def checked_record_limit(settings: Settings) -> int:
    """Check all topics and return how large a record may be, from what the topics really take.

    Raises:
        TopicsDifferError: something without which a worker would be wrong.
        BrokerUnreachableError: no Kafka answered in time.

    """
    report = await asyncio.to_thread(check_topics, settings)
    report.raise_if_breaking()
    for difference in report.differences:
        log.warning("topic is not as it should be", difference=str(difference))
    limits = [int(found.actual) for found in report.differences if found.what == "max.message.bytes"]
    return min(limits, default=settings.max_message_bytes) - FRAMING_BYTES
