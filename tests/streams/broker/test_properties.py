from __future__ import annotations

from evictstream.streams.broker.properties import Detour, NodeAddress, as_environment, as_file, node_properties

NODES = [
    NodeAddress(node_id=n, host="127.0.0.1", client_port=20_000 + n, controller_port=21_000 + n) for n in (1, 2, 3)
]


def test_a_single_node_keeps_one_copy() -> None:
    properties = node_properties(NODES[0], NODES[:1], log_dirs="/d", listen_host="127.0.0.1")
    assert properties["offsets.topic.replication.factor"] == "1"
    assert properties["transaction.state.log.min.isr"] == "1"
    assert properties["listeners"] == "PLAINTEXT://127.0.0.1:20001,CONTROLLER://127.0.0.1:21001"


def test_three_nodes_keep_three_copies_and_need_two() -> None:
    properties = node_properties(NODES[1], NODES, log_dirs="/d", listen_host="127.0.0.1")
    assert properties["node.id"] == "2"
    assert properties["transaction.state.log.replication.factor"] == "3"
    assert properties["transaction.state.log.min.isr"] == "2"
    assert properties["controller.quorum.voters"] == "1@127.0.0.1:21001,2@127.0.0.1:21002,3@127.0.0.1:21003"


def test_topics_are_never_made_by_accident() -> None:
    properties = node_properties(NODES[0], NODES, log_dirs="/d", listen_host="127.0.0.1")
    assert properties["auto.create.topics.enable"] == "false"


def test_as_a_file_and_as_environment() -> None:
    assert as_file({"log.dirs": "C:\\k"}) == "log.dirs=C:\\\\k\n"
    assert as_environment({"log.dirs": "/k"}) == {"KAFKA_LOG_DIRS": "/k"}


def test_a_detour_listens_at_one_port_and_tells_another() -> None:
    node = NodeAddress(
        node_id=1, host="127.0.0.1", client_port=20_001, controller_port=21_001, detours=(Detour(22_001, 23_001),)
    )
    properties = node_properties(node, [node], log_dirs="/d", listen_host="127.0.0.1")
    assert properties["listeners"] == (
        "PLAINTEXT://127.0.0.1:20001,DETOUR0://127.0.0.1:22001,CONTROLLER://127.0.0.1:21001"
    )
    assert properties["advertised.listeners"] == "PLAINTEXT://127.0.0.1:20001,DETOUR0://127.0.0.1:23001"
    assert properties["listener.security.protocol.map"] == "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,DETOUR0:PLAINTEXT"


def test_further_properties_win() -> None:
    more = {"message.max.bytes": "1000", "early.start.listeners": "CONTROLLER"}
    properties = node_properties(NODES[0], NODES, log_dirs="/d", listen_host="127.0.0.1", more=more)
    assert properties["message.max.bytes"] == "1000"
    assert properties["early.start.listeners"] == "CONTROLLER"
