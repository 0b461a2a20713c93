"""Probes and Prometheus metrics of an executor."""

from __future__ import annotations

import importlib.metadata
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from evictstream.streams.executor.cluster_life import ClusterLife
from evictstream.streams.executor.command_consumer import CommandConsumer
from evictstream.streams.health.endpoint import OK, UNAVAILABLE, Report
from evictstream.streams.kafka_reach import REACH

_STILL_SECONDS: Final = 120.0
"""A reader without a poll for so long is stuck: it polls each 50 ms to 250 ms, and waits 30 s for Kafka at most."""


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

        No cluster is ready while Kafka is unavailable, nor one whose commands an open transaction blocks.
        """
        hindered = {life.order.name: reason for life in self.lives if (reason := _hindrance(life)) is not None}
        blocked = {life.order.name: seconds for life in self.lives if (seconds := _blocked_seconds(life, now))}
        role = {life.order.name: _role(life.reader) for life in self.lives if life.reader is not None}
        kafka = REACH.problem()
        is_ready = self.lives and not hindered and not blocked and kafka is None
        body: dict[str, object] = {
            "status": "ready" if is_ready else "not ready",
            **({} if kafka is None else {"kafka": kafka}),
            "hindered": hindered,
            **({} if not blocked else {"heldByOpenTransactions": blocked}),
            "role": role,
        }
        return Report(OK if is_ready else UNAVAILABLE, body)

    def collect(self) -> Iterable[Metric]:
        """Make all metrics from the present numbers."""
        build = GaugeMetricFamily("evictstream_build_info", "Version; always 1.", labels=("version",))
        build.add_metric([importlib.metadata.version("evictstream")], 1)
        yield build
        yield from self._of_readers()
        yield from self._of_clusters()

    def _of_readers(self) -> Iterator[Metric]:
        read = CounterMetricFamily("evictstream_executor_commands", "Commands read.", labels=("cluster", "action"))
        unreadable = CounterMetricFamily(
            "evictstream_executor_unreadable", "Records that are not commands.", labels=("cluster",)
        )
        passed_over = CounterMetricFamily(
            "evictstream_executor_passed_over", "Records of other clusters, passed over.", labels=("cluster",)
        )
        active = GaugeMetricFamily(
            "evictstream_executor_active",
            "Whether it reads the cluster's commands; 0 if it stands by.",
            labels=("cluster", "mode"),
        )
        blocked = GaugeMetricFamily(
            "evictstream_executor_held_seconds",
            "How long an open transaction has blocked commands.",
            labels=("cluster",),
        )
        resets = CounterMetricFamily(
            "evictstream_executor_resets",
            "How often the partition ended before the offset that was read.",
            labels=("cluster",),
        )
        for life in self.lives:
            reader, name = life.reader, life.order.name
            if reader is None:
                continue
            for action, count in reader.commands.items():
                read.add_metric([name, action], count)
            unreadable.add_metric([name], reader.unreadable + reader.left_out)
            passed_over.add_metric([name], reader.passed_over)
            active.add_metric([name, life.order.mode], reader.is_active)
            blocked.add_metric([name], reader.open_transactions.seconds(time.monotonic()))
            resets.add_metric([name], reader.starts.resets)
        yield from (read, unreadable, passed_over, active, blocked, resets)

    def _of_clusters(self) -> Iterator[Metric]:
        now = time.monotonic()
        served = GaugeMetricFamily(
            "evictstream_executor_served",
            "Whether the cluster is checked and its commands are read.",
            labels=("cluster",),
        )
        waiting = GaugeMetricFamily("evictstream_executor_waiting", "Evictions queued or running.", labels=("cluster",))
        oldest = GaugeMetricFamily(
            "evictstream_executor_oldest_seconds", "How long the oldest of them has waited.", labels=("cluster",)
        )
        hindered = GaugeMetricFamily(
            "evictstream_executor_hindered", "Whether it evicts nothing in the cluster now.", labels=("cluster",)
        )
        results = CounterMetricFamily(
            "evictstream_executor_results", "Evictions answered.", labels=("cluster", "mode", "outcome")
        )
        seconds = HistogramMetricFamily(
            "evictstream_executor_seconds", "From reading a command to its answer.", labels=("cluster",)
        )
        events = CounterMetricFamily("evictstream_executor_events", "Kubernetes Events.", labels=("cluster", "what"))
        for life in self.lives:
            name, cluster = life.order.name, life.executor
            served.add_metric([name], life.is_served)
            hindered.add_metric([name], _hindrance(life) is not None)
            if cluster is None:
                continue
            waiting.add_metric([name], len(cluster))
            oldest.add_metric([name], cluster.oldest_seconds(now))
            for outcome, count in cluster.outcomes.items():
                results.add_metric([name, cluster.mode, outcome], count)
            bounds = [*map(str, cluster.seconds.bounds), "+Inf"]
            buckets = list(zip(bounds, accumulate(cluster.seconds.counts), strict=True))
            seconds.add_metric([name], buckets, cluster.seconds.total)
            if life.events is not None:
                events.add_metric([name, "written"], life.events.written)
                events.add_metric([name, "counted"], life.events.counted)
                events.add_metric([name, "dropped"], life.events.dropped)
        yield from (served, waiting, oldest, hindered, results, seconds, events)


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
