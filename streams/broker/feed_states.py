"""What is kept of each cluster that is fed: on the topic `feeds`, compacted, with one partition and the cluster as key.

The feed writes it and reads it when it starts again; an executor reads it to know that it talks to the same cluster.
A tombstone forgets a cluster. What cannot be read, or is out of range, does not count, and a warning says so.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Annotated, Any, Final

import msgspec
import structlog
from kafka import TopicPartition
from kafka.errors import KafkaTimeoutError

from evictstream.models.instants import MILLISECOND_US
from evictstream.models.kubernetes.resource_versions import LAST_EPOCH
from evictstream.models.messages.envelope import DECODE_ERRORS
from evictstream.models.messages.fields import NonEmptyText
from evictstream.models.messages.fleet import ProfileRef
from evictstream.streams.broker.clients import our_errors
from evictstream.streams.broker.consumers import open_consumer
from evictstream.streams.settings import Settings

log = structlog.get_logger(__name__)


_POLL_MS: Final = 1_000

LAST_VERSION: Final = 2**63 - 1
"""Etcd counts with 63 bits."""


class KnownProfile(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """What a feed has read of the ClusterProfile of its cluster.

    Attributes:
        ref: which it is.
        labels: that it gives the cluster.
    """

    ref: ProfileRef
    labels: dict[str, str] = {}

    @property
    def place(self) -> tuple[str, str]:
        """Namespace and name."""
        return self.ref.namespace, self.ref.name


class FeedState(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """What is kept of one cluster.

    Attributes:
        cluster_uid: UID of its namespace `kube-system`.
        epoch: of its resource versions.
        resource_version: the highest one that its feed has seen in this epoch.
        profile: what its feed has read last in a hub; None if it has read nothing there.
    """

    cluster_uid: NonEmptyText
    epoch: Annotated[int, msgspec.Meta(ge=0, lt=LAST_EPOCH)]  # so that there is a next one
    resource_version: Annotated[int, msgspec.Meta(ge=0, le=LAST_VERSION)]
    profile: KnownProfile | None = None


_decoder: Final = msgspec.json.Decoder(FeedState)


def read_state(settings: Settings, cluster: str) -> FeedState | None:
    """Read what is kept of a cluster; None if nothing is.

    The highest epoch counts: a feed that was frozen, or cut off, may write its own, earlier one behind it.

    Raises:
        BrokerError: the topic cannot be read.
    """
    state: FeedState | None = None
    for record in _records(settings):
        if record.key == cluster.encode():
            state = _newer(state, record, cluster)
    return state


def read_fed(settings: Settings) -> dict[str, int]:
    """Read which clusters feeds follow, and when each was written last, microseconds since 1970.

    A feed writes every ten seconds; one that was stopped for long still follows its cluster when it starts again.
    Without the topic there is no feed.

    Raises:
        BrokerError: the topic cannot be read.
    """
    states: dict[str, FeedState] = {}
    written_at_us: dict[str, int] = {}
    for record in _records(settings):
        cluster = (record.key or b"").decode(errors="replace")
        state = _newer(states.get(cluster), record, cluster)
        if state is None:
            states.pop(cluster, None)
        else:
            states[cluster] = state
            written_at_us[cluster] = record.timestamp * MILLISECOND_US
    return {cluster: written_at_us[cluster] for cluster in states}


def _records(settings: Settings) -> Iterator[Any]:
    """Yield the topic's records up to its present end."""
    partition = TopicPartition(settings.feeds_topic, 0)
    with our_errors(settings, f"read {settings.feeds_topic}"):
        consumer = open_consumer(settings, is_of_inputs=True, group_id=None, auto_offset_reset="earliest")
        try:
            if not consumer.partitions_for_topic(settings.feeds_topic):
                return
            consumer.assign([partition])
            end = consumer.end_offsets([partition])[partition]
            give_up_at = time.monotonic() + settings.request_timeout_seconds
            while consumer.position(partition) < end:
                if time.monotonic() > give_up_at:
                    raise KafkaTimeoutError
                for records in consumer.poll(timeout_ms=_POLL_MS).values():
                    give_up_at = time.monotonic() + settings.request_timeout_seconds
                    yield from records
        finally:
            consumer.close()


def _newer(found: FeedState | None, record: Any, cluster: str) -> FeedState | None:
    """Return what counts once a record about a cluster is read too."""
    if record.value is None:
        return None
    try:
        state = _decoder.decode(record.value)
    except DECODE_ERRORS as error:
        log.warning(
            "unreadable cluster state ignored",
            cluster=cluster,
            topic=record.topic,
            offset=record.offset,
            error=str(error),
        )
        return found
    return state if found is None or state.epoch >= found.epoch else found
