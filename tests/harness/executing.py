"""Executors in threads of the test, and commands for them, written in transactions as the service does."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence

import msgspec
from kafka import KafkaProducer

from evictstream.models.messages.command import EvictionCommand
from evictstream.streams.executor.execution import execute_commands
from evictstream.streams.executor.orders import ClusterOrder, ExecutionOptions
from evictstream.streams.settings import Settings

JOIN_SECONDS = 60.0
EXECUTOR_THREAD = "c1 executor"
"""The thread that reads the commands of the cluster `c1`."""


class CommandWriter:
    """Writes commands as one worker would."""

    def __init__(self, settings: Settings) -> None:
        self._topic = settings.commands_topic
        self._producer = KafkaProducer(
            bootstrap_servers=settings.bootstrap_servers, transactional_id=f"{settings.topic_prefix}writer"
        )
        self._producer.init_transactions()

    def write(self, *commands: EvictionCommand, is_aborted: bool = False) -> None:
        """Write one transaction."""
        self._producer.begin_transaction()
        for command in commands:
            self._producer.send(self._topic, key=command.cluster.encode(), value=msgspec.json.encode(command))
        if is_aborted:
            self._producer.flush()
            self._producer.abort_transaction()
        else:
            self._producer.commit_transaction()

    def write_raw(self, value: bytes) -> None:
        """Write what is no command."""
        self._producer.begin_transaction()
        self._producer.send(self._topic, key=b"c1", value=value)
        self._producer.commit_transaction()

    def close(self) -> None:
        self._producer.close()


class RunningExecutor:
    """An executor in a thread. Use as a context manager; it is stopped at the end, and its error raised."""

    def __init__(self, settings: Settings, orders: Sequence[ClusterOrder], options: ExecutionOptions) -> None:
        self.failure: BaseException | None = None
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(settings, orders, options), daemon=True)

    def _run(self, settings: Settings, orders: Sequence[ClusterOrder], options: ExecutionOptions) -> None:
        try:
            execute_commands(orders, options, settings=settings, is_stopped=self._stopped.is_set)
        except BaseException as error:  # noqa: BLE001 - raised again below
            self.failure = error

    def stop(self) -> None:
        """Stop it and wait for its end."""
        self._stopped.set()
        self._thread.join(JOIN_SECONDS)
        assert not self._thread.is_alive()
        if self.failure is not None:
            raise self.failure


@contextlib.contextmanager
def executing(
    settings: Settings, orders: Sequence[ClusterOrder], options: ExecutionOptions
) -> Iterator[RunningExecutor]:
    """Run an executor meanwhile."""
    found = RunningExecutor(settings, orders, options)
    found._thread.start()
    try:
        yield found
    finally:
        found.stop()
