"""Why a worker, or one of its partitions, cannot go on."""

from __future__ import annotations

from evictstream.streams.errors.base import FoundProblemError


class EngineError(FoundProblemError):
    """A worker, or one of its partitions, cannot go on as it is."""


class PartitionLostError(EngineError):
    """Fenced, timed out or cut off. The only engine error that is tried again; `reason` is the client's text."""

    def __init__(self, *, partition: int, reason: str) -> None:
        self.partition = partition
        self.reason = reason
        super().__init__(f"partition {partition} was lost: {reason}", next_step="the worker will take it over again")


class ProduceRefusedError(EngineError):
    """The broker will never take what a partition has to write (authorization, size, policy)."""

    def __init__(self, *, partition: int, reason: str) -> None:
        self.partition = partition
        self.reason = reason
        super().__init__(
            f"Kafka refuses the writes of partition {partition}: {reason}",
            next_step="check ACLs, quotas and max.message.bytes of the topics, then restart; nothing was skipped",
        )


class TakeoverFailedError(EngineError):
    """A partition was lost again in each of `attempts` consecutive attempts to take it over."""

    def __init__(self, *, partition: int, attempts: int) -> None:
        self.partition = partition
        self.attempts = attempts
        super().__init__(
            f"partition {partition} could not be taken over in {attempts} attempts",
            next_step="check that the brokers answer and that no other application uses the same transactional ids",
        )


class StateMissingError(EngineError):
    """A changelog is empty although the group has committed offsets: the state was deleted."""

    def __init__(self, *, changelog: str, partition: int, topic: str, committed: int, group: str) -> None:
        self.changelog = changelog
        self.partition = partition
        self.topic = topic
        self.committed = committed
        self.group = group
        super().__init__(
            f"{changelog}-{partition} is empty although group {group} has committed offset {committed} in {topic}",
            next_step="restore that topic, or delete the group's offsets to start with empty state",
        )


class StateUnreadableError(EngineError):
    """What stands in a changelog cannot be a row of this service: `reason` says why."""

    def __init__(self, *, changelog: str, partition: int, offset: int, reason: str) -> None:
        self.changelog = changelog
        self.partition = partition
        self.offset = offset
        super().__init__(
            f"{changelog}-{partition} has an invalid row at offset {offset}: {reason}",
            next_step="allow only workers to write to that topic (ACLs), then restore it, or start over with another "
            "EVICTSTREAM_STATE_VERSION and have the feeds list again",
        )


class OtherStateVersionError(EngineError):
    """The changelog is empty, and `others` hold the state of other versions: starting would forget all of it."""

    def __init__(self, *, changelog: str, others: tuple[str, ...]) -> None:
        self.changelog = changelog
        self.others = others
        super().__init__(
            f"{changelog} is empty, but another state version has written {', '.join(others)}",
            next_step="run the version that wrote it, or delete that topic to start with empty state; then list again",
        )


class InputReplacedError(EngineError):
    """A stored position lies beyond the end of its input: the topic was cut or created anew."""

    def __init__(self, *, topic: str, partition: int, position: int, end: int) -> None:
        self.topic = topic
        self.partition = partition
        self.position = position
        self.end = end
        super().__init__(
            f"position {position} is beyond the end {end} of {topic}-{partition}, which was truncated or recreated",
            next_step="restore that topic, or use a new application id and have the feeds list again",
        )


class InputTruncatedError(EngineError):
    """Records expired before a running worker had read them."""

    def __init__(self, *, topic: str, partition: int, position: int) -> None:
        self.topic = topic
        self.partition = partition
        self.position = position
        super().__init__(
            f"records at {position} of {topic}-{partition} expired before they were read",
            next_step="restart: the worker continues and holds evictions of that partition until the gap is accepted",
        )


class InputUnreadableError(EngineError):
    """The broker refuses a running worker its input, or what it sends is damaged; `reason` is the client's text."""

    def __init__(self, *, reason: str) -> None:
        self.reason = reason
        super().__init__(
            f"cannot read input: {reason}",
            next_step="check the ACLs of the input topics and the brokers' disks, then restart; nothing was skipped",
        )


class AssignmentBrokenError(EngineError):
    """Inputs of one partition number were assigned apart; `missing` names the absent ones."""

    def __init__(self, *, missing: tuple[str, ...]) -> None:
        self.missing = missing
        super().__init__(
            f"the group did not assign {', '.join(missing)} with the other inputs of that partition",
            next_step="give all input topics the same partition count (`evictstream topics check`)",
        )


class InstanceReplacedError(EngineError):
    """Another process has joined the group under this one's instance id, `given` so, and has its partitions."""

    def __init__(self, *, given: str) -> None:
        self.given = given
        super().__init__(
            f"another process with {given} has replaced this one",
            next_step="give each process its own id, or none; the process that started last continues",
        )


class UncleanStopError(EngineError):
    """A worker that was asked to stop could not commit and leave the group within `waited_seconds`."""

    def __init__(self, *, waited_seconds: float) -> None:
        self.waited_seconds = waited_seconds
        super().__init__(
            f"stopped without leaving the group: Kafka did not answer within {waited_seconds:g} s",
            next_step="nothing is lost; other workers take over after the session timeout",
        )


class WorkerStuckError(EngineError):
    """A worker has waited for `wait` for `age_seconds`, longer than its limit: it ends, to be started again.

    `kafka` says that Kafka is away, if it is: then this is what it waits for.
    """

    def __init__(self, *, wait: str, age_seconds: float, limit_seconds: float, kafka: str | None = None) -> None:
        self.wait = wait
        self.age_seconds = age_seconds
        self.limit_seconds = limit_seconds
        self.kafka = kafka
        if kafka is None:
            problem = f"stuck: waiting for {wait} for {age_seconds:.0f} s, limit {limit_seconds:g} s"
            next_step = "restart it; nothing is lost, and the stacks in the log show where it hangs"
        else:
            problem = f"stopped waiting for Kafka after {age_seconds:.0f} s, limit {limit_seconds:g} s: {kafka}"
            next_step = "nothing is lost; a restarted worker continues when Kafka is back"
        super().__init__(problem, next_step=next_step)
