"""Topics of a live service as records of a recording, read as any other reader does: nothing is written."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Iterator
from typing import Final

from evictstream.kit.recordings.record import INPUT_ROLES, RecordedRecord, Role
from evictstream.kit.recordings.recording_folder import RecordingWriter
from evictstream.streams.broker.follow import Start, follow
from evictstream.streams.settings import Settings

OUTPUT_ROLES: Final[tuple[Role, ...]] = ("commands", "decisions")


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
    topics: dict[Role, str] = {
        "nodes": settings.nodes_topic,
        "pods": settings.pods_topic,
        "results": settings.results_topic,
        "commands": settings.commands_topic,
        "decisions": settings.decisions_topic,
    }
    keys = {cluster.encode() for cluster in clusters}
    with follow(settings, topics[role], since, is_stopped=is_stopped, idle_seconds=0) as batches:
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
) -> None:
    """Write what the topics hold, one topic after the other, each to the end that it has when it is reached.

    Args:
        settings: which Kafka, and which service.
        writer: takes the records.
        since: where to begin.
        until: records of this instant or later are left out; None takes all.
        clusters: only of these; empty for all.
        with_outputs: commands and decisions too.
        is_stopped: asked several times a second; ends it.
        progress: gets the topic and how many of its records were written, after each batch.

    Raises:
        BrokerError: the topics cannot be read.
    """
    until_ms = None if until is None else int(until.timestamp() * 1_000)
    for role in (*INPUT_ROLES, *(OUTPUT_ROLES if with_outputs else ())):
        count = 0
        for batch in read_topic(settings, role, since=since, clusters=clusters, is_stopped=is_stopped):
            for record in batch:
                if until_ms is None or record.timestamp < until_ms:
                    count += 1
                    writer.write(record)
            progress(role, count)
