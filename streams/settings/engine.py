"""How the engine moves data: membership, transactions, fetching, takeover. Nothing here is about pods."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from evictstream.streams.settings.group import SettingsGroup

_Seconds = Annotated[float, Field(gt=0)]


class EngineSettings(SettingsGroup):
    """Times and limits of the engine."""

    group_instance_id: str | None = None
    """Static membership: a killed worker that starts again with the same id has its partitions at once, unless another
    one has replaced it already. Use the name of the pod or container. If two workers have one id, the older one ends
    with an error."""

    session_timeout_seconds: _Seconds = 10.0
    """After this long without contact, the group gives a worker's partitions to others. Its peers usually remove it
    earlier, after 1.5 s; a worker that dies before it had partitions, or while no other one runs, is removed then."""

    heartbeat_interval_seconds: _Seconds = 0.5
    """Time between heartbeats. Their answers tell a worker that another one joins or leaves, so a takeover waits for
    up to one. At most half of the session timeout, so that one may get lost."""

    lease_margin_seconds: Annotated[float, Field(ge=0)] = 3.0
    """Firing stops when the last commit of group offsets that the group accepted is older than the session timeout less
    this margin. Peers may have replaced the worker by then: brokers refuse what it still writes."""

    rebalance_timeout_seconds: _Seconds = 60.0
    """Longest time in which a member may finish its batch and rejoin before the group removes it."""

    commit_interval_seconds: _Seconds = 1.0
    """Time between commits of group offsets. They serve lag tools and the check at start, never as read positions."""

    commit_linger_seconds: Annotated[float, Field(ge=0)] = 0.1
    """How long changed rows and decisions wait for more before their transaction is committed, if no command needs it
    now. A transaction takes about 5 ms, so 0.1 s keeps that cost under a twentieth. In a steady flow of them
    transactions begin five times as far apart."""

    max_rows_per_transaction: Annotated[int, Field(ge=1)] = 4_000
    """At this many rows and messages, a transaction is committed without waiting. Reading stops while the previous one
    is still in flight, which bounds memory if there is a backlog or the broker is slow. Beyond 4,000, throughput hardly
    grows, but memory and latency do. 4 MiB have the same effect with fewer."""

    max_batch_bytes: Annotated[int, Field(ge=1024)] = 900_000
    """Size of one batch of records to the broker; below the default limit of brokers (1 MiB), so that it also fits
    topics with that limit."""

    transaction_timeout_seconds: _Seconds = 60.0
    """The broker aborts a transaction that is open for longer, so read_committed readers get past a dead worker. Below
    the broker's limit (15 min), above the longest leader change."""

    max_poll_records: Annotated[int, Field(ge=1)] = 2_000
    """Largest batch that the agent receives. It bounds memory, not how long the event loop is held: a batch is
    processed in slices of a few milliseconds, and other tasks run in between."""

    max_fetch_bytes: Annotated[int, Field(ge=1024)] = 4_194_304
    """Most bytes per partition and fetch. At least one largest record, otherwise a partition would stand still."""

    position_interval_seconds: _Seconds = 5.0
    """How often input positions are written while no row changes. Bounds how much is read again after a crash."""

    takeover_timeout_seconds: _Seconds = 60.0
    """Longest time for fencing the old owner. The later steps have the time-outs of their requests, except the reading
    of rows, which has no limit."""

    takeover_attempts: Annotated[int, Field(ge=1)] = 5
    """Consecutive failures of one partition before the process ends with an error instead of trying again."""

    event_loop: Literal["asyncio", "uvloop"] = "asyncio"
    """The event loop of a worker's tasks and its consumer. `uvloop` needs the extra of that name; Faust and aiokafka
    are mostly tested on asyncio's own loop."""
