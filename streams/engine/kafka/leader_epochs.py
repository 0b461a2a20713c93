"""The leader's epoch in what a consumer asks (KIP-320), which aiokafka 0.14.0 leaves out.

A broker that was deposed and does not know it yet answers with an old end of the log, and a takeover that believed it
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
from aiokafka.protocol.fetch import FetchRequest
from aiokafka.protocol.metadata import MetadataRequest
from aiokafka.protocol.offset import OffsetRequest
from kafka.protocol import metadata
from kafka.protocol.consumer import ListOffsetsRequest, ListOffsetsResponse

from evictstream.streams.engine.kafka.generated_requests import GeneratedRequest

FETCH_WITH_EPOCH: Final = 9
METADATA_WITH_EPOCH: Final = 7

UNKNOWN_EPOCH: Final = -1

REFUSED_EPOCHS: Final = (74, 75)
"""FENCED_LEADER_EPOCH and UNKNOWN_LEADER_EPOCH, which aiokafka does not know: asked again after new metadata."""

OLDER_ANSWERS: Final = 5
"""So many answers in a row with an older epoch count as a topic that was made anew. Each comes from some broker."""

_Epochs = Mapping[TopicPartition, int]


class EpochsLast:
    """Answers to Metadata, their partitions as aiokafka reads them, with the epoch behind that."""

    @staticmethod
    def decode(data: Any) -> Any:
        """Decode an answer."""
        answer = metadata.MetadataResponse[METADATA_WITH_EPOCH].decode(data)
        for topic in answer.topics:
            topic.partitions = [
                (error_code, partition, leader, *others, epoch)
                for error_code, partition, leader, epoch, *others in topic.partitions
            ]
        return answer


class _MetadataWithEpochs(GeneratedRequest):
    MESSAGE, API_VERSION, RESPONSE_TYPE = metadata.MetadataRequest, METADATA_WITH_EPOCH, EpochsLast


class _OffsetsWithEpochs(GeneratedRequest):
    MESSAGE, API_VERSION, RESPONSE_TYPE = ListOffsetsRequest, 4, ListOffsetsResponse[4]


class EpochMetadataRequest(MetadataRequest):  # type: ignore[misc]  # aiokafka has no types
    """Asks in version 7 where the broker knows it, else as aiokafka does."""

    def prepare(self, versions: Mapping[int, tuple[int, int]]) -> Any:
        """Build the request for a broker that supports these versions."""
        request = self.build(_MetadataWithEpochs)
        return request if request.is_known(versions) else super().prepare(versions)


class EpochOffsetRequest(OffsetRequest):  # type: ignore[misc]
    """Asks for offsets with the epochs of the leaders; those of aiokafka's version 4 have 8 bytes instead of 4."""

    def __init__(self, request: OffsetRequest, epochs: _Epochs) -> None:
        super().__init__(request._replica_id, request._isolation_level, request._topics)  # noqa: SLF001 - aiokafka's
        self._epochs = epochs

    def prepare(self, versions: Mapping[int, tuple[int, int]]) -> Any:
        """Build the request for a broker that supports these versions."""
        topics = [
            (topic, [(number, _epoch(self._epochs, topic, number), at_ms) for number, at_ms in partitions])
            for topic, partitions in self._topics
        ]
        request = _OffsetsWithEpochs(self._replica_id, self._isolation_level, topics)
        return request if request.is_known(versions) else super().prepare(versions)


class EpochFetchRequest(FetchRequest):  # type: ignore[misc]
    """Fetches with the epochs of the leaders."""

    def __init__(self, request: FetchRequest, epochs: _Epochs) -> None:
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

    def _learn(self, answer: Any) -> None:
        for _, topic, _, partitions in answer.topics if answer.API_VERSION == METADATA_WITH_EPOCH else ():
            for number, epoch in ((found[1], found[-1]) for found in partitions):
                place = TopicPartition(topic, number)
                self._older[place] += 1
                if epoch >= self.leader_epochs.get(place, UNKNOWN_EPOCH) or self._older[place] == OLDER_ANSWERS:
                    self.leader_epochs[place] = epoch
                    self._older[place] = 0
        self._update(answer)

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


def _epoch(epochs: _Epochs, topic: str, number: int) -> int:
    return epochs.get(TopicPartition(topic, number), UNKNOWN_EPOCH)


def _readable(number: int, error_code: int, *others: Any, is_offsets: bool) -> tuple[Any, ...]:
    if error_code in REFUSED_EPOCHS:
        error_code = kafka_errors.NotLeaderForPartitionError.errno
    return (number, error_code, *others[:2]) if is_offsets else (number, error_code, *others)
