"""aiokafka's producer, mended where it would break a transaction apart."""

from __future__ import annotations

from typing import Any

from aiokafka import AIOKafkaProducer


class TransactionalProducer(AIOKafkaProducer):  # type: ignore[misc]  # aiokafka has no types
    """A producer whose failed transaction sends nothing more.

    On an error (a topic that is forbidden, a record that is too large) aiokafka 0.14.0 forgets which partitions still
    have to be added to the transaction, and sends their batches all the same. A partition on which the transaction
    before has no marker yet takes them for a part of that one, whose commit makes them visible: rows and positions,
    whose commands were refused. Here the error takes along whatever waits.
    """

    def __init__(self, **arguments: Any) -> None:
        """Take what `AIOKafkaProducer` takes, with a `transactional_id`."""
        super().__init__(**arguments)
        self._fail_transaction = self._txn_manager.error_transaction
        self._txn_manager.error_transaction = self._fail_with_what_waits

    def _fail_with_what_waits(self, error: Exception) -> None:
        self._fail_transaction(error)
        waiting = self._message_accumulator._batches  # noqa: SLF001 - there is no public way
        unsent = [batch for batches in waiting.values() for batch in batches]
        waiting.clear()
        for batch in unsent:
            batch.failure(error)
            batch._drain_waiter.exception()  # noqa: SLF001 - seen: the error is told by the batch
