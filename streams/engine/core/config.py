"""The engine's configuration. The service translates its settings into it; the engine reads no environment or files."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class EngineConfig:
    """Names, limits and times of one application.

    Attributes:
        application: consumer group and first part of every `transactional.id` (with the state's version
            in it, so that two versions never fence each other by accident).
        bootstrap_servers: `host:port,host:port`.
        security: arguments for every aiokafka client (protocol, TLS context, SASL).
        inputs: input topics, all with `partitions` partitions.
        outputs: topics of the messages, same partition count.
        changelog: compacted topic of the rows, same partition count.
        partitions: partition count of every topic; checked at start.
        table: name of the registered Faust table (its changelog's name is derived from it).
        instance_id: static group membership, or `None`.
        session_timeout_seconds: after that long without contact the group gives the partitions to others.
        heartbeat_seconds: between heartbeats, whose answers tell of a rebalance; at most half of the session.
        rebalance_timeout_seconds: longest time a member may take to rejoin before it is thrown out.
        lease_margin_seconds: taken off the session: firing stops that much before it can time out.
        commit_interval_seconds: between commits of group offsets, which also renew the lease.
        linger_seconds: longest wait of a changed row for its transaction, where no urgent message goes out.
        max_rows_per_transaction: at that many entries a transaction begins without lingering, and agents wait while a
            partition has as many beside its transaction.
        max_batch_bytes: record batch size; below the smallest `max.message.bytes` of the topics.
        max_record_bytes: largest single record that the topics take.
        transaction_timeout_seconds: the broker aborts a transaction that is older.
        max_poll_records: bounds one batch; the writer applies it in smaller slices.
        max_fetch_bytes: per partition and fetch.
        largest_batch_bytes: most that a batch that is read may have without its compression.
        position_interval_seconds: how often positions are written where nothing else is.
        takeover_timeout_seconds: bound for fencing.
        takeover_attempts: consecutive failures of one partition before the process stops.
    """

    application: str
    bootstrap_servers: str
    security: Mapping[str, object]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    changelog: str
    partitions: int
    table: str = "state"
    instance_id: str | None = None
    session_timeout_seconds: float = 10.0
    rebalance_timeout_seconds: float = 60.0
    heartbeat_seconds: float = 0.5
    lease_margin_seconds: float = 3.0
    commit_interval_seconds: float = 1.0
    linger_seconds: float = 0.1
    max_rows_per_transaction: int = 4_000
    max_batch_bytes: int = 900_000
    max_record_bytes: int = 2_000_000
    transaction_timeout_seconds: float = 60.0
    max_poll_records: int = 2_000
    max_fetch_bytes: int = 4_194_304
    largest_batch_bytes: int = 8_388_608
    position_interval_seconds: float = 5.0
    takeover_timeout_seconds: float = 60.0
    takeover_attempts: int = 5

    def transactional_id(self, partition: int) -> str:
        """Name the one transactional id of a partition number: whoever initialises it last owns the partition."""
        return f"{self.application}-{partition}"
