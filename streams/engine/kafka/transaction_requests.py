"""The requests of KIP-890's transactions: Produce 12, EndTxn 5, ApiVersions 3."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from aiokafka.errors import IncompatibleBrokerVersion
from kafka.protocol.metadata import ApiVersionsRequest, ApiVersionsResponse
from kafka.protocol.producer import EndTxnRequest, EndTxnResponse, ProduceRequest, ProduceResponse

from evictstream.streams.engine.kafka.generated_requests import GeneratedRequest

if TYPE_CHECKING:
    from aiokafka.client import AIOKafkaClient

ALL_REPLICAS: Final = -1

TRANSACTION_VERSION: Final = "transaction.version"


class TransactionalProduce(GeneratedRequest):
    """Append batches to the partitions of one leader, which adds them to the transaction.

    Attributes:
        size_bytes: of all batches.
    """

    MESSAGE, API_VERSION, RESPONSE_TYPE = ProduceRequest, 12, ProduceResponse[12]

    def __init__(
        self, transactional_id: str, timeout_ms: int, partition: int, batches: Mapping[str, bytearray]
    ) -> None:
        """`batches` has by topic the batch for its partition of that number."""
        self.size_bytes = sum(map(len, batches.values()))
        topics = [(topic, [(partition, batch)]) for topic, batch in batches.items()]
        super().__init__(transactional_id, ALL_REPLICAS, timeout_ms, topics)


class EndTransaction(GeneratedRequest):
    """Commit or abort, and learn the next epoch; fields: transactional id, producer id, epoch, whether to commit."""

    MESSAGE, API_VERSION, RESPONSE_TYPE = EndTxnRequest, 5, EndTxnResponse[5]


class _ApiVersions(GeneratedRequest):
    MESSAGE, API_VERSION, RESPONSE_TYPE = ApiVersionsRequest, 3, ApiVersionsResponse[3]
    parse_response_header = ApiVersionsResponse[3].parse_header  # of version 0, so that a client can read a refusal


async def transaction_version(client: AIOKafkaClient, node_id: int) -> int:
    """Ask a broker for the cluster's `transaction.version`; 0 where brokers do not know it.

    Raises:
        KafkaError: no answer.
    """
    try:
        answer = await client.send(node_id, _ApiVersions("evictstream", "0"))
    except IncompatibleBrokerVersion:
        return 0
    levels = {feature.name: feature.max_version_level for feature in answer.finalized_features}
    return int(levels.get(TRANSACTION_VERSION, 0))
