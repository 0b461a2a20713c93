"""The bytes of requests that kafka-python generates, against exchanges with Apache Kafka that were recorded."""

from __future__ import annotations

import io
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import IncompatibleBrokerVersion
from aiokafka.protocol.offset import OffsetRequest

from evictstream.streams.engine.kafka.leader_epochs import EpochMetadataRequest, EpochOffsetRequest
from evictstream.streams.engine.kafka.transaction_requests import EndTransaction, TransactionalProduce

VERSIONS = {0: (0, 13), 2: (1, 11), 3: (0, 13), 26: (0, 5)}
TOPIC, EPOCH, COMMIT = "wire.commands", 7, True
BATCH = (
    "000000000000000000000044ffffffff029b3d5c40001000000000000001a217dd7a87000001a217dd7a87"
    "00000000000000000001000000000000000124000000066b65790a6f746865720202610262"
)

PRODUCE = TransactionalProduce("wire-v1-0", 15_000, 0, {TOPIC: bytearray.fromhex(BATCH)})
END = EndTransaction("wire-v1-0", 0, 0, COMMIT)
METADATA: Any = EpochMetadataRequest([TOPIC])
OFFSETS: Any = EpochOffsetRequest(OffsetRequest(-1, 1, [(TOPIC, [(0, -1)])]), {TopicPartition(TOPIC, 0): EPOCH})

REQUESTS = [
    pytest.param(
        PRODUCE,
        "0000000c0000000b0009776972652d76312d3000"
        "0a776972652d76312d30ffff00003a98020e776972652e636f6d6d616e6473020000000051" + BATCH + "000000",
        id="Produce",
    ),
    pytest.param(
        END,
        "001a00050000000b0009776972652d76312d30000a776972652d76312d30000000000000000000000100",
        id="EndTxn",
    ),
    pytest.param(
        METADATA,
        "000300070000000b0009776972652d76312d3000000001000d776972652e636f6d6d616e647301",
        id="Metadata",
    ),
    pytest.param(
        OFFSETS,
        "000200040000000b0009776972652d76312d30ffffffff0100000001000d776972652e636f6d6d616e6473"
        "000000010000000000000007ffffffffffffffff",
        id="ListOffsets",
    ),
]


@pytest.mark.parametrize(("request_", "expected"), REQUESTS)
def test_request_has_the_bytes_that_brokers_have_taken(request_: Any, expected: str) -> None:
    prepared = request_.prepare(VERSIONS)
    header = prepared.build_request_header(correlation_id=11, client_id="wire-v1-0")
    assert (header.encode() + prepared.encode()).hex() == expected


def answered(request: Any, answer: str) -> Any:
    """What a connection makes of an answer."""
    prepared, data = request.prepare(VERSIONS), io.BytesIO(bytes.fromhex(answer))
    assert prepared.parse_response_header(data).correlation_id == 11
    return prepared.RESPONSE_TYPE.decode(data)


def test_refusal_of_a_broker_that_names_the_leader_is_read() -> None:
    answer = answered(
        PRODUCE,
        "0000000b00020e776972652e636f6d6d616e647302000000000006ffffffffffffffffffffffffffffffffffffffffffffffff"
        "0100010009000000010000000000000000000001001502000000010a3132372e302e302e31000051480000",
    )
    ((found,),) = (topic.partition_responses for topic in answer.responses)
    assert (found.error_code, found.base_offset, found.log_append_time_ms) == (6, -1, -1)


@pytest.mark.parametrize("tags", ["00", "01090212ab", "02090212ab7f00"])
def test_end_is_read_whatever_tags_a_newer_broker_adds(tags: str) -> None:
    answer = answered(END, f"0000000b{tags}00000000000000000000000000050007{tags}")
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (0, 5, 7)


def test_metadata_has_the_epoch_behind_what_aiokafka_reads() -> None:
    answer = answered(
        METADATA,
        "0000000b00000000000000010000000100093132372e302e302e3100005148ffff0016746e574a31486279515f6d676538514e31444b"
        "7156670000000100000001"
        "0000000d776972652e636f6d6d616e64730000000001"
        "000000000000000000010000000300000002000000010000000200000001000000010000000100000002",
    )
    assert [tuple(broker) for broker in answer.brokers] == [(1, "127.0.0.1", 20808, None)]
    assert [tuple(topic) for topic in answer.topics] == [(0, TOPIC, False, [(0, 0, 1, [1, 2], [1], [2], 3)])]


def test_ends_are_read_by_partition() -> None:
    answer = answered(
        OFFSETS,
        "0000000b0000000000000001000d776972652e636f6d6d616e647300000001000000000000ffffffffffffffff"
        "000000000000000400000007",
    )
    ((topic, partitions),) = answer.topics
    assert (topic, *map(tuple, partitions)) == (TOPIC, (0, 0, -1, 4, EPOCH))


@pytest.mark.parametrize("request_", [PRODUCE, END])
def test_transaction_is_not_begun_with_a_broker_without_kip_890(request_: Any) -> None:
    with pytest.raises(IncompatibleBrokerVersion, match="does not know version"):
        request_.prepare({0: (0, 11), 26: (0, 4)})
    with pytest.raises(IncompatibleBrokerVersion):
        request_.prepare({})


@pytest.mark.parametrize("request_", [METADATA, OFFSETS])
def test_older_broker_is_asked_without_epochs(request_: Any) -> None:
    assert request_.prepare({2: (0, 3), 3: (0, 6)}).API_VERSION in {3, 5}
