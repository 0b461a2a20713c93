"""What the demo asks the oracle: what the recording will lead to, and whether what stands on the topics is right."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from evictstream.kit.demo.recording import Event
from evictstream.kit.demo.topics import Log, encode, record_key
from evictstream.kit.oracle import (
    InputRecord,
    OracleLimits,
    PodPlan,
    Promptness,
    Stretch,
    Violation,
    judge,
    plan,
)
from evictstream.models.instants import SECOND_US, instant_us
from evictstream.streams.settings import Settings

EARLY_US = 5_000
"""How early an eviction may be by append times, which are cut to milliseconds, when clocks agree."""

PATIENCE_US = 5_000_000
"""Within that time everything has to happen, on a machine that a demo keeps busy."""

VIEW_US = 1_000_000
"""So long after its reason went an eviction may still be committed."""


def limits_of(settings: Settings) -> OracleLimits:
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
        max_event_delay_us=us(settings.max_event_delay_seconds),
        feed_silence_us=us(settings.feed_silence_limit_seconds),
        lag_us=us(settings.lag_limit_seconds),
        clock_skew_us=us(settings.clock_skew_limit_seconds),
        max_object_bytes=settings.max_object_bytes,
        slack_us=PATIENCE_US,
    )


def plan_of(events: Iterable[Event], settings: Settings) -> dict[str, PodPlan]:
    """Say for each pod, by UID, what watch events lead to."""
    return plan(records_of(events), limits_of(settings), partitions=1)


def records_of(events: Iterable[Event]) -> list[InputRecord]:
    """Give the records of watch events that are appended to one partition, each when it is observed."""
    return [
        InputRecord(
            topic="nodes" if event["object"]["kind"] == "Node" else "pods",
            partition=0,
            offset=offset,
            append_at_us=instant_us(event["observedAt"]),
            key=record_key(event),
            value=encode(event),
        )
        for offset, event in enumerate(events)
    ]


def problems_of(
    log: Log, plans: Mapping[str, PodPlan], settings: Settings, *, end_us: int, excused: Sequence[Stretch]
) -> list[str]:
    """Judge a run; returns everything that is wrong, one sentence each.

    Args:
        log: all that stands on the topics.
        plans: of the same log, for the names of pods.
        settings: of the service.
        end_us: when the watch ended, by this machine's clock as everything here: microseconds since 1970.
        excused: stretches in which the service was kept from working.
    """
    ahead_us = _ahead_us(log.inputs)
    promptness = Promptness(
        late_us=PATIENCE_US + max(0, -ahead_us),
        view_us=VIEW_US,
        excused=tuple((begin - ahead_us, end - ahead_us) for begin, end in excused),
    )
    violations = judge(
        log.inputs,
        log.messages,
        ended_at_us=end_us - ahead_us,
        partitions=settings.partitions,
        limits=limits_of(settings),
        early_us=EARLY_US + max(0, ahead_us),
        may_forget=bool(excused),
        promptness=promptness,
    )
    return [_sentence(violation, plans) for violation in violations]


def _ahead_us(inputs: Iterable[InputRecord]) -> int:
    """Tell how far this machine's clock, which the workers share, is ahead of the brokers'; below 0 if it is behind.

    Heartbeats say when they were sent and when they were appended. The fastest one counts.
    """
    return max((_sent_us(one.value) - one.append_at_us for one in inputs if one.value and _is_beat(one)), default=0)


def _is_beat(record: InputRecord) -> bool:
    return b'"HEARTBEAT"' in (record.value or b"")


def _sent_us(value: bytes) -> int:
    return instant_us(json.loads(value)["observedAt"])


def _sentence(violation: Violation, plans: Mapping[str, PodPlan]) -> str:
    pod = plans.get(violation.pod_uid)
    name = f"{pod.namespace}/{pod.pod}" if pod is not None else violation.pod_uid
    where = f"{name} on {violation.node}" if name else violation.node
    return f"{where}: {violation.rule}: {violation.text}"
