"""Asks the oracle whether what is on the topics of a run is right."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final, get_args

from evictstream.kit.oracle import InputRecord, MessageRecord, OracleLimits, Promptness, Stretch, judge
from evictstream.kit.oracle.records import InputTopic, OutputTopic
from evictstream.models.eviction import RuleParameters
from evictstream.models.instants import MILLISECOND_US, SECOND_US, instant_us
from evictstream.streams.broker.follow import FollowedRecord, follow
from evictstream.streams.settings import Settings

EARLY_US: Final = 5_000
"""How early an eviction may be by append times, which are cut to milliseconds, when clocks agree."""

PATIENCE_US: Final = 5_000_000
"""Within that time everything has to happen, on a machine that a demo keeps busy."""

VIEW_US: Final = 1_000_000
"""So long after its reason went an eviction may still be committed."""


def oracle_limits(settings: Settings) -> OracleLimits:
    """Give the oracle the numbers of the service."""

    def us(seconds: float) -> int:
        return int(seconds * SECOND_US)

    return OracleLimits(
        outage_gap_us=us(settings.outage_gap_seconds),
        retry_base_us=us(settings.retry_base_seconds),
        retry_ceiling_us=us(settings.retry_ceiling_seconds),
        result_silence_us=us(settings.result_silence_seconds),
        success_grace_us=us(settings.success_grace_seconds),
        accepted_silence_us=us(settings.accepted_silence_seconds),
        accepted_limit_us=us(settings.accepted_limit_seconds),
        report_silence_us=RuleParameters().report_silence_us,
        max_event_delay_us=us(settings.max_event_delay_seconds),
        feed_silence_us=us(settings.feed_silence_limit_seconds),
        lag_us=us(settings.lag_limit_seconds),
        clock_skew_us=us(settings.clock_skew_limit_seconds),
        max_object_bytes=settings.max_object_bytes,
        slack_us=PATIENCE_US,
    )


def read_log(settings: Settings) -> tuple[list[InputRecord], list[MessageRecord]]:
    """Read all that was appended and all that was committed.

    Raises:
        BrokerError: a topic cannot be read.
    """
    inputs = [
        InputRecord(topic=topic, value=one.value, **_place(one))
        for topic in get_args(InputTopic)
        for one in _records(settings, topic)
    ]
    messages = [
        MessageRecord(topic=topic, value=one.value or b"", headers=one.headers, **_place(one))
        for topic in get_args(OutputTopic)
        for one in _records(settings, topic)
    ]
    return inputs, messages


def _records(settings: Settings, topic: str) -> Iterator[FollowedRecord]:
    """Give what a topic holds, up to the end that it has when that is reached."""
    name = f"{settings.topic_prefix}{topic}"
    with follow(settings, name, "beginning", is_stopped=lambda: False, idle_seconds=0) as batches:
        for batch in batches:
            yield from batch


def _place(one: FollowedRecord) -> dict[str, Any]:
    at_us = one.timestamp_ms * MILLISECOND_US
    return {"partition": one.partition, "offset": one.offset, "append_at_us": at_us, "key": one.key or b""}


def problems_of(
    inputs: Sequence[InputRecord],
    messages: Sequence[MessageRecord],
    settings: Settings,
    *,
    end_us: int,
    excused: Sequence[Stretch],
) -> list[str]:
    """Judge a run; returns everything that is wrong, one sentence each.

    Args:
        inputs: all that was appended.
        messages: all that was committed.
        settings: of the service.
        end_us: when the play ended, by this machine's clock as `excused`: microseconds since 1970.
        excused: stretches in which the service was kept from working.
    """
    # How far this machine's clock, which the workers share, is ahead of the brokers'; below 0 if it is behind. Records
    # say when they were due, and are sent soon after that. The fastest one counts.
    sent = [(instant_us(json.loads(one.value)["observedAt"]), one.append_at_us) for one in inputs if one.value]
    ahead_us = max((sent_us - append_us for sent_us, append_us in sent), default=0)
    violations = judge(
        inputs,
        messages,
        ended_at_us=end_us - ahead_us,
        partitions=settings.partitions,
        limits=oracle_limits(settings),
        early_us=EARLY_US + max(0, ahead_us),
        may_forget=bool(excused),
        promptness=Promptness(
            late_us=PATIENCE_US + max(0, -ahead_us),
            view_us=VIEW_US,
            excused=tuple((begin - ahead_us, end - ahead_us) for begin, end in excused),
        ),
    )
    dead = sum(message.topic == "dead-letters" for message in messages)
    return [*map(str, violations), *([f"{dead} record(s) became dead letters"] if dead else [])]
