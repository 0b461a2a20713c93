"""Results of an executor: sent to the results topic, and confirmed by Kafka."""

from __future__ import annotations

import datetime as dt
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec
import structlog
from kafka.errors import KafkaError

from evictstream.models.execution.command_log import CommandAnswer
from evictstream.models.messages.codec import encode
from evictstream.models.messages.command import EvictionCommand
from evictstream.models.messages.executor_report import ExecutorReport
from evictstream.models.messages.result import RESULT_KIND, EvictionResult
from evictstream.models.messages.vocabulary import API_VERSION, Outcome, written_outcome

log = structlog.get_logger(__name__)

LONGEST_REASON: Final = 1_000
"""Characters of a reason: a webhook may answer with a page."""

CommandPosition = tuple[int, int]
"""Number of the reading that had a command (`CommandsPartition.reading`), and the offset of the command."""


class ResultWriter:
    """Hands results and reports to a producer in order, and keeps them while it takes none.

    Attributes:
        is_reporting: whether a report is on its way to Kafka.
        has_lost: whether Kafka has not taken a result or a report since the last report was added.
    """

    def __init__(self, producer: Any, topic: str, *, note_time: Callable[[int], None] = lambda _: None) -> None:
        """`note_time` gets the append time of each result, milliseconds since 1970, in the producer's thread."""
        self.is_reporting = False
        self.has_lost = False
        self._producer = producer
        self._topic = topic
        self._note_time = note_time
        self._unsent: deque[tuple[bytes, bytes, CommandPosition | None]] = deque()
        self._ended: deque[CommandPosition | None] = deque()

    def add(self, command: EvictionCommand, answer: CommandAnswer, position: CommandPosition) -> None:
        """Have the next `send` send the result of the command at that position."""
        self._unsent.append((command.cluster.encode(), result_text(command, answer), position))

    def add_report(self, report: ExecutorReport) -> None:
        """Have the next `send` send what waits, after all results before it."""
        self.is_reporting, self.has_lost = True, False
        self._unsent.append((report.cluster.encode(), encode(report), None))

    def send(self) -> None:
        """Hand results to the producer; those that it does not take wait for the next call."""
        while self._unsent:
            key, value, position = self._unsent[0]
            try:
                sent = self._producer.send(self._topic, key=key, value=value)
            except KafkaError:
                return
            self._unsent.popleft()
            sent.add_callback(lambda written, position=position: self._confirm(position, written))
            sent.add_errback(lambda error, position=position: self._failed(position, error))

    def confirmed(self) -> Iterator[CommandPosition]:
        """Yield the positions of commands whose result Kafka has confirmed, each once."""
        while self._ended:
            position = self._ended.popleft()
            if position is None:
                self.is_reporting = False
            else:
                yield position

    def flush(self, seconds: float) -> None:
        """Wait until Kafka has all results that `send` handed over.

        Raises:
            KafkaError: it took longer.
        """
        self._producer.flush(timeout=seconds)

    def _confirm(self, position: CommandPosition | None, written: Any) -> None:
        if written.offset >= 0:  # of a duplicate Kafka may tell neither place nor time
            self._note_time(written.timestamp)
        self._ended.append(position)

    def _failed(self, position: CommandPosition | None, error: BaseException) -> None:
        """Count it as confirmed, in the producer's thread: without a result the service sends the command again."""
        log.error("result was not written", error=str(error))
        self.has_lost = True
        self._ended.append(position)


def as_observed(answer: CommandAnswer) -> CommandAnswer:
    """Return the answer of an observer in place of another outcome: that one belongs to the executor that acts."""
    if answer.outcome is Outcome.OBSERVED:
        return answer
    return CommandAnswer(Outcome.OBSERVED, f"would answer {answer.outcome}: {answer.reason}")


def result_text(command: EvictionCommand, answer: CommandAnswer) -> bytes:
    """Write the answer to a command."""
    result = EvictionResult(
        api_version=API_VERSION,
        kind=RESULT_KIND,
        eviction_id=command.eviction_id,
        attempt=command.attempt,
        cluster=command.cluster,
        namespace=command.namespace,
        pod=command.pod,
        pod_uid=command.pod_uid,
        node=command.node,
        outcome=written_outcome(answer.outcome),
        reason=answer.reason[:LONGEST_REASON],
        observed_at=dt.datetime.now(dt.UTC),
        held_by=answer.held_by,
    )
    return msgspec.json.encode(result)
