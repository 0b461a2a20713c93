"""What the released taint eviction controller would have done with the same inputs: its reference model, replayed.

It is told what the service was told, at the instant that each record names; of seconds that a policy has moved it reads
what the spec has. The service's own tables stand beside it,
so each departure is explained at its very instant: what the controller held on to, and what the rules make of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

import msgspec

from evictstream.kit.recordings.record import RecordedRecord
from evictstream.kit.replay.departures import Departure
from evictstream.kit.replay.upstream_reasons import (
    LATE_FEED,
    UNEXPLAINED,
    Reason,
    UpstreamReasons,
    UpstreamTimer,
    UpstreamView,
)
from evictstream.kit.replay.watched_tables import ObjectSighting, WatchedTables
from evictstream.kit.upstream.taint_eviction import (
    ControllerInput,
    ControllerOutcome,
    PodDeleted,
    PodGone,
    PodSeen,
    TaintEvictionController,
    TimerSet,
    apply,
)
from evictstream.models.instants import SECOND_US
from evictstream.models.kubernetes.handed_over import in_spec
from evictstream.models.kubernetes.objects import Pod
from evictstream.streams.settings import Settings


class UpstreamRun:
    """One controller for each cluster. What was recorded about a pod after it was deleted here is left out.

    Attributes:
        departures: the pods deleted so far, and why the service would not have evicted them then.
        recorded: the same of departures that a real controller made.
        has_moved: whether a pod had seconds in an annotation (semantics.md 12.12), which upstream does not read.
        service: departures of the service, and why upstream would not have let the pod go then.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        partitions: int,
        service: Iterable[Departure] = (),
        recorded: Iterable[Departure] = (),
        without_policy: bool = False,
    ) -> None:
        """Know nothing yet.

        Args:
            settings: whose rules and limits count.
            partitions: of the topics that were recorded.
            service: departures of the service that are to be explained.
            recorded: departures that a real controller made, which are to be explained.
            without_policy: let upstream read the seconds in force, as if no policy had moved them.
        """
        self.has_moved = False
        self._without_policy = without_policy
        self.departures: dict[Departure, Reason] = {}
        self.recorded = dict.fromkeys(sorted(recorded), UNEXPLAINED)
        self.service = dict.fromkeys(sorted(service), UNEXPLAINED)
        self._unasked = sorted((*self.recorded, *self.service), reverse=True)
        self._unanswered: list[Departure] = []
        self._unexplained: defaultdict[tuple[str, str], list[tuple[Departure, dict[Departure, Reason]]]]
        self._unexplained = defaultdict(list)
        self._longest_delay_us = int(settings.max_event_delay_seconds * SECOND_US)
        self._reasons = UpstreamReasons(compares=settings.comparison_operators)
        self._compares = settings.comparison_operators
        self._tables = WatchedTables(settings, partitions=partitions)
        self._clusters: dict[str, _Cluster] = {}

    def take(self, record: RecordedRecord) -> None:
        """Take the next record, in order of time; results mean nothing to upstream."""
        sighting = self._tables.read(record)
        if sighting is None:
            return
        appended_us = record.appended_us
        self._explain(appended_us)
        self._advance(sighting.cluster, sighting.at_us)
        for change in self._tables.apply(record, sighting):
            self._follow(sighting.cluster, self._cluster(sighting.cluster).see(self._as_upstream_reads(change)))
        self._explain_late(sighting, appended_us)

    def _as_upstream_reads(self, change: ControllerInput) -> ControllerInput:
        if not isinstance(change, PodSeen):
            return change
        spec = in_spec(change.pod.tolerations)
        if spec is change.pod.tolerations:
            return change
        self.has_moved = True
        if self._without_policy:
            return change
        return msgspec.structs.replace(change, pod=msgspec.structs.replace(change.pod, tolerations=spec))

    def run_on(self, to_us: int) -> None:
        """Let time pass."""
        self._explain(to_us + 1)
        for cluster in self._clusters:
            self._advance(cluster, to_us)

    def _cluster(self, name: str) -> _Cluster:
        if name not in self._clusters:
            self._clusters[name] = _Cluster(TaintEvictionController(comparison_operators=self._compares))
        return self._clusters[name]

    def _advance(self, cluster: str, to_us: int) -> None:
        for outcomes in self._cluster(cluster).advance(to_us):
            self._follow(cluster, outcomes)

    def _follow(self, cluster: str, outcomes: Iterable[ControllerOutcome]) -> None:
        state = self._cluster(cluster)
        for outcome in outcomes:
            if isinstance(outcome, TimerSet):
                pod = state.holders[outcome.address]
                node = self._tables.node(cluster, pod.node_name)
                state.timers[outcome.address] = UpstreamTimer(pod.uid, node, pod.tolerations)
            elif isinstance(outcome, PodDeleted):
                departure = Departure(
                    at_us=outcome.at_us,
                    cluster=cluster,
                    pod_uid=outcome.uid,
                    name=outcome.address,
                    node=outcome.node_name,
                )
                self._explain_upstream(departure, self.departures)
                state.delete(outcome.address)

    def _explain(self, before_us: int) -> None:
        """Explain the departures before an instant, and those at it that earlier records explain."""
        asked, self._unanswered = self._unanswered, []
        while self._unasked and self._unasked[-1].at_us <= before_us:
            asked.append(self._unasked.pop())
        for departure in asked:
            self._advance(departure.cluster, departure.at_us)
            if departure in self.recorded:
                self._explain_upstream(departure, self.recorded)
                continue
            reason = self._service_reason(departure, is_last=departure.at_us < before_us)
            if reason is None:
                self._unanswered.append(departure)
            else:
                self._keep(departure, reason, self.service)

    def _service_reason(self, departure: Departure, *, is_last: bool) -> Reason | None:
        state = self._cluster(departure.cluster)
        holder = state.holders.get(departure.name)
        view = UpstreamView(
            holder_uid=None if holder is None else holder.uid,
            timer=state.timers.get(departure.name) if state.controller.is_queued(departure.name) else None,
            has_left=departure.pod_uid in state.left,
        )
        standing = self._tables.standing(departure.cluster, departure.node, departure.pod_uid, departure.at_us)
        return self._reasons.of_service(departure.pod_uid, departure.at_us, standing, view, is_last=is_last)

    def _explain_upstream(self, departure: Departure, where: dict[Departure, Reason]) -> None:
        standing = self._tables.standing(departure.cluster, departure.node, departure.pod_uid, departure.at_us)
        timer = self._cluster(departure.cluster).timers.get(departure.name)
        self._keep(departure, self._reasons.of_upstream(departure.pod_uid, departure.at_us, standing, timer), where)

    def _keep(self, departure: Departure, reason: Reason, where: dict[Departure, Reason]) -> None:
        where[departure] = reason
        if reason is UNEXPLAINED:
            self._unexplained[departure.cluster, departure.node].append((departure, where))

    def _explain_late(self, sighting: ObjectSighting, appended_us: int) -> None:
        """Explain decisions that the service made before it read a record that was already seen."""
        waiting = self._unexplained.pop((sighting.cluster, sighting.node), ())
        for departure, where in waiting:
            if sighting.at_us <= departure.at_us < appended_us:
                where[departure] = LATE_FEED
            elif departure.at_us >= appended_us - self._longest_delay_us:
                self._unexplained[sighting.cluster, sighting.node].append((departure, where))


