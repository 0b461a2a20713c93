"""What an executor says on the results topic, and what of it Kafka has."""

from __future__ import annotations

import datetime as dt
from collections import deque
from collections.abc import Iterator
from typing import Any, Final

import msgspec
import structlog
from kafka.errors import KafkaError

from evictstream.models.execution.command_log import CommandAnswer
from evictstream.models.messages.command import EvictionCommand
from evictstream.models.messages.result import RESULT_KIND, EvictionResult
from evictstream.models.messages.vocabulary import API_VERSION, Outcome

log = structlog.get_logger(__name__)

LONGEST_REASON: Final = 1_000
"""Characters of a reason: a webhook may answer with a page."""

MOST_RESULTS_IN_FLIGHT: Final = 30_000
"""While Kafka takes nothing, `Accepted` is not repeated beyond this."""

Place = tuple[int, int]
"""Partition and offset of a command."""


class ResultWriter:
    """Hands results to a producer, in order, and keeps them while it takes none."""

    def __init__(self, producer: Any, topic: str) -> None:
        self._producer = producer
        self._topic = topic
        self._unsent: deque[tuple[EvictionCommand, CommandAnswer, Place | None]] = deque()
        self._landed: deque[Place | None] = deque()
        self._in_flight = 0

    @property
    def is_full(self) -> bool:
        """Whether so much is on its way to Kafka that nothing should be repeated."""
        return self._in_flight >= MOST_RESULTS_IN_FLIGHT

    def say(self, command: EvictionCommand, answer: CommandAnswer, place: Place | None) -> None:
        """Have a result sent by the next `send`; `place` is the command's if this is its last result."""
        self._in_flight += 1
        self._unsent.append((command, answer, place))

    def send(self) -> None:
        """Hand over what was said; what the producer does not take waits for the next time."""
        while self._unsent:
            command, answer, place = self._unsent[0]
            key = f"{command.cluster}/{command.node}".encode()
            try:
                sent = self._producer.send(self._topic, key=key, value=result_text(command, answer))
            except KafkaError:
                return
            self._unsent.popleft()
            sent.add_callback(lambda _, place=place: self._landed.append(place))
            sent.add_errback(lambda error, place=place: self._failed(place, error))

    def delivered(self) -> Iterator[Place]:
        """Yield the places of commands whose last result Kafka has, each once."""
        while self._landed:
            place = self._landed.popleft()
            self._in_flight -= 1
            if place is not None:
                yield place

    def flush(self, seconds: float) -> None:
        """Wait until Kafka has what was handed over.

        Raises:
            KafkaError: it took longer.
        """
        self._producer.flush(timeout=seconds)

    def _failed(self, place: Place | None, error: BaseException) -> None:
        """Count it as said, in the producer's thread: the service takes silence for a failure and sends it again."""
        log.error("a result was not written", error=str(error))
        self._landed.append(place)


def as_observed(answer: CommandAnswer) -> CommandAnswer:
    """Turn what an observer has found into its answer: the eviction is another executor's, and so is every outcome."""
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
        outcome=answer.outcome,
        reason=answer.reason[:LONGEST_REASON],
        observed_at=dt.datetime.now(dt.UTC),
    )
    return msgspec.json.encode(result)
