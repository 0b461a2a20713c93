"""What `engine.core` needs from outside: Kafka's clients, the consumer group and a clock, as small protocols.

`engine.kafka` implements `Kafka` with its `Producer` and `LogReader` on aiokafka, `engine.faust` implements `Group`,
`engine.clock` implements `Clock`. The simulation of `tests/faults` hands in others.

Errors: a method raises `PartitionLostError` or `ProduceRefusedError` where it says so. Else it raises
`KafkaClientError`, whatever the client library has raised.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, Self

from evictstream.streams.engine.core.batches import Record

if TYPE_CHECKING:
    from types import TracebackType

    from evictstream.streams.engine.core.outbox import Outbox

Place = tuple[str, int]
"""A topic and a partition number."""

RowSink = Callable[[bytes, bytes | None], None]
"""Takes key and value of one changelog row; the value `None` deletes."""

Isolation = Literal["read_committed", "read_uncommitted"]


class KafkaClientError(Exception):
    """Kafka did not answer, or not usefully. The text is the client library's error, which is also the cause.

    It never ends a command: whoever asked raises one of `streams.errors` instead, or asks again.
    """


class Clock(Protocol):
    """The time, as one worker sees it."""

    def monotonic(self) -> float:
        """Read the monotonic clock, seconds."""

    def now_us(self) -> int:
        """Read the wall clock, microseconds since 1970 in UTC."""


class Committed(NamedTuple):
    """What is known of a committed transaction.

    Attributes:
        broker_ms: the broker's append time of the rows, milliseconds; -1 without `LogAppendTime`.
        sent_at: when the commit began, monotonic seconds; the append came later.
        acked_at: when the brokers had confirmed it, monotonic seconds; the append came earlier.
    """

    broker_ms: int
    sent_at: float
    acked_at: float


class Producer(Protocol):
    """The transactional producer of one partition number. After a failure it is never used again."""

    async def start(self) -> None:
        """Fence the previous owner; returns when the transaction that it had open is aborted.

        Raises:
            ProduceRefusedError: the broker forbids this transactional id.
            PartitionLostError: the broker could not be reached, or answered otherwise.
        """

    async def commit(self, outbox: Outbox, extra_rows: dict[bytes, bytes], *, lands_at: int | None = None) -> Committed:
        """Write an outbox and further rows in one transaction.

        With `lands_at` the partition counts as lost unless the first row gets that offset in the changelog.

        Raises:
            ProduceRefusedError: something can never be written; the process has to stop.
            PartitionLostError: fenced, timed out or otherwise unknown; take the partition over again.
        """

    async def mark(self, topic: str, *, commit: bool) -> None:
        """Write the marker of a transaction that lacks it in this partition of a topic. Raises as `commit` does."""

    def count_from(self, number: int) -> None:
        """Give the next transaction the number after this one."""

    def unacknowledged_seconds(self, now: float) -> float:
        """How long records that were sent have waited to be acknowledged."""

    async def close(self) -> None:
        """Disconnect without committing; the next owner, or the broker in time, aborts an open transaction."""


class LogRecord(Record, Protocol):
    """A record as a log reader finds it."""

    @property
    def headers(self) -> Sequence[tuple[str, bytes]]:
        """Headers by name."""


class ReadRows(NamedTuple):
    """What was read of one changelog partition: how many rows, and up to which offset."""

    rows: int
    end: int


class LogReader(Protocol):
    """Reads partitions without a group. An asynchronous context manager: it connects on entering."""

    async def __aenter__(self) -> Self:
        """Connect."""

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Disconnect."""

    async def ends(self, places: list[Place]) -> dict[Place, int]:
        """Next offset of partitions: the last stable one, or, for `read_uncommitted`, the very last."""

    async def starts_and_ends(self, places: list[Place]) -> dict[Place, tuple[int, int]]:
        """First offset of partitions, and the next one as `ends` gives it."""

    async def records(self, place: Place, start: int, end: int) -> Sequence[LogRecord]:
        """Read a short stretch of one partition."""

    async def read_rows(self, sinks: Mapping[int, RowSink]) -> dict[int, ReadRows]:
        """Give all rows of changelog partitions to their sinks."""


class Kafka(Protocol):
    """Makes the clients of one worker, and asks what needs no client of its own."""

    def producer(self, partition: int) -> Producer:
        """Make the producer of a partition number; it is not started."""

    def reader(self, on_progress: Callable[[], None] = ..., *, isolation: Isolation = "read_committed") -> LogReader:
        """Make a reader; it calls `on_progress` each time that rows have come."""

    async def committed_offsets(self, places: Sequence[Place]) -> dict[Place, int]:
        """Ask for the offsets that the group has committed in these partitions; -1 where it has none."""


class Group(Protocol):
    """This worker's membership in the consumer group."""

    @property
    def is_rebalancing(self) -> bool:
        """Whether a rebalance goes on."""

    async def seek(self, positions: Mapping[Place, int]) -> dict[Place, int]:
        """Read on from these offsets; returns the new seek epoch of each partition.

        Raises:
            PartitionLostError: a partition is no longer assigned to this worker.
        """

    async def end_offsets(self, places: Sequence[Place]) -> dict[Place, int]:
        """Ask where partitions end, whatever transaction is open there. Raises also `TimeoutError`."""

    def leave(self) -> None:
        """Begin to leave, from any thread and without waiting."""
