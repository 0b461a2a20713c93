"""Metrics for Prometheus: a collector that makes them at each scrape from plain numbers, so steps need not.

`metric_definitions.py` has names, labels and meanings, `streams.partition.counters` the counts and histograms,
`snapshot.py` the state of partitions. All units are seconds and counts. The number of labels is limited: partitions by
their setting, clusters by `CLUSTERS_SHOWN`, brakes by `BRAKES_SHOWN`, incidents by
`INCIDENTS_SHOWN`.
"""

from __future__ import annotations

import collections
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, TypeVar

from prometheus_client.registry import Collector

from evictstream.models.eviction import InputEffect
from evictstream.models.instants import SECOND_US
from evictstream.models.messages.vocabulary import Action, DecisionKind, Outcome, Verdict
from evictstream.streams.health.definitions import BUILD_INFO
from evictstream.streams.partition.dead_letters import REASONS
from evictstream.streams.partition.overdue import NONE_WAITING, Waiting
from evictstream.streams.worker.gates import PARTITION_GATES
from evictstream.streams.worker.metric_definitions import WorkerMetric

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

    from evictstream.streams.engine.core.partitions import Partitions
    from evictstream.streams.engine.core.ports import Clock
    from evictstream.streams.partition.counters import WorkerCounters
    from evictstream.streams.worker.gates import BrakesView, Gate, PoliciesView
    from evictstream.streams.worker.served_partition import ServedPartition
    from evictstream.streams.worker.snapshot import Snapshot
    from evictstream.streams.worker.watchdog import Watchdog

_Key = TypeVar("_Key")

CLUSTERS_SHOWN = 100  # most clusters with series of their own, so that a scrape stays small; most open evictions first
INCIDENTS_SHOWN = 20  # most policies and clusters with a series of their own, whose incidents wait longest
BRAKES_SHOWN = 20  # most brakes with series of their own, those that hold most or stand longest
_OTHERS = "_other"  # a cluster with this name would share the series of those that are not shown

_OUTCOMES = (*(effect.value for effect in InputEffect), "forgotten", "dead-letter", "signal", "foreign")  # of a record

_WHY_OWED: Final = (Verdict.UNTOLERATED, Verdict.TOLERATION_EXPIRES)
_ENDS: Final = (DecisionKind.COMPLETED, DecisionKind.CANCELLED)
_DECISIONS: Final = (
    *itertools.product([kind for kind in DecisionKind if kind not in _ENDS], _WHY_OWED),
    *itertools.product(_ENDS, [verdict for verdict in Verdict if verdict not in _WHY_OWED]),
)
"""What a decision may say; not each of these pairs occurs."""


