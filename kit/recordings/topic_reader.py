"""Topics of a live service as records of a recording, read as any other reader does: nothing is written."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Iterator
from typing import Final

from evictstream.kit.recordings.record import INPUT_ROLES, STEERING_ROLES, RecordedRecord, Role
from evictstream.kit.recordings.recording_folder import RecordingWriter
from evictstream.streams.broker.admin import readable_partitions
from evictstream.streams.broker.follow import Start, follow
from evictstream.streams.errors import BrokerRefusedError, TopicsDifferError
from evictstream.streams.settings import Settings

OUTPUT_ROLES: Final[tuple[Role, ...]] = ("commands", "decisions")


def topic_of(settings: Settings, role: Role) -> str:
    """Return the name of a topic."""
    topics: dict[Role, str] = {
        "nodes": settings.nodes_topic,
        "pods": settings.pods_topic,
        "results": settings.results_topic,
        "commands": settings.commands_topic,
        "decisions": settings.decisions_topic,
        "brakes": settings.brakes_topic,
        "policies": settings.policies_topic,
    }
    return topics[role]


def _readable_steering(settings: Settings, on_problem: Callable[[str], object]) -> Iterator[Role]:
    """Give which of brakes and policies can be read; a service of an earlier version has no such topics."""
    for role in STEERING_ROLES:
        try:
            readable_partitions(settings, topic_of(settings, role))
        except BrokerRefusedError as error:
            on_problem(f"{role} are not recorded: {error}")
        except TopicsDifferError:
            continue
        else:
            yield role


def read_topic(
    settings: Settings,
    role: Role,
    *,
    since: Start,
    clusters: Collection[str],
    is_stopped: Callable[[], bool],
) -> Iterator[list[RecordedRecord]]:
    """Give the records of a topic in batches, to the end that it has when that is reached.

    Args:
        settings: which Kafka, and which service.
        role: of the topic.
        since: where to begin.
        clusters: only of these; empty for all.
        is_stopped: asked several times a second; ends it.

    Raises:
        BrokerError: the topic cannot be read.
    """
    keys = {cluster.encode() for cluster in clusters}
    with follow(settings, topic_of(settings, role), since, is_stopped=is_stopped, idle_seconds=0) as batches:
        for batch in batches:
            yield [
                RecordedRecord(
                    topic=role,
                    partition=record.partition,
                    offset=record.offset,
                    timestamp=record.timestamp_ms,
                    key=record.key,
                    value=record.value,
                )
                for record in batch
                if not keys or record.key in keys
            ]


def record_topics(
    settings: Settings,
    writer: RecordingWriter,
    *,
    since: Start,
    until: dt.datetime | None,
    clusters: Collection[str],
    with_outputs: bool,
    is_stopped: Callable[[], bool],
    progress: Callable[[Role, int], object] = lambda _, __: None,
    on_problem: Callable[[str], object] = lambda _: None,
) -> None:
    """Write what the topics hold, one topic after the other, each to the end that it has when it is reached.

    Brakes and policies are written from their beginning on, whatever the clusters: those of before still stand.

    Args:
        settings: which Kafka, and which service.
        writer: takes the records.
        since: where to begin.
        until: records of this instant or later are left out; None takes all.
        clusters: only of these; empty for all.
        with_outputs: commands and decisions too.
        is_stopped: asked several times a second; ends it.
        progress: gets the topic and how many of its records were written, after each batch.
        on_problem: gets why brakes or policies are left out, as this user may not read them.

    Raises:
        BrokerError: the topics cannot be read.
    """
    until_ms = None if until is None else int(until.timestamp() * 1_000)
    steering = list(_readable_steering(settings, on_problem))
    for role in (*steering, *INPUT_ROLES, *(OUTPUT_ROLES if with_outputs else ())):
        count, is_steering = 0, role in STEERING_ROLES
        begin, some = ("beginning", ()) if is_steering else (since, clusters)
        for batch in read_topic(settings, role, since=begin, clusters=some, is_stopped=is_stopped):
            for record in batch:
                if until_ms is None or record.timestamp < until_ms:
                    count += 1
                    writer.write(record)
            progress(role, count)
