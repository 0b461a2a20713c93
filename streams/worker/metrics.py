"""Metrics for Prometheus: a collector that makes them at each scrape from plain numbers, so steps need not.

`streams.partition.counters` has the counts and histograms, `snapshot.py` the state of partitions. docs/operations.md
describes names, units and meanings; a test compares it with this file. All units are seconds and counts. The number of
labels is limited: partitions by their setting, clusters by `CLUSTERS_SHOWN`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, TypeVar

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from evictstream.models.eviction import InputEffect
from evictstream.models.instants import SECOND_US
from evictstream.models.messages.vocabulary import Action, Outcome
from evictstream.streams.partition.dead_letters import REASONS
from evictstream.streams.partition.overdue import NONE_WAITING, Waiting
from evictstream.streams.worker.gates import PARTITION_GATES

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

    from evictstream.streams.engine.core.histogram import Histogram
    from evictstream.streams.engine.core.partitions import Partitions
    from evictstream.streams.engine.core.ports import Clock
    from evictstream.streams.partition.counters import WorkerCounters
    from evictstream.streams.worker.gates import Gate
    from evictstream.streams.worker.served_partition import ServedPartition
    from evictstream.streams.worker.snapshot import Snapshot
    from evictstream.streams.worker.watchdog import Watchdog

Key = TypeVar("Key")

CLUSTERS_SHOWN = 100  # most clusters with series of their own, so that a scrape stays small; most open evictions first
OTHER_CLUSTERS = "_other"  # a cluster with this name would share the series of those that are not shown

_OUTCOMES = (*(effect.value for effect in InputEffect), "forgotten", "dead-letter", "signal", "foreign")  # of a record


class WorkerMetrics(Collector):
    """All metrics of one worker. `collect` may run in any thread."""

    def __init__(
        self,
        *,
        counters: WorkerCounters,
        partitions: Partitions[ServedPartition],
        watchdog: Watchdog,
        snapshot: Callable[[], Snapshot],
        inputs: Mapping[str, str],
        version: str,
        clock: Clock,
    ) -> None:
        """Show each input topic under its name in `inputs`, in the label `input`."""
        self._counters = counters
        self._partitions = partitions
        self._watchdog = watchdog
        self._snapshot = snapshot
        self._inputs = inputs
        self._version = version
        self._clock = clock

    def collect(self) -> Iterable[Metric]:
        """Make all metrics from the present counts and the newest snapshot."""
        snapshot = self._snapshot()
        return itertools.chain(
            self._of_counters(), self._of_worker(), self._of_partitions(snapshot), self._of_evictions(snapshot)
        )

    def _of_counters(self) -> Iterator[Metric]:
        counters = self._counters
        events = dict.fromkeys(itertools.product(self._inputs.values(), _OUTCOMES), 0)
        events |= {
            (self._inputs[topic], outcome): count
            for topic, counts in list(counters.events.items())
            for outcome, count in list(counts.items())
        }
        yield _counter("evictstream_events", "Records read, by outcome.", ("input", "outcome"), events)
        yield _counter(
            "evictstream_dead_letters",
            "Records written to the dead letters.",
            ("reason",),
            _zeros(REASONS) | counters.dead_letters,
        )
        unlisted = _zeros(("removed", "newer")) | counters.unlisted
        yield _counter(
            "evictstream_unlisted", "Known objects that a complete listing did not contain.", ("outcome",), unlisted
        )
        commands = _zeros(Action) | counters.commands
        yield _counter("evictstream_commands", "Commands decided.", ("action",), commands)
        yield _counter("evictstream_decisions", "Decisions.", ("decision", "verdict"), counters.decisions)
        results = _zeros(Outcome) | counters.results
        yield _counter("evictstream_results", "Results of executors that counted.", ("outcome",), results)
        yield _histogram(
            "evictstream_eviction_lateness_seconds", "From the deadline to the decision to issue.", counters.lateness
        )
        deletions = sum(counters.deletion.counts)
        yield _counter("taint_eviction_controller_pod_deletions", "Evicted pods seen deleted.", (), {(): deletions})
        yield _histogram(
            "taint_eviction_controller_pod_deletion_duration_seconds",
            "From the deadline to the deletion seen on the input.",
            counters.deletion,
        )

    def _of_worker(self) -> Iterator[Metric]:
        partitions = self._partitions
        yield _gauge("evictstream_build_info", "Version; always 1.", ("version",), {(self._version,): 1})
        ages = self._watchdog.ages(self._clock.monotonic())
        yield _gauge("evictstream_age_seconds", "How long each thing has been waited for.", ("age",), ages)
        yield _gauge(
            "evictstream_age_limit_seconds", "Age beyond which the worker ends.", ("age",), self._watchdog.limits
        )
        yield _histogram(
            "evictstream_transaction_duration_seconds",
            "From the beginning to the commit of a transaction.",
            partitions.transaction_seconds,
        )
        yield _histogram(
            "evictstream_loop_pause_seconds", "How long the event loop did not run.", partitions.waits.pauses
        )
        yield _counter("evictstream_takeovers", "Partitions taken over.", (), {(): partitions.takeovers})
        yield _counter("evictstream_partitions_lost", "Partitions that failed.", (), {(): partitions.failures})

    def _of_partitions(self, snapshot: Snapshot) -> Iterator[Metric]:
        views = snapshot.partitions
        yield _gauge("evictstream_partitions_owned", "Partitions taken over.", (), {(): len(views)})
        yield _gauge(
            "evictstream_partition_caught_up",
            "Whether all input that existed at the takeover is applied.",
            ("partition",),
            {view.partition: int(view.caught_up) for view in views},
        )
        yield _gauge(
            "evictstream_partition_gate_closed",
            "1 for the gate that its timers would wait for, 0 for the others.",
            ("partition", "gate"),
            {
                (view.partition, gate): int(view.closed is not None and view.closed.gate is gate)
                for view in views
                for gate in PARTITION_GATES
            },
        )
        yield _gauge(
            "evictstream_view_age_seconds",
            "Time since it was last known to have applied everything.",
            ("partition",),
            {view.partition: view.view_age_seconds for view in views},
        )
        for name, meaning, values in (
            (
                "evictstream_lag_seconds",
                "Append time of the newest record less that of the newest applied one.",
                "lag_seconds",
            ),
            ("evictstream_lag_records", "Offsets not applied yet.", "lag_records"),
        ):
            yield _gauge(
                name,
                meaning,
                ("input", "partition"),
                {(self._inputs[t], v.partition): x for v in views for t, x in getattr(v, values).items()},
            )

    def _of_evictions(self, snapshot: Snapshot) -> Iterator[Metric]:
        pending: dict[str, int] = {}
        waiting: dict[tuple[Gate, str], Waiting] = {}
        for view in snapshot.partitions:
            for cluster, count in view.pending.items():
                pending[cluster] = pending.get(cluster, 0) + count
        shown = set(sorted(pending, key=lambda cluster: (-pending[cluster], cluster))[:CLUSTERS_SHOWN])
        by_cluster: dict[str, int] = {}
        for cluster, count in pending.items():
            label = _label(cluster, shown)
            by_cluster[label] = by_cluster.get(label, 0) + count
        for view in snapshot.partitions:
            for (gate, cluster), part in view.waiting.items():
                place = (gate, _label(cluster, shown))
                waiting[place] = waiting.get(place, NONE_WAITING).joined(part)
        yield _gauge("evictstream_evictions_pending", "Open evictions.", ("cluster",), by_cluster)
        yield _gauge(
            "evictstream_evictions_waiting",
            "Evictions that are due but may not fire.",
            ("gate", "cluster"),
            {place: part.count for place, part in waiting.items()},
        )
        now_us = self._clock.now_us()
        unanswered = dict.fromkeys(by_cluster, NONE_WAITING)
        for view in snapshot.partitions:
            for cluster, part in view.unanswered.items():
                label = _label(cluster, shown)
                unanswered[label] = unanswered.get(label, NONE_WAITING).joined(part)
        yield _gauge(
            "evictstream_evictions_unanswered",
            "Evictions that were issued, and that no executor has answered since.",
            ("cluster",),
            {cluster: part.count for cluster, part in unanswered.items()},
        )
        yield _gauge(
            "evictstream_evictions_unanswered_oldest_seconds",
            "How long the oldest of them has been unanswered.",
            ("cluster",),
            {cluster: max(0, now_us - part.oldest_at_us) / SECOND_US for cluster, part in unanswered.items()},
        )
        yield _gauge(
            "evictstream_evictions_waiting_oldest_seconds",
            "How long the oldest of them has waited.",
            ("gate", "cluster"),
            {place: max(0, now_us - part.oldest_at_us) / SECOND_US for place, part in waiting.items()},
        )


def _label(cluster: str, shown: set[str]) -> str:
    return cluster if cluster in shown else OTHER_CLUSTERS


def _zeros(names: Iterable[str]) -> dict[str, int]:
    """Return 0 for each name: Prometheus sees no growth in a series that begins with 1."""
    return dict.fromkeys(map(str, names), 0)


def _labels(key: object) -> list[str]:
    return [str(part) for part in (key if isinstance(key, tuple) else (key,))]


def _counter(name: str, meaning: str, labels: tuple[str, ...], values: Mapping[Key, int]) -> Metric:
    family = CounterMetricFamily(name, meaning, labels=labels)
    for key, value in list(values.items()):
        family.add_metric(_labels(key), value)
    return family


def _gauge(name: str, meaning: str, labels: tuple[str, ...], values: Mapping[Key, float]) -> Metric:
    family = GaugeMetricFamily(name, meaning, labels=labels)
    for key, value in list(values.items()):
        family.add_metric(_labels(key), value)
    return family


def _histogram(name: str, meaning: str, values: Histogram) -> Metric:
    counts = itertools.accumulate(list(values.counts))
    bounds = [*(str(bound) for bound in values.bounds), "+Inf"]
    family = HistogramMetricFamily(name, meaning)
    family.add_metric([], list(zip(bounds, counts, strict=True)), values.total)
    return family