class WorkerMetrics(Collector):
    """All metrics of one worker. `collect` may run in any thread."""

    def __init__(
        self,
        *,
        counters: WorkerCounters,
        partitions: Partitions[ServedPartition],
        watchdog: Watchdog,
        snapshot: Callable[[], Snapshot],
        brakes: BrakesView,
        policies: PoliciesView,
        inputs: Mapping[str, str],
        partition_count: int,
        version: str,
        clock: Clock,
    ) -> None:
        """Show each input topic under its name in `inputs`, in the label `input`."""
        self._counters = counters
        self._partitions = partitions
        self._watchdog = watchdog
        self._snapshot = snapshot
        self._brakes = brakes
        self._policies = policies
        self._inputs = inputs
        self._partition_count = partition_count
        self._version = version
        self._clock = clock

    def collect(self) -> Iterable[Metric]:
        """Make all metrics from the present counts and the newest snapshot."""
        snapshot = self._snapshot()
        return itertools.chain(
            self._of_counters(),
            self._of_worker(),
            self._of_partitions(snapshot),
            self._of_evictions(snapshot),
            self._of_incidents(snapshot),
            self._of_brakes(),
            self._of_policies(),
        )

    def _of_counters(self) -> Iterator[Metric]:
        counters = self._counters
        events = dict.fromkeys(itertools.product(self._inputs.values(), _OUTCOMES), 0)
        events |= {
            (self._inputs[topic], outcome): count
            for topic, counts in list(counters.events.items())
            for outcome, count in list(counts.items())
        }
        yield WorkerMetric.EVENTS.of(events)
        yield WorkerMetric.DEAD_LETTERS.of(_zeros(REASONS) | counters.dead_letters)
        yield WorkerMetric.UNLISTED.of(_zeros(("removed", "newer")) | counters.unlisted)
        yield WorkerMetric.UNREADABLE_ANNOTATIONS.of({(): counters.unreadable_annotations})
        yield WorkerMetric.COMMANDS.of(_zeros(Action) | counters.commands)
        decisions = {(str(kind), str(verdict)): 0 for kind, verdict in _DECISIONS}
        yield WorkerMetric.DECISIONS.of(decisions | counters.decisions)
        yield WorkerMetric.RESULTS.of(_zeros(Outcome) | counters.results)
        yield WorkerMetric.LATENESS.of({(): counters.lateness})
        yield WorkerMetric.POD_DELETIONS.of({(): sum(counters.deletion.counts)})
        yield WorkerMetric.POD_DELETION_SECONDS.of({(): counters.deletion})

    def _of_worker(self) -> Iterator[Metric]:
        partitions = self._partitions
        yield BUILD_INFO.of({("worker", self._version): 1})
        yield WorkerMetric.WAIT_SECONDS.of(self._watchdog.ages(self._clock.monotonic()))
        yield WorkerMetric.WAIT_LIMIT_SECONDS.of(self._watchdog.limits)
        yield WorkerMetric.TRANSACTION_SECONDS.of({(): partitions.transaction_seconds})
        yield WorkerMetric.LOOP_PAUSES.of({(): partitions.waits.pauses})
        yield WorkerMetric.TAKEOVERS.of({(): partitions.takeovers})
        yield WorkerMetric.PARTITIONS_LOST.of({(): partitions.failures})
        yield WorkerMetric.PARTITIONS.of({(): self._partition_count})

    def _of_partitions(self, snapshot: Snapshot) -> Iterator[Metric]:
        views = snapshot.partitions
        yield WorkerMetric.OWNED.of({(): len(views)})
        yield WorkerMetric.CAUGHT_UP.of({view.partition: int(view.caught_up) for view in views})
        yield WorkerMetric.GATE_CLOSED.of(
            {
                (view.partition, gate): int(view.closed is not None and view.closed.gate is gate)
                for view in views
                for gate in PARTITION_GATES
            }
        )
        yield WorkerMetric.VIEW_AGE.of({view.partition: view.view_age_seconds for view in views})
        for lag, values in ((WorkerMetric.LAG_SECONDS, "lag_seconds"), (WorkerMetric.LAG_RECORDS, "lag_records")):
            yield lag.of({(self._inputs[t], v.partition): x for v in views for t, x in getattr(v, values).items()})

    def _of_evictions(self, snapshot: Snapshot) -> Iterator[Metric]:
        pending: dict[str, int] = {}
        for view in snapshot.partitions:
            for cluster, count in view.pending.items():
                pending[cluster] = pending.get(cluster, 0) + count
        shown = set(sorted(pending, key=lambda cluster: (-pending[cluster], cluster))[:CLUSTERS_SHOWN])
        by_cluster: dict[str, int] = {}
        for cluster, count in pending.items():
            label = _label(cluster, shown)
            by_cluster[label] = by_cluster.get(label, 0) + count
        waiting: dict[tuple[Gate, str], Waiting] = {}
        held: dict[tuple[str, str], Waiting] = {}
        holding = self._shown_brakes(snapshot)
        unanswered = dict.fromkeys(by_cluster, NONE_WAITING)
        now_us = self._clock.now_us()
        owed, silent = dict.fromkeys(by_cluster, now_us), dict.fromkeys(by_cluster, now_us)
        for view in snapshot.partitions:
            for (gate, cluster), part in view.waiting.items():
                place = (gate, _label(cluster, shown))
                waiting[place] = waiting.get(place, NONE_WAITING).joined(part)
            for (brake, cluster), part in view.held.items():
                name = (_label(brake, holding), _label(cluster, shown))
                held[name] = held.get(name, NONE_WAITING).joined(part)
            for cluster, part in view.unanswered.items():
                label = _label(cluster, shown)
                unanswered[label] = unanswered.get(label, NONE_WAITING).joined(part)
            for since, of_view in ((owed, view.owed_since_us), (silent, view.silent_since_us)):
                for cluster, since_us in of_view.items():
                    label = _label(cluster, shown)
                    since[label] = min(since.get(label, now_us), since_us)
        yield WorkerMetric.PENDING.of(by_cluster)
        yield WorkerMetric.OWED_OLDEST.of(_ages(owed, now_us))
        yield WorkerMetric.WAITING.of({place: part.count for place, part in waiting.items()})
        yield WorkerMetric.WAITING_OLDEST.of(
            _ages({place: part.oldest_at_us for place, part in waiting.items()}, now_us)
        )
        yield WorkerMetric.HELD.of({name: part.count for name, part in held.items()})
        yield WorkerMetric.HELD_OLDEST.of(_ages({name: part.oldest_at_us for name, part in held.items()}, now_us))
        yield WorkerMetric.UNANSWERED.of({cluster: part.count for cluster, part in unanswered.items()})
        yield WorkerMetric.UNANSWERED_OLDEST.of(
            _ages({cluster: part.oldest_at_us for cluster, part in unanswered.items()}, now_us)
        )
        yield WorkerMetric.FEED_SILENT.of(_ages(silent, now_us))

    def _of_incidents(self, snapshot: Snapshot) -> Iterator[Metric]:
        since_us = {place: at_us for view in snapshot.partitions for place, at_us in view.incidents_since_us.items()}
        oldest = sorted(since_us, key=lambda place: since_us[place])[:INCIDENTS_SHOWN]
        now_us = self._clock.now_us()
        yield WorkerMetric.INCIDENT_SECONDS.of(_ages({place: since_us[place] for place in oldest}, now_us))

    def _of_brakes(self) -> Iterator[Metric]:
        brakes, now_us = self._brakes.brakes, self._clock.now_us()
        since_us = {standing.brake.id: standing.appended_us for standing in brakes.in_force(now_us)}
        oldest = sorted(since_us, key=lambda name: since_us[name])[:BRAKES_SHOWN]
        yield WorkerMetric.BRAKES.of({(): len(since_us)})
        yield WorkerMetric.BRAKE_SECONDS.of(_ages({name: since_us[name] for name in oldest}, now_us))
        yield WorkerMetric.BRAKES_UNREADABLE.of({(): len(brakes.unreadable)})
        yield WorkerMetric.BRAKES_AGE.of({(): self._brakes.age_seconds()})

    def _of_policies(self) -> Iterator[Metric]:
        policies = self._policies.policies
        standing = sum(one.policy.spec is not None for one in policies.standing.values())
        yield WorkerMetric.POLICIES.of({(): standing})
        yield WorkerMetric.POLICIES_UNREADABLE.of({(): len(policies.unreadable)})
        yield WorkerMetric.POLICIES_AGE.of({(): self._policies.age_seconds()})

    @staticmethod
    def _shown_brakes(snapshot: Snapshot) -> set[str]:
        count: collections.Counter[str] = collections.Counter()
        for view in snapshot.partitions:
            for (brake, _), part in view.held.items():
                count[brake] += part.count
        return {brake for brake, _ in count.most_common(BRAKES_SHOWN)}


def _ages(since_us: Mapping[_Key, int], now_us: int) -> dict[_Key, float]:
    """Return seconds since each instant, 0 for one ahead."""
    return {key: max(0, now_us - at_us) / SECOND_US for key, at_us in since_us.items()}


def _label(name: str, shown: set[str]) -> str:
    return name if name in shown else _OTHERS


def _zeros(names: Iterable[str]) -> dict[str, int]:
    """Return 0 for each name: Prometheus sees no growth in a series that begins with 1."""
    return dict.fromkeys(map(str, names), 0)
