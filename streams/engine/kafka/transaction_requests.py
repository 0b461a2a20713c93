"""The requests of KIP-890's transactions, which aiokafka 0.14.0 does not have: Produce 12, EndTxn 5, ApiVersions 3.

They are those of Kafka's `ProduceRequest.json`, `EndTxnRequest.json` and `ApiVersionsRequest.json`, as aiokafka writes
its own: a request that builds itself for a broker, a structure with its schema, and the schema of its answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final

from aiokafka.errors import IncompatibleBrokerVersion
from aiokafka.protocol.api import RequestStruct, Response, ResponseHeader_v0
from aiokafka.protocol.types import (
    Boolean,
    CompactArray,
    CompactBytes,
    CompactString,
    Int16,
    Int32,
    Int64,
    Schema,
    TaggedFields,
)

if TYPE_CHECKING:
    from aiokafka.client import AIOKafkaClient

PRODUCE, API_VERSIONS, END_TXN = 0, 18, 26
ALL_REPLICAS: Final = -1

TRANSACTION_VERSION: Final = "transaction.version"
FINALIZED_FEATURES_TAG: Final = 2

_NO_TAGS: Final[dict[int, bytes]] = {}

_FEATURES: Final = CompactArray(
    ("name", CompactString("utf-8")), ("max_level", Int16), ("min_level", Int16), ("tags", TaggedFields)
)


class ProduceAnswer(Response):  # type: ignore[misc]  # aiokafka has no types
    """By topic and partition an error code, the offset of the batch's first record and the append time."""

    API_KEY = PRODUCE
    API_VERSION = 12
    SCHEMA = Schema(
        (
            "topics",
            CompactArray(
                ("topic", CompactString("utf-8")),
                (
                    "partitions",
                    CompactArray(
                        ("partition", Int32),
                        ("error_code", Int16),
                        ("offset", Int64),
                        ("timestamp", Int64),
                        ("log_start_offset", Int64),
                        (
                            "record_errors",
                            CompactArray(
                                ("batch_index", Int32), ("message", CompactString("utf-8")), ("tags", TaggedFields)
                            ),
                        ),
                        ("error_message", CompactString("utf-8")),
                        ("tags", TaggedFields),
                    ),
                ),
                ("tags", TaggedFields),
            ),
        ),
        ("throttle_time_ms", Int32),
        ("tags", TaggedFields),
    )


class ProduceStruct(RequestStruct):  # type: ignore[misc]
    """Version 12: the broker adds the partitions to the transaction."""

    API_KEY = PRODUCE
    API_VERSION = 12
    FLEXIBLE_VERSION = True
    RESPONSE_TYPE = ProduceAnswer
    SCHEMA = Schema(
        ("transactional_id", CompactString("utf-8")),
        ("required_acks", Int16),
        ("timeout_ms", Int32),
        (
            "topics",
            CompactArray(
                ("topic", CompactString("utf-8")),
                (
                    "partitions",
                    CompactArray(("partition", Int32), ("batch", CompactBytes), ("tags", TaggedFields)),
                ),
                ("tags", TaggedFields),
            ),
        ),
        ("tags", TaggedFields),
    )


class EndTxnAnswer(Response):  # type: ignore[misc]
    """The producer id and epoch of the next transaction."""

    API_KEY = END_TXN
    API_VERSION = 5
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        ("error_code", Int16),
        ("producer_id", Int64),
        ("producer_epoch", Int16),
        ("tags", TaggedFields),
    )


class EndTxnStruct(RequestStruct):  # type: ignore[misc]
    """Version 5: the coordinator changes the epoch."""

    API_KEY = END_TXN
    API_VERSION = 5
    FLEXIBLE_VERSION = True
    RESPONSE_TYPE = EndTxnAnswer
    SCHEMA = Schema(
        ("transactional_id", CompactString("utf-8")),
        ("producer_id", Int64),
        ("producer_epoch", Int16),
        ("committed", Boolean),
        ("tags", TaggedFields),
    )


class ApiVersionsAnswer(Response):  # type: ignore[misc]
    """What a broker supports; the cluster's features are among the tagged fields."""

    API_KEY = API_VERSIONS
    API_VERSION = 3
    SCHEMA = Schema(
        ("error_code", Int16),
        (
            "api_versions",
            CompactArray(("api_key", Int16), ("min_version", Int16), ("max_version", Int16), ("tags", TaggedFields)),
        ),
        ("throttle_time_ms", Int32),
        ("tags", TaggedFields),
    )


class ApiVersionsStruct(RequestStruct):  # type: ignore[misc]
    """Version 3. Its answer's header is that of version 0, so that a client can read a refusal."""

    API_KEY = API_VERSIONS
    API_VERSION = 3
    FLEXIBLE_VERSION = True
    RESPONSE_TYPE = ApiVersionsAnswer
    SCHEMA = Schema(("software", CompactString("utf-8")), ("version", CompactString("utf-8")), ("tags", TaggedFields))

    def parse_response_header(self, read_buffer: BytesIO | bytes) -> Any:
        """Read the header."""
        return ResponseHeader_v0.decode(read_buffer)


class OneVersion:
    """A request that exists in one version only.

    Raises:
        IncompatibleBrokerVersion: from `prepare`, where the broker does not know that version.
    """

    API_KEY: int
    STRUCT: type[RequestStruct]

    def __init__(self, *fields: object) -> None:
        """`fields` are those of the structure, without its tags."""
        self._fields = fields

    def prepare(self, versions: Mapping[int, tuple[int, int]]) -> RequestStruct:
        """Build the request for a broker that supports these versions."""
        least, most = versions.get(self.API_KEY, (0, -1))
        if not least <= self.STRUCT.API_VERSION <= most:
            message = f"the broker does not know version {self.STRUCT.API_VERSION} of API {self.API_KEY}"
            raise IncompatibleBrokerVersion(message)
        return self.STRUCT(*self._fields, _NO_TAGS)


class TransactionalProduce(OneVersion):
    """Append batches to the partitions of one leader.

    Attributes:
        size_bytes: of all batches.
    """

    API_KEY, STRUCT = PRODUCE, ProduceStruct

    def __init__(
        self, transactional_id: str, timeout_ms: int, partition: int, batches: Mapping[str, bytearray]
    ) -> None:
        """`batches` has by topic the batch for its partition of that number."""
        self.size_bytes = sum(map(len, batches.values()))
        topics = [(topic, [(partition, batch, _NO_TAGS)], _NO_TAGS) for topic, batch in batches.items()]
        super().__init__(transactional_id, ALL_REPLICAS, timeout_ms, topics)


class EndTransaction(OneVersion):
    """Commit or abort; fields: transactional id, producer id, epoch, whether to commit."""

    API_KEY, STRUCT = END_TXN, EndTxnStruct


class _ApiVersions(OneVersion):
    API_KEY, STRUCT = API_VERSIONS, ApiVersionsStruct


async def transaction_version(client: AIOKafkaClient, node_id: int) -> int:
    """Ask a broker for the cluster's `transaction.version`; 0 where brokers do not know it.

    Raises:
        KafkaError: no answer.
    """
    try:
        answer = await client.send(node_id, _ApiVersions("evictstream", "0"))
    except IncompatibleBrokerVersion:
        return 0
    finalized = answer.tags.get(FINALIZED_FEATURES_TAG)
    if finalized is None:
        return 0
    return max(
        (level for name, level, _, _ in _FEATURES.decode(BytesIO(finalized)) if name == TRANSACTION_VERSION), default=0
    )
