"""Probes and Prometheus metrics of an executor."""

from __future__ import annotations

import importlib.metadata
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from evictstream.models.execution.eviction_requests import NOTICED_SECONDS
from evictstream.models.messages.vocabulary import Action, Outcome
from evictstream.streams.executor.cluster_life import ClusterLife
from evictstream.streams.executor.command_consumer import CommandConsumer
from evictstream.streams.executor.metric_definitions import ExecutorMetric
from evictstream.streams.health.definitions import BUILD_INFO
from evictstream.streams.health.endpoint import OK, UNAVAILABLE, Report
from evictstream.streams.kafka_reach import REACH

_STILL_SECONDS: Final = 120.0
"""A reader without a poll for so long is stuck: it polls each 50 ms to 250 ms, and waits 30 s for Kafka at most."""


_IGNORED: Final = f"no controller acts on EvictionRequests: none has seen one within {NOTICED_SECONDS:g} s"


class ExecutorHealth(Collector):
    """Answers probes, and makes metrics from plain numbers at each scrape."""

    def __init__(self) -> None:
        self.lives: Sequence[ClusterLife] = ()

    def live(self, now: float) -> Report:
        """Report whether every reader polls and no worker has crashed. A cluster that is not served is no failure."""
        stuck = [life.order.name for life in self.lives if _is_stuck(life, now)]
        return Report(UNAVAILABLE if stuck else OK, {"status": "stuck" if stuck else "ok", "clusters": stuck})

    def ready(self, now: float) -> Report:
        """Report whether every cluster is served. An executor that stands by is ready.

        No cluster is ready while Kafka is unavailable, nor one whose commands an open transaction blocks, nor one that
        would evict while it is not known what brakes hold. A brake that holds is told, and hinders nothing else; so
        are EvictionRequests that no controller acts on.
        """
        hindered = {life.order.name: reason for life in self.lives if (reason := _hindrance(life)) is not None}
        blocked = {life.order.name: seconds for life in self.lives if (seconds := _blocked_seconds(life, now))}
        now_us = time.time_ns() // 1_000
        brakes = {life.order.name: standing for life in self.lives if (standing := life.brakes.standing(now_us))}
        ignored = [life.order.name for life in self.lives if life.requests is not None and life.requests.is_ignored]
        role = {life.order.name: _role(life.reader) for life in self.lives if life.reader is not None}
        kafka = REACH.problem()
        is_ready = self.lives and not hindered and not blocked and kafka is None
        body: dict[str, object] = {
            "status": "ready" if is_ready else "not ready",
            **({} if kafka is None else {"kafka": kafka}),
            "hindered": hindered,
            **({} if not blocked else {"heldByOpenTransactions": blocked}),
            **({} if not brakes else {"brakes": brakes}),
            **({} if not ignored else {"evictionRequests": dict.fromkeys(ignored, _IGNORED)}),
            "role": role,
        }
        return Report(OK if is_ready else UNAVAILABLE, body)

    def collect(self) -> Iterable[Metric]:
        """Make all metrics from the present numbers."""
        yield BUILD_INFO.of({("executor", importlib.metadata.version("evictstream")): 1})
        yield from self._of_readers()
        yield from self._of_clusters()

    def _of_readers(self) -> Iterator[Metric]:
        now = time.monotonic()
        read = [(life.order.name, life.order.mode, life.reader) for life in self.lives if life.reader is not None]
        commands = {(name, action): reader.commands[action] for name, _, reader in read for action in Action}
        yield ExecutorMetric.COMMANDS.of(commands)
        yield ExecutorMetric.UNREADABLE.of({name: reader.unreadable + reader.left_out for name, _, reader in read})
        yield ExecutorMetric.PASSED_OVER.of({name: reader.passed_over for name, _, reader in read})
        yield ExecutorMetric.ACTIVE.of({(name, mode): reader.is_active for name, mode, reader in read})
        yield ExecutorMetric.HELD_SECONDS.of({name: reader.open_transactions.seconds(now) for name, _, reader in read})
        yield ExecutorMetric.RESETS.of({name: reader.starts.resets for name, _, reader in read})

    def _of_clusters(self) -> Iterator[Metric]:
        now = time.monotonic()
        yield ExecutorMetric.SERVED.of({life.order.name: life.is_served for life in self.lives})
        now_us = time.time_ns() // 1_000
        yield ExecutorMetric.BRAKES.of({life.order.name: len(life.brakes.standing(now_us)) for life in self.lives})
        yield ExecutorMetric.HINDERED.of({life.order.name: _hindrance(life) is not None for life in self.lives})
        served = [(life.order.name, life.executor) for life in self.lives if life.executor is not None]
        yield ExecutorMetric.WAITING.of({name: len(cluster) for name, cluster in served})
        yield ExecutorMetric.WAITING_OLDEST.of({name: cluster.oldest_seconds(now) for name, cluster in served})
        requests = [(life.order.name, life.requests) for life in self.lives if life.executor is not None]
        yield ExecutorMetric.REQUESTS.of({name: 0 if made is None else len(made) for name, made in requests})
        yield ExecutorMetric.REQUESTS_IGNORED.of(
            {name: made is not None and made.is_ignored for name, made in requests}
        )
        results = {
            (life.order.name, life.order.mode, outcome): life.answers.outcomes[outcome]
            for life in self.lives
            if life.answers is not None
            for outcome in Outcome
            if outcome is not Outcome.ACCEPTED  # no answer
        }
        yield ExecutorMetric.RESULTS.of(results)
        yield ExecutorMetric.ANSWER_SECONDS.of({name: cluster.seconds for name, cluster in served})
        events = [(life.order.name, life.events) for life in self.lives if life.events is not None]
        yield ExecutorMetric.EVENTS.of(
            {(name, what): getattr(of, what) for name, of in events for what in ("written", "counted", "dropped")}
        )


def _is_stuck(life: ClusterLife, now: float) -> bool:
    if not life.is_served or life.reader is None or life.executor is None:
        return False
    return now - life.reader.polled_at > _STILL_SECONDS or not life.executor.are_workers_alive()


def _role(reader: CommandConsumer) -> str:
    return "active" if reader.is_active else "standby"


def _blocked_seconds(life: ClusterLife, now: float) -> int:
    """Return for how many seconds an open transaction has blocked its commands; 0 if that is not too long."""
    if not life.is_served or life.reader is None:
        return 0
    return round(max(life.reader.open_transactions.held(now).values(), default=0.0))


def _hindrance(life: ClusterLife) -> str | None:
    if life.problem is not None or life.executor is None:
        return life.problem
    return life.executor.hindrance
