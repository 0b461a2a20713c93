"""Checks the topics before a worker starts. It reports differences and repairs none."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

import structlog

from evictstream.streams.broker.admin import check_topics, topic_names
from evictstream.streams.broker.missing_topics import MISSING_LOOK_SECONDS, MissingTopics
from evictstream.streams.broker.topic_specs import topic_specs
from evictstream.streams.engine.kafka.log_reader import KafkaLogReader
from evictstream.streams.errors import OtherStateVersionError
from evictstream.streams.start_line import log_start
from evictstream.streams.worker.service_config import engine_config

if TYPE_CHECKING:
    from evictstream.streams.settings import Settings

log = structlog.get_logger(__name__)

FRAMING_BYTES = 4_096  # most that Kafka's framing and evictstream's headers add to a record, alone in its batch


async def checked_record_limit(settings: Settings) -> int:
    """Check the topics of a worker; returns how large a record may be, by their smallest `max.message.bytes`.

    What it learns of Kafka is the first line of the log. Topics that are missing are waited for.

    Raises:
        TopicsDifferError: a topic is still missing, or differs so that a worker would decide wrongly.
        BrokerRefusedError: this user may not do what a worker does.
        OtherStateVersionError: the changelog is empty, and one of another state version exists.
        BrokerUnreachableError: no Kafka answered in time.
    """
    unused = {settings.feeds_topic} | (set() if settings.publish_workloads else {settings.workloads_topic})
    used = [spec for spec in topic_specs(settings) if spec.name not in unused]
    report = await asyncio.to_thread(check_topics, settings, used)
    event_loop = type(asyncio.get_running_loop()).__module__.partition(".")[0]
    log_start("worker starting", settings, report.kafka, instance=settings.group_instance_id, event_loop=event_loop)
    waiting = MissingTopics(settings)
    while waiting.may_come(report):
        await asyncio.sleep(MISSING_LOOK_SECONDS)
        report = await asyncio.to_thread(check_topics, settings, used)
    report.raise_if_breaking()
    written = (*settings.written_topics, settings.changelog_topic)
    report.raise_if_forbidden(
        "READ", (*settings.input_topics, settings.brakes_topic, settings.policies_topic, *written)
    )
    report.raise_if_forbidden("WRITE", written)
    for difference in report.differences:
        log.warning("topic configuration differs", difference=str(difference))
    await _refuse_empty_beside_another_version(settings)
    limits = [int(found.actual) for found in report.differences if found.what == "max.message.bytes"]
    return min(limits, default=settings.max_message_bytes) - FRAMING_BYTES


async def _refuse_empty_beside_another_version(settings: Settings) -> None:
    """Refuse an empty changelog beside one of another state version: every window would start anew."""
    pattern = re.compile(rf"{re.escape(settings.application_id)}-v\d+-state-changelog")
    names = await asyncio.to_thread(topic_names, settings)
    others = sorted(name for name in names if pattern.fullmatch(name) and name != settings.changelog_topic)
    if not others:
        return
    places = [(settings.changelog_topic, number) for number in range(settings.partitions)]
    async with KafkaLogReader(engine_config(settings)) as reader:
        ends = await reader.starts_and_ends(places)
    if not any(end for _, end in ends.values()):
        raise OtherStateVersionError(changelog=settings.changelog_topic, others=tuple(others))
