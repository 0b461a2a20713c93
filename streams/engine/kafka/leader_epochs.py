"""The leader's epoch in what a consumer asks (KIP-320), which aiokafka 0.14.0 leaves out.

A broker that was deposed and does not know it yet answers with an old end of the log, and a take-over that believed it
would miss rows. With the epoch of the newest leader in the request it has to refuse. An epoch cannot help a client that
has heard of the new leader from nobody: that is what `lands_at` in `partition_producer` is for.

Metadata of version 7 has the epochs. Here Fetch 9 and ListOffsets 4, and later versions, name them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import aiokafka.client
import aiokafka.consumer.consumer as aiokafka_consumer
from aiokafka import TopicPartition
from aiokafka import errors as kafka_errors
from aiokafka.client import AIOKafkaClient
from aiokafka.protocol.api import RequestStruct, Response
from aiokafka.protocol.fetch import FetchRequest
from aiokafka.protocol.metadata import MetadataRequest, MetadataRequest_v5, MetadataResponse_v5
from aiokafka.protocol.offset import OffsetRequest, OffsetResponse_v4
from aiokafka.protocol.types import Array, Boolean, Int8, Int16, Int32, Int64, Schema, String

FETCH_WITH_EPOCH: Final = 9
LIST_OFFSETS, LIST_OFFSETS_WITH_EPOCH = 2, 4
METADATA, METADATA_WITH_EPOCH = 3, 7

UNKNOWN_EPOCH: Final = -1

REFUSED_EPOCHS: Final = (74, 75)
"""FENCED_LEADER_EPOCH and UNKNOWN_LEADER_EPOCH, which aiokafka does not know: asked again after new metadata."""

OLDER_ANSWERS: Final = 5
"""So many answers in a row with an older epoch count as a topic that was made anew. Each comes from some broker."""

Epochs = Mapping[TopicPartition, int]


class _EpochLast(Schema):  # type: ignore[misc]  # aiokafka has no types
    """A partition's metadata, with the epoch behind what aiokafka reads."""

    def decode(self, data: Any) -> tuple[Any, ...]:
        error_code, partition, leader, epoch, *others = super().decode(data)
        return error_code, partition, leader, *others, epoch


class MetadataAnswer(Response):  # type: ignore[misc]
    """Version 7."""

    API_KEY = METADATA
    API_VERSION = METADATA_WITH_EPOCH
    SCHEMA = Schema(
        *zip(MetadataResponse_v5.SCHEMA.names[:-1], MetadataResponse_v5.SCHEMA.fields[:-1], strict=True),
        (
            "topics",
            Array(
                ("error_code", Int16),
                ("topic", String("utf-8")),
                ("is_internal", Boolean),
                (
                    "partitions",
                    Array(
                        _EpochLast(
                            ("error_code", Int16),
                            ("partition", Int32),
                            ("leader", Int32),
                            ("leader_epoch", Int32),
                            ("replicas", Array(Int32)),
                            ("isr", Array(Int32)),
                            ("offline_replicas", Array(Int32)),
                        )
                    ),
                ),
            ),
        ),
    )


class MetadataStruct(RequestStruct):  # type: ignore[misc]
    """Version 7."""

    API_KEY = METADATA
    API_VERSION = METADATA_WITH_EPOCH
    RESPONSE_TYPE = MetadataAnswer
    SCHEMA = MetadataRequest_v5.SCHEMA


class EpochMetadataRequest(MetadataRequest):  # type: ignore[misc]
    """Asks in version 7 where the broker knows it, else as aiokafka does."""

    def prepare(self, versions: Mapping[int, tuple[int, int]]) -> Any:
        """Build the request for a broker that supports these versions."""
        least, most = versions.get(self.API_KEY, (0, 0))
        if least <= METADATA_WITH_EPOCH <= most:
            return self.build(MetadataStruct)
        return super().prepare(versions)


class OffsetStruct(RequestStruct):  # type: ignore[misc]
    """Version 4; that of aiokafka 0.14.0 has epochs of 8 bytes, which no broker understands."""

    API_KEY = LIST_OFFSETS
    API_VERSION = LIST_OFFSETS_WITH_EPOCH
    RESPONSE_TYPE = OffsetResponse_v4
    SCHEMA = Schema(
        ("replica_id", Int32),
        ("isolation_level", Int8),
        (
            "topics",
            Array(
                ("topic", String("utf-8")),
                (
                    "partitions",
                    Array(("partition", Int32), ("current_leader_epoch", Int32), ("timestamp", Int64)),
                ),
            ),
        ),
    )


