"""Common arguments of kafka-python's producers and consumers, and their errors as errors of `streams.errors`.

Ask `streams.broker.admin` first whether Kafka answers at all: kafka-python's clients leave threads behind when their
first contact fails, and do not say what was wrong.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from kafka.errors import (
    AuthorizationError,
    InconsistentGroupProtocolError,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    NodeNotReadyError,
    UnknownTopicOrPartitionError,
)
from kafka.net.sasl.oauth import AbstractTokenProvider

from evictstream.streams.broker.connections import use_reported_connections
from evictstream.streams.errors import BrokerError, BrokerRefusedError, BrokerUnreachableError, TopicsDifferError
from evictstream.streams.settings import Settings


class KafkaPythonTokens(AbstractTokenProvider):  # type: ignore[misc] # the library has no types
    """Gives each connection of kafka-python's clients a token; `read` reads it."""

    def __init__(self, read: Callable[[], str]) -> None:
        super().__init__()
        self._read = read

    def token(self) -> str:
        """Return the present token."""
        return self._read()


LONGEST_RECONNECT_MS = 1_000
"""Between attempts to reach a broker that is gone, after 50 ms doubling. The library's 30 s would have a person wait as
long as the outage was for what comes after it."""


def client_arguments(settings: Settings) -> dict[str, Any]:
    """Return what every client of kafka-python takes alike. Holds the password: never log it.

    From now on the clients of this process say whether Kafka answers.
    """
    use_reported_connections()
    return {
        "bootstrap_servers": settings.required_bootstrap_servers().split(","),
        "client_id": settings.client_id,
        "bootstrap_timeout_ms": int(settings.admin_timeout_seconds * 1000),
        "request_timeout_ms": int(settings.request_timeout_seconds * 1000),
        "reconnect_backoff_max_ms": LONGEST_RECONNECT_MS,
        "allow_auto_create_topics": False,
        "metrics_enabled": False,
        **settings.security_arguments(KafkaPythonTokens),
    }


def as_our_error(error: KafkaError | OSError, settings: Settings, operation: str) -> BrokerError:
    """Translate an error of kafka-python. `operation` is what Kafka was to do, as `write to ...`."""
    if isinstance(error, KafkaConnectionError | KafkaTimeoutError | NodeNotReadyError | OSError):
        servers, seconds = settings.required_bootstrap_servers(), settings.request_timeout_seconds
        return BrokerUnreachableError(servers, waited_seconds=seconds, reason=str(error) or type(error).__name__)
    reason = str(error) if str(error).startswith(type(error).__name__) else f"{type(error).__name__}: {error}"
    if isinstance(error, AuthorizationError):
        return BrokerRefusedError(operation, reason=reason, next_step="give this user the right to do so")
    if isinstance(error, InconsistentGroupProtocolError):
        return BrokerRefusedError(operation, reason=reason, next_step="stop the members of its group of other versions")
    return BrokerRefusedError(operation, reason=reason)


def may_pass(error: BrokerError) -> bool:
    """Whether the same may succeed later, as while a broker starts again. `error` is one of `our_errors`."""
    return isinstance(error, BrokerUnreachableError) or bool(getattr(error.__cause__, "retriable", False))


@contextlib.contextmanager
def our_errors(settings: Settings, operation: str) -> Iterator[None]:
    """Raise `BrokerUnreachableError` or `BrokerRefusedError` for whatever kafka-python raises inside."""
    try:
        yield
    except (KafkaError, OSError) as error:
        raise as_our_error(error, settings, operation) from error


def partitions_of(client: Any, topic: str) -> tuple[int, ...]:
    """Return the partition numbers of a topic, in order.

    Args:
        client: a producer or consumer of kafka-python.
        topic: its name.

    Raises:
        TopicsDifferError: the topic is missing.
    """
    ask = client.partitions_for if hasattr(client, "partitions_for") else client.partitions_for_topic
    try:
        numbers = ask(topic)
    except UnknownTopicOrPartitionError:
        numbers = None
    if not numbers:
        raise TopicsDifferError([f"{topic} is missing"])
    return tuple(sorted(numbers))
