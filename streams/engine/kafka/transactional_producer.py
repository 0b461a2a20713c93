"""aiokafka's producer, mended where it would split a transaction or go on after its end."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Any

from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka import errors as kafka_errors
from aiokafka.client import CoordinationType
from aiokafka.protocol.coordination import FindCoordinatorRequest
from aiokafka.protocol.transaction import EndTxnRequest, InitProducerIdRequest

from evictstream.streams.engine.core.permit import Permit
from evictstream.streams.engine.kafka.connection import renew_coordination, use_broker_connections
from evictstream.streams.engine.kafka.transaction_requests import transaction_version
from evictstream.streams.engine.kafka.transaction_v2 import TransactionsV2

V2 = 2  # `transaction.version` of KIP-890

CLOSE_TIMEOUT_SECONDS = 2.0  # a closed producer has nothing left to say; a broken one must not hold a rebalance


class TransactionalProducer(AIOKafkaProducer):  # type: ignore[misc]  # aiokafka has no types
    """A producer that sends nothing more of a failed transaction, and asks for the end of one only once.

    On an error (a topic that is forbidden, a record that is too large) aiokafka 0.14.0 forgets which partitions still
    have to be added to the transaction, and sends their batches all the same. A partition where the transaction before
    has no marker yet takes them for a part of that one, whose commit makes them visible: rows and positions, whose
    commands were refused. Here the error fails the waiting batches too.

    It also asks for a commit again when no answer came. The first request may still be on its way: a broker that
    carries it out after the next transaction has begun would commit a part of that one. Here the transaction fails.

    It also gives a transaction up if it looks for the coordinator over a connection that another request's time-out
    closes, though nothing of the transaction was sent there. Here it looks again, until the transaction's own time is
    over.

    All of it is for brokers without KIP-890. With it, `v2` writes transactions; only `mark` still goes the old way.

    Attributes:
        v2: the transactions of a started producer, where the cluster's `transaction.version` is 2 or higher.
    """

    def __init__(self, permit: Permit, *, max_batch_size: int, **arguments: Any) -> None:
        """`arguments` are those of `AIOKafkaProducer`, with a `transactional_id`; it fences only with the permit."""
        use_broker_connections()
        super().__init__(max_batch_size=max_batch_size, **arguments)
        self._batch_bytes = max_batch_size
        self.v2: TransactionsV2 | None = None
        self._permit = permit
        self._fail_transaction = self._txn_manager.error_transaction
        self._txn_manager.error_transaction = self._fail_with_what_waits
        self._txn_manager.increment_sequence_number = self._count_on
        self._send_request = self.client.send
        self.client.send = self._send_with_care

    async def start(self) -> None:
        """Connect, fence the user of the transactional id before, and ask which transactions the cluster has."""
        await super().start()
        coordinator = self._sender._coordinators.get(CoordinationType.TRANSACTION)  # noqa: SLF001 - there is no public way
        node = self.client.get_random_node() if coordinator is None else coordinator
        if await transaction_version(self.client, node) >= V2:
            self.v2 = TransactionsV2(self._sender, self._batch_bytes)

    def _count_on(self, partition: TopicPartition, records: int) -> None:
        """Count sequence numbers as brokers do: after 2**31 - 1 comes 0, where aiokafka goes on below 0."""
        numbers = self._txn_manager._sequence_numbers  # noqa: SLF001 - there is no public way
        numbers[partition] = (numbers[partition] + records) % 2**31

    def _fail_with_what_waits(self, error: Exception) -> None:
        self._fail_transaction(error)
        waiting = self._message_accumulator._batches  # noqa: SLF001 - there is no public way
        unsent = [batch for batches in waiting.values() for batch in batches]
        waiting.clear()
        for batch in unsent:
            batch.failure(error)
            batch._drain_waiter.exception()  # noqa: SLF001 - read, or asyncio reports it; the batch raises it

    async def _send_with_care(self, node_id: int, request: object, **how: Any) -> object:
        if isinstance(request, InitProducerIdRequest):
            await self._permit.granted()
        try:
            return await self._send_request(node_id, request, **how)
        except kafka_errors.NodeNotReadyError:  # not sent
            raise
        except kafka_errors.KafkaError as error:
            if isinstance(request, EndTxnRequest):
                self._txn_manager.fatal_error(error)
                self._txn_manager.wait_for_transaction_end().exception()  # read, or asyncio reports it
            if isinstance(request, FindCoordinatorRequest) and isinstance(error, kafka_errors.KafkaConnectionError):
                raise kafka_errors.NodeNotReadyError from error  # aiokafka asks again after this one alone
            raise

    async def begin_transaction(self) -> None:
        """Begin one, over a connection that does not have to authenticate again before its end."""
        if self.client._security_protocol.startswith("SASL"):  # noqa: SLF001 - there is no public way
            renew_coordination(self.client, time.monotonic())
        await super().begin_transaction()

    async def mark(self, partition: TopicPartition, *, commit: bool) -> None:
        """Write a marker into a partition, and nothing else."""
        await self.begin_transaction()
        self._txn_manager.maybe_add_partition_to_txn(partition)
        await (self.commit_transaction() if commit else self.abort_transaction())

    async def end(self) -> None:
        """Stop. Requests that no broker answers are given up, and nothing is sent afterwards."""
        waiter = self._txn_manager.wait_for_transaction_end()
        if waiter is not None and waiter.done() and not waiter.cancelled():
            waiter.exception()  # read, or asyncio reports it: batch or commit has raised it
        with contextlib.suppress(Exception):
            async with asyncio.timeout(CLOSE_TIMEOUT_SECONDS):
                await self.stop()
        sender = self._sender.sender_task
        if sender is not None and not sender.done():
            sender.cancel()  # a second time: after the first it still waits for open requests
            await asyncio.wait([sender], timeout=CLOSE_TIMEOUT_SECONDS)
        with contextlib.suppress(Exception):
            async with asyncio.timeout(CLOSE_TIMEOUT_SECONDS):
                await self.client.close()
