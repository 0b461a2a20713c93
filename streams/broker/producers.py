"""Producers that lose nothing and keep the order of a key: idempotent, `acks=all`, Kafka's default partitioner."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, Final

from kafka import KafkaProducer
from kafka.partitioner import DefaultPartitioner

from evictstream.streams.broker.clients import client_arguments, our_errors
from evictstream.streams.settings import Settings

DELIVERY_SECONDS: Final = 120.0
"""Longest time until a record counts as failed. The default of Kafka's clients; it rides over a broker's restart."""

_LINGER_MILLISECONDS: Final = 5
"""How long a batch waits for more. Not noticeable at recorded pace; without it each record would be a request."""

CLOSE_SECONDS: Final = 5.0
"""For closing when everything is acknowledged: only the connections are left."""


class AbandonableProducer(KafkaProducer):  # type: ignore[misc] # the library has no types
    """A producer that can be closed with records in flight; the library's own waits for them despite `timeout=0`."""

    _is_abandoned = False

    def flush(self, timeout: float | None = None) -> None:
        """Wait until all is acknowledged, unless the producer was abandoned."""
        if not self._is_abandoned:
            super().flush(timeout)

    def abandon(self) -> None:
        """Close at once."""
        self._is_abandoned = True
        self.close(timeout=0)


@contextlib.contextmanager
def open_producer(settings: Settings, *, delivery_seconds: float) -> Iterator[Any]:
    """Yield a producer; after an error it is closed at once, whatever is in flight.

    Args:
        settings: which Kafka.
        delivery_seconds: longest time until a record counts as failed.

    Raises:
        BrokerUnreachableError: no broker answered in time.
        BrokerRefusedError: Kafka refused.
    """
    with our_errors(settings, "open a producer"):
        producer = AbandonableProducer(
            **client_arguments(settings),
            acks="all",
            enable_idempotence=True,
            max_in_flight_requests_per_connection=5,  # as many as keep their order
            partitioner=DefaultPartitioner(),
            batch_size=settings.max_batch_bytes,
            max_request_size=settings.max_message_bytes,
            linger_ms=_LINGER_MILLISECONDS,
            delivery_timeout_ms=_delivery_milliseconds(settings, delivery_seconds),
        )
    try:
        yield producer
    except BaseException:
        producer.abandon()
        raise
    producer.close(timeout=CLOSE_SECONDS)


def _delivery_milliseconds(settings: Settings, delivery_seconds: float) -> int:
    """Kafka refuses less than one request and the linger."""
    return int(max(delivery_seconds, settings.request_timeout_seconds + 1) * 1000)
