"""The network between a worker and the brokers: delays, cuts, and requests that arrive after their sender is gone.

Requests of one worker arrive in order. One that cannot get through is sent again until it does, as clients do; the
broker does not know whether its sender still waits for the answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from aiokafka import errors as kafka_errors

from tests.faults.simulated.world import SECOND_US

if TYPE_CHECKING:
    from tests.faults.simulated.broker import Broker
    from tests.faults.simulated.worker import Worker

Answer = TypeVar("Answer")
SHORTEST_US, LONGEST_US = 200, 3_000


class Connection:
    """One worker's connection to the brokers.

    Attributes:
        extra_us: how much longer everything takes each way.
        cut_until_us: nothing passes before.
        trap: half requests until `sprung` is called, or `None`. At an even number that is after a request was carried
            out, else before one. So a fault can strike at any point of a transaction.
    """

    def __init__(self, worker: Worker, broker: Broker) -> None:
        self.broker = broker
        self.extra_us = 0
        self.cut_until_us = 0
        self.trap: int | None = None
        self.sprung: Callable[[], None] = lambda: None
        self._worker = worker
        self._world = broker.world
        self._latest_us = 0

    async def request(self, carry_out: Callable[[], Answer]) -> Answer:
        """Let the broker carry something out; returns or raises its answer."""
        return await self.post(carry_out)

    def post(self, carry_out: Callable[[], Answer]) -> asyncio.Future[Answer]:
        """Send a request now, and give the future of its answer."""
        answer: asyncio.Future[Answer] = self._worker.loop.create_future()
        if self._worker.is_dead:
            answer.set_exception(kafka_errors.KafkaConnectionError("no more"))
            return answer
        self._latest_us = max(self._latest_us, self._world.now_us + self._delay_us())
        self._world.at(self._latest_us, lambda: self._arrive(carry_out, answer))
        return answer

    def deferred(self, defer: Callable[[Callable[[Answer], None]], None]) -> asyncio.Future[Answer]:
        """Send a request that the broker answers later: `defer` gets what to call with the answer."""
        answer: asyncio.Future[Answer] = self._worker.loop.create_future()
        self._latest_us = max(self._latest_us, self._world.now_us + self._delay_us())

        def reply(found: Answer) -> None:
            self._answer_later(lambda: self._return(answer, lambda: answer.set_result(found)))

        def arrive() -> None:
            if (open_at_us := self._open_at_us()) > self._world.now_us:
                self._world.at(open_at_us, arrive)
            elif not self._worker.is_dead:
                defer(reply)

        self._world.at(self._latest_us, arrive)
        return answer

    def _delay_us(self) -> int:
        return self.extra_us + self._world.chance.randrange(SHORTEST_US, LONGEST_US)

    def _open_at_us(self) -> int:
        return max(self.cut_until_us, self.broker.down_until_us)

    def _arrive(self, carry_out: Callable[[], Answer], answer: asyncio.Future[Answer]) -> None:
        now_us = self._world.now_us
        if (open_at_us := self._open_at_us()) > now_us:
            if not self._worker.is_dead:  # a dead client sends nothing again
                self._latest_us = max(self._latest_us, open_at_us)
                self._world.at(open_at_us, lambda: self._arrive(carry_out, answer))
            return
        self._spring()
        try:
            found = carry_out()
        except (kafka_errors.KafkaError, OSError) as error:
            raised = error
            self._answer_later(lambda: self._return(answer, lambda: answer.set_exception(raised)))
        else:
            self._answer_later(lambda: self._return(answer, lambda: answer.set_result(found)))
        self._spring()

    def _spring(self) -> None:
        if self.trap is None:
            return
        self.trap -= 1
        if self.trap <= 0:
            self.trap = None
            self.sprung()

    def _answer_later(self, action: Callable[[], None]) -> None:
        self._world.at(self._world.now_us + self._delay_us(), action)

    def _return(self, answer: asyncio.Future[Answer], settle: Callable[[], None]) -> None:
        """Let the answer arrive; a paused worker finds it when it goes on."""
        open_at_us = self._open_at_us()
        if open_at_us > self._world.now_us:
            self._world.at(open_at_us, lambda: self._return(answer, settle))
        elif not self._worker.is_dead:
            self._worker.loop.call_soon(_settle, answer, settle)

    def hold(self, seconds: float) -> None:
        """Cut the connection for a while."""
        self.cut_until_us = max(self.cut_until_us, self._world.now_us + int(seconds * SECOND_US))


def _settle(answer: asyncio.Future[Answer], settle: Callable[[], None]) -> None:
    """Settle a future, unless its waiter has given up."""
    if not answer.done():
        settle()
