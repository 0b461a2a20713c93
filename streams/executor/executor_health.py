"""What probes and Prometheus are told of an executor."""

from __future__ import annotations

import importlib.metadata
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from evictstream.streams.executor.cluster_executor import ClusterExecutor
from evictstream.streams.executor.command_consumer import CommandConsumer
from evictstream.streams.executor.pod_events import PodEvents
from evictstream.streams.health.endpoint import OK, UNAVAILABLE, Report

STILL_SECONDS: Final = 120.0
"""A reader that has not gone round for so long is stuck: it does so each 50 ms, and waits 30 s for Kafka at most."""


class ExecutorHealth(Collector):
    """Answers probes, and makes metrics at each scrape from plain numbers."""

    def __init__(
        self, reader: CommandConsumer, clusters: Sequence[ClusterExecutor], events: Mapping[str, PodEvents]
    ) -> None:
        self._reader = reader
        self._clusters = clusters
        self._events = events

    def live(self, now: float) -> Report:
        """Report whether the reader goes round and no worker has ended."""
        dead = [cluster.name for cluster in self._clusters if not cluster.are_workers_alive()]
        is_stuck = now - self._reader.looked_at > STILL_SECONDS
        body: dict[str, object] = {"status": "stuck" if is_stuck or dead else "ok", "clusters": dead}
        return Report(UNAVAILABLE if is_stuck or dead else OK, body)

    def ready(self, now: float) -> Report:
        """Report whether every API server takes evictions. An executor without a partition stands by, and is ready."""
        del now
        hindered = {cluster.name: cluster.hindrance for cluster in self._clusters if cluster.hindrance is not None}
        body: dict[str, object] = {
            "status": "not ready" if hindered else "ready",
            "hindered": hindered,
            "partitions": sorted(self._reader.partitions),
        }
        return Report(UNAVAILABLE if hindered else OK, body)

    def collect(self) -> Iterable[Metric]:
        """Make all metrics from the numbers of this moment."""
        build = GaugeMetricFamily("evictstream_build_info", "Version; always 1.", labels=("version",))
        build.add_metric([importlib.metadata.version("evictstream")], 1)
        yield build
        read = CounterMetricFamily("evictstream_executor_commands", "Commands read.", labels=("action",))
        for action, count in self._reader.commands.items():
            read.add_metric([action], count)
        yield read
        yield CounterMetricFamily(
            "evictstream_executor_unreadable", "Records that are no commands.", value=self._reader.unreadable
        )
        yield GaugeMetricFamily(
            "evictstream_executor_partitions", "Partitions that it reads.", value=len(self._reader.partitions)
        )
        yield from self._of_clusters()

    def _of_clusters(self) -> Iterator[Metric]:
        now = time.monotonic()
        waiting = GaugeMetricFamily("evictstream_executor_waiting", "Evictions queued or running.", labels=("cluster",))
        oldest = GaugeMetricFamily(
            "evictstream_executor_oldest_seconds", "How long the oldest of them has waited.", labels=("cluster",)
        )
        hindered = GaugeMetricFamily("evictstream_executor_hindered", "The API server takes none.", labels=("cluster",))
        results = CounterMetricFamily(
            "evictstream_executor_results", "Evictions answered.", labels=("cluster", "mode", "outcome")
        )
        seconds = HistogramMetricFamily(
            "evictstream_executor_seconds", "From reading a command to its answer.", labels=("cluster",)
        )
        events = CounterMetricFamily("evictstream_executor_events", "Kubernetes Events.", labels=("cluster", "what"))
        for cluster in self._clusters:
            waiting.add_metric([cluster.name], len(cluster))
            oldest.add_metric([cluster.name], cluster.oldest_seconds(now))
            hindered.add_metric([cluster.name], cluster.hindrance is not None)
            for outcome, count in cluster.outcomes.items():
                results.add_metric([cluster.name, cluster.mode, outcome], count)
            bounds = [*map(str, cluster.seconds.bounds), "+Inf"]
            buckets = list(zip(bounds, accumulate(cluster.seconds.counts), strict=True))
            seconds.add_metric([cluster.name], buckets, cluster.seconds.total)
            found = self._events.get(cluster.name)
            if found is not None:
                events.add_metric([cluster.name, "written"], found.written)
                events.add_metric([cluster.name, "dropped"], found.dropped)
        yield from (waiting, oldest, hindered, results, seconds, events)