class _Cluster:
    """The controller of a cluster, and the changes passed to it.

    Attributes:
        controller: the model.
        holders: the pod that has an address now.
        timers: the last one that was set under an address; it may have fired.
        left: UIDs of pods that were deleted here.
    """

    def __init__(self, controller: TaintEvictionController) -> None:
        self.controller = controller
        self.holders: dict[str, Pod] = {}
        self.timers: dict[str, UpstreamTimer] = {}
        self.left: set[str] = set()
        self._now_us = 0

    def see(self, change: ControllerInput) -> list[ControllerOutcome]:
        """Apply a change, now if it lies before."""
        if isinstance(change, PodSeen | PodGone):
            address = f"{change.pod.namespace}/{change.pod.name}"
            if change.pod.uid in self.left:
                return []
            if isinstance(change, PodSeen):
                self.holders[address] = change.pod
            else:
                holder = self.holders.get(address)
                if holder is None or holder.uid != change.pod.uid:
                    return []  # another pod has its name by now
                del self.holders[address]
        self._now_us = max(self._now_us, change.at_us)
        return apply(self.controller, msgspec.structs.replace(change, at_us=self._now_us))

    def advance(self, to_us: int) -> Iterator[list[ControllerOutcome]]:
        """Let time pass, from one deletion to the next: a pod that is deleted cannot be deleted again."""
        while (next_us := self.controller.next_us()) is not None and next_us <= to_us:
            self._now_us = max(self._now_us, next_us)
            yield self.controller.advance(self._now_us)
        self._now_us = max(self._now_us, to_us)

    def delete(self, address: str) -> None:
        """Let a pod be gone that was deleted."""
        pod = self.holders.pop(address)
        self.left.add(pod.uid)
        self.controller.lose_pod(address)
        self.controller.work(self._now_us)
