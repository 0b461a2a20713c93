"""Which of aiokafka's errors are final, and how the others reach `engine.core`, which does not know aiokafka."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from aiokafka import errors as kafka_errors

from evictstream.streams.engine.core.ports import KafkaClientError

# Refused for good: repeating the same bytes cannot help, an operator has to act.
AUTHORIZATION_ERRORS = (
    kafka_errors.TopicAuthorizationFailedError,
    kafka_errors.ClusterAuthorizationFailedError,
    kafka_errors.TransactionalIdAuthorizationFailed,
    kafka_errors.MessageSizeTooLargeError,
    kafka_errors.RecordListTooLargeError,
    kafka_errors.InvalidTopicError,
    kafka_errors.PolicyViolationError,
    kafka_errors.UnsupportedForMessageFormatError,
    kafka_errors.InvalidRequiredAcksError,
)


@contextlib.contextmanager
def translated_errors() -> Iterator[None]:
    """Raise `KafkaClientError` for whatever aiokafka or a socket raises inside."""
    try:
        yield
    except (kafka_errors.KafkaError, OSError) as error:
        raise KafkaClientError(repr(error)) from error