class EpochOffsetRequest(OffsetRequest):  # type: ignore[misc]
    """Asks for offsets with the epochs of the leaders."""

    def __init__(self, request: OffsetRequest, epochs: Epochs) -> None:
        super().__init__(request._replica_id, request._isolation_level, request._topics)  # noqa: SLF001 - aiokafka's
        self._epochs = epochs

    def prepare(self, versions: Mapping[int, tuple[int, int]]) -> Any:
        """Build the request for a broker that supports these versions."""
        least, most = versions.get(self.API_KEY, (0, 0))
        if not least <= LIST_OFFSETS_WITH_EPOCH <= most:
            return super().prepare(versions)
        topics = [
            (topic, [(number, _epoch(self._epochs, topic, number), at_ms) for number, at_ms in partitions])
            for topic, partitions in self._topics
        ]
        return OffsetStruct(self._replica_id, self._isolation_level, topics)


class EpochFetchRequest(FetchRequest):  # type: ignore[misc]
    """Fetches with the epochs of the leaders."""

    def __init__(self, request: FetchRequest, epochs: Epochs) -> None:
        self.__dict__.update(request.__dict__)
        self._epochs = epochs

    def build(self, request_struct_class: Any) -> Any:
        """Build the request in one version."""
        built = super().build(request_struct_class)
        if request_struct_class.API_VERSION >= FETCH_WITH_EPOCH:
            built.topics = [
                (topic, [(number, _epoch(self._epochs, topic, number), *others) for number, _, *others in partitions])
                for topic, partitions in built.topics
            ]
        return built


class EpochClient(AIOKafkaClient):  # type: ignore[misc]
    """aiokafka's client, which names epochs in Fetch and ListOffsets.

    Attributes:
        leader_epochs: the newest known, by partition.
    """

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.leader_epochs: dict[TopicPartition, int] = {}
        self._older: Counter[TopicPartition] = Counter()
        self._update = self.cluster.update_metadata
        self.cluster.update_metadata = self._learn

    def _learn(self, metadata: Any) -> None:
        for _, topic, _, partitions in metadata.topics if metadata.API_VERSION == METADATA_WITH_EPOCH else ():
            for number, epoch in ((found[1], found[-1]) for found in partitions):
                place = TopicPartition(topic, number)
                self._older[place] += 1
                if epoch >= self.leader_epochs.get(place, UNKNOWN_EPOCH) or self._older[place] == OLDER_ANSWERS:
                    self.leader_epochs[place] = epoch
                    self._older[place] = 0
        self._update(metadata)

    async def send(self, node_id: int, request: Any, **how: Any) -> Any:
        """Send a request, a Fetch or ListOffsets with epochs. A refused epoch looks like a leader that is none."""
        if isinstance(request, FetchRequest):
            request = EpochFetchRequest(request, self.leader_epochs)
        elif isinstance(request, OffsetRequest):
            request = EpochOffsetRequest(request, self.leader_epochs)
        else:
            return await super().send(node_id, request, **how)
        answer = await super().send(node_id, request, **how)
        # Both answers begin with partition and error code. In ListOffsets aiokafka takes nothing behind the offset.
        is_offsets = isinstance(request, OffsetRequest)
        answer.topics = [
            (topic, [_readable(*found, is_offsets=is_offsets) for found in partitions])
            for topic, partitions in answer.topics
        ]
        return answer


def use_leader_epochs() -> None:
    """Let the aiokafka consumers of this process name leader epochs from now on."""
    aiokafka.client.MetadataRequest = EpochMetadataRequest
    aiokafka_consumer.AIOKafkaClient = EpochClient


def _epoch(epochs: Epochs, topic: str, number: int) -> int:
    return epochs.get(TopicPartition(topic, number), UNKNOWN_EPOCH)


def _readable(number: int, error_code: int, *others: Any, is_offsets: bool) -> tuple[Any, ...]:
    if error_code in REFUSED_EPOCHS:
        error_code = kafka_errors.NotLeaderForPartitionError.errno
    return (number, error_code, *others[:2]) if is_offsets else (number, error_code, *others)
