"""Configuration of a Kafka for trying out and for tests.

Small, quick to start, on loopback, and otherwise the real thing. Pure.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from evictstream.streams.settings.topics import MEBIBYTE

INTERNAL_PARTITIONS = 8
"""Partitions of Kafka's own topics for offsets and transactions. Its default of 50 each costs seconds at the first
use."""


@dataclasses.dataclass(frozen=True, slots=True)
class Detour:
    """One more way to a node: it listens at one port and tells clients another one.

    Whoever listens there stands between the node and the clients that come this way, and may slow or cut them off.
    """

    listen_port: int
    told_port: int


@dataclasses.dataclass(frozen=True, slots=True)
class NodeAddress:
    """One node of the cluster: where clients and where the other nodes reach it."""

    node_id: int
    host: str
    client_port: int
    controller_port: int
    detours: tuple[Detour, ...] = ()


def node_properties(
    node: NodeAddress,
    cluster: Sequence[NodeAddress],
    *,
    log_dirs: str,
    listen_host: str,
    more: Mapping[str, str] | None = None,
) -> Mapping[str, str]:
    """Return the properties of one node that is broker and controller of a KRaft cluster at once.

    Args:
        node: the node itself; its `host` is what clients are told to use.
        cluster: all nodes, itself included, the same on each. Three or more keep three copies of Kafka's own topics.
        log_dirs: folder of its data.
        listen_host: address to bind; loopback unless it runs in a container that has its own.
        more: further properties; they win.
    """
    ways = [("PLAINTEXT", node.client_port, node.client_port)]
    ways += [(f"DETOUR{n}", detour.listen_port, detour.told_port) for n, detour in enumerate(node.detours)]
    listeners = [f"{name}://{listen_host}:{port}" for name, port, _ in ways]
    copies = str(min(3, len(cluster)))
    majority = str(min(3, len(cluster)) // 2 + 1)
    return {
        "process.roles": "broker,controller",
        "node.id": str(node.node_id),
        "controller.quorum.voters": ",".join(f"{n.node_id}@{n.host}:{n.controller_port}" for n in cluster),
        "listeners": ",".join([*listeners, f"CONTROLLER://{listen_host}:{node.controller_port}"]),
        "advertised.listeners": ",".join(f"{name}://{node.host}:{public_port}" for name, _, public_port in ways),
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": ",".join(
            f"{name}:PLAINTEXT" for name in ["CONTROLLER", *(w[0] for w in ways)]
        ),
        "log.dirs": log_dirs,
        # A misspelt topic is an error that tests must see.
        "auto.create.topics.enable": "false",
        "default.replication.factor": copies,
        "offsets.topic.replication.factor": copies,
        "offsets.topic.num.partitions": str(INTERNAL_PARTITIONS),
        "transaction.state.log.replication.factor": copies,
        "transaction.state.log.min.isr": majority,
        "transaction.state.log.num.partitions": str(INTERNAL_PARTITIONS),
        "share.coordinator.state.topic.replication.factor": copies,
        "share.coordinator.state.topic.min.isr": majority,
        # Nobody else is about to join; the default waits 3 s for them.
        "group.initial.rebalance.delay.ms": "0",
        # A node that was killed may come back only when its old session has run out: 9 s by default.
        "broker.session.timeout.ms": "3000",
        "broker.heartbeat.interval.ms": "500",
        # Tests set sessions of a few seconds on purpose; Kafka's floor is 6 s.
        "group.min.session.timeout.ms": "1000",
        # The same for transactions: expired ones are looked for each second, not each ten.
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
        # So that a topic's own compaction settings act within a test.
        "log.cleaner.backoff.ms": "1000",
        # The cleaner's default of 128 MB is a quarter of our heap.
        "log.cleaner.dedupe.buffer.size": str(16 * MEBIBYTE),
        "message.max.bytes": str(2 * MEBIBYTE),
        "replica.fetch.max.bytes": str(4 * MEBIBYTE),
        **(more or {}),
    }


def as_file(properties: Mapping[str, str]) -> str:
    """Return the text of a Java properties file. Our values hold no character that needs escaping but the backslash."""
    return "".join(f"{key}={value.replace(chr(92), chr(92) * 2)}\n" for key, value in properties.items())


def as_environment(properties: Mapping[str, str]) -> Mapping[str, str]:
    """Return the same for Kafka's container image, which reads `KAFKA_NODE_ID` as `node.id`."""
    return {f"KAFKA_{key.upper().replace('.', '_')}": value for key, value in properties.items()}
