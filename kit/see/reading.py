"""Reads a service's state from Kafka and goes on following it; no worker is asked, and nothing is written.

The seam is `streams.worker.stored_rows`: the rows of the compacted changelog, as far as they are committed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from evictstream.kit.see.evictions import Silences
from evictstream.kit.see.stored_state import StoredState
from evictstream.models.instants import SECOND_US
from evictstream.streams.broker.admin import check_topics
from evictstream.streams.broker.clients import our_errors, partitions_of
from evictstream.streams.broker.consumers import open_consumer
from evictstream.streams.broker.follow import follow
from evictstream.streams.broker.newest_times import newest_times_us
from evictstream.streams.broker.topic_specs import topic_specs
from evictstream.streams.errors import TopicsDifferError
from evictstream.streams.partitioner import partition_of
from evictstream.streams.settings import Settings
from evictstream.streams.worker.service_config import cluster_rules
from evictstream.streams.worker.stored_rows import read_rows, rows_of_this_version

STALE_SECONDS: Final = 30.0
"""Input that is newer than the newest row by more than this was not read: workers commit each second, and write their
positions every few seconds."""


class ReadState(NamedTuple):
    """What was read.

    Attributes:
        state: the rows.
        positions: by partition, the offset in the changelog behind what was read.
        stale: partitions with input that is newer than their rows by more than `STALE_SECONDS`, in order.
    """

    state: StoredState
    positions: dict[int, int]
    stale: tuple[int, ...]


def silences_of(settings: Settings) -> Silences:
    """Return for how long signs of feeds and executors count."""
    return Silences(
        int(settings.feed_silence_limit_seconds * SECOND_US), cluster_rules(settings).usual.report_silence_us
    )


def read_stored_state(
    settings: Settings, *, cluster: str | None = None, progress: Callable[[int], None] = lambda _: None
) -> ReadState:
    """Read the rows of all partitions, or of the one that a cluster lives in.

    Args:
        settings: which Kafka, and which service.
        cluster: of this one alone; other clusters of its partition come too.
        progress: gets how many rows were read so far.

    Raises:
        BrokerError: the changelog or an input cannot be read, or is missing.
        FoundProblemError: another version wrote the rows.
    """
    specs = [spec for spec in topic_specs(settings) if spec.name == settings.changelog_topic]
    if missing := [str(one) for one in check_topics(settings, specs).breaking if one.what == "topic"]:
        raise TopicsDifferError(missing)
    with our_errors(settings, f"read {settings.changelog_topic}"):
        consumer = open_consumer(settings, group_id=None)
        try:
            for topic in (settings.nodes_topic, settings.pods_topic):  # whether there is input that was not read
                partitions_of(consumer, topic)
            partitions = partitions_of(consumer, settings.changelog_topic)
        finally:
            consumer.close()
    if cluster is not None:
        partitions = (partition_of(cluster.encode(), len(partitions)),)
    state = StoredState()
    positions = read_rows(settings, partitions, state.load, progress)
    return ReadState(state, positions, _stale(settings, partitions))


def follow_state(settings: Settings, read: ReadState, is_stopped: Callable[[], bool]) -> Iterator[None]:
    """Take later rows over as they come, until stopped; yields after each look, several times a second.

    Raises:
        BrokerError: Kafka refused. While it does not answer, the follower waits.
        FoundProblemError: another version wrote a row.
    """
    topic = settings.changelog_topic
    with follow(settings, topic, read.positions, is_stopped=is_stopped, tells_idle=True) as batches:
        for batch in batches:
            # By offset, as a new leader's clock may be behind the old one's.
            for record in sorted(batch, key=lambda one: (one.partition, one.offset)):
                if record.key is not None:
                    with rows_of_this_version(settings):
                        read.state.load(record.partition, record.key, record.value)
            yield


def _stale(settings: Settings, partitions: tuple[int, ...]) -> tuple[int, ...]:
    inputs, changelog = (settings.nodes_topic, settings.pods_topic), settings.changelog_topic
    newest = newest_times_us(settings, ((topic, number) for topic in (*inputs, changelog) for number in partitions))
    return stale_partitions(newest, partitions, inputs, changelog)


def stale_partitions(
    newest_us: Mapping[tuple[str, int], int], partitions: Iterable[int], inputs: Iterable[str], changelog: str
) -> tuple[int, ...]:
    """Return the partitions whose newest input is much newer than their newest row; `newest_us` by topic and number."""
    limit_us = int(STALE_SECONDS * SECOND_US)
    return tuple(
        number
        for number in partitions
        if max(newest_us.get((topic, number), 0) for topic in inputs) - newest_us.get((changelog, number), 0) > limit_us
    )
