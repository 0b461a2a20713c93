"""How the engine moves data: membership, transactions, fetching, take-over. It speaks of no pod."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from evictstream.streams.settings.group import SettingsGroup

Seconds = Annotated[float, Field(gt=0)]


class EngineSettings(SettingsGroup):
    """Times and limits of the engine."""

    group_instance_id: str | None = None
    """Static membership: a worker that comes back under the same id within the session timeout keeps its partitions.
    Use the pod's name of a StatefulSet. Of two workers with one id the one that started first ends with an error."""

    session_timeout_seconds: Seconds = 10.0
    """After that long without contact a worker's partitions go to others: the take-over time after a crash."""

    heartbeat_interval_seconds: Seconds = 3.0
    """Between heartbeats. A third of the session timeout, so that two may get lost."""

    lease_margin_seconds: Annotated[float, Field(ge=0)] = 3.0
    """Firing stops when the last successful heartbeat is older than the session timeout less this, so before another
    may own the partition."""

    rebalance_timeout_seconds: Seconds = 60.0
    """Longest time a member may take to finish its batch and rejoin before it is thrown out."""

    commit_interval_seconds: Seconds = 1.0
    """Between commits of group offsets. They serve lag tools and the check at start, never as read positions."""

    commit_linger_seconds: Annotated[float, Field(ge=0)] = 0.1
    """How long changed rows may wait for more before their transaction is committed, if no message needs it now. A
    transaction costs 5 ms, so 0.1 s keeps that cost under a twentieth."""

    max_rows_per_transaction: Annotated[int, Field(ge=1)] = 4_000
    """At that many rows and messages a transaction is committed without waiting, and while the one before is still on
    its way, reading stops: that bounds memory when there is a backlog or the broker is slow. Beyond 4,000 throughput
    hardly grows, while memory and latency do. At 4 MiB the same happens with fewer."""

    max_batch_bytes: Annotated[int, Field(ge=1024)] = 900_000
    """Size of one batch of records to the broker; under the default limit of brokers (1 MiB), so that it also holds for
    topics of others."""

    transaction_timeout_seconds: Seconds = 60.0
    """The broker aborts a transaction that is open for longer, which lets read_committed readers past a worker that
    died. Under the broker's limit (15 min), above the longest leader change."""

    max_poll_records: Annotated[int, Field(ge=1)] = 2_000
    """Largest batch that is handed to the agent. It bounds memory, not how long the event loop is held: a batch is
    stepped 25 records at a time, and other tasks run after the 25 in which 5 ms have passed."""

    max_fetch_bytes: Annotated[int, Field(ge=1024)] = 4_194_304
    """Most bytes per partition and fetch. At least one largest record, else a partition would stand still."""

    position_interval_seconds: Seconds = 5.0
    """How often input positions are written when no row changes. Bounds what is read again after a crash."""

    takeover_timeout_seconds: Seconds = 60.0
    """Longest time for fencing the old owner. What comes then has the time-outs of its requests, but for reading rows,
    which is not bounded."""

    takeover_attempts: Annotated[int, Field(ge=1)] = 5
    """Failures of one partition in a row before the process stops with an error instead of trying again."""

    event_loop: Literal["asyncio", "uvloop"] = "asyncio"
    """What runs a worker's tasks and its consumer. `uvloop` needs the extra of that name; Faust and aiokafka are tested
    on asyncio's own loop by everybody."""
