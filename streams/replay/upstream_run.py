"""What the released taint eviction controller would have done with the same inputs: its reference model, replayed."""

from __future__ import annotations

from evictstream.models.messages.events import NodeEvent, PodEvent
from evictstream.models.messages.vocabulary import EventType
from evictstream.models.upstream.taint_eviction import (
    Change,
    NodeGone,
    NodeSeen,
    Outcome,
    PodDeleted,
    PodGone,
    PodSeen,
    TaintEvictionController,
    apply,
)
from evictstream.streams.recordings.record import RecordedRecord
from evictstream.streams.replay.departures import Departure, read_event
from evictstream.streams.replay.virtual_partition import MILLISECOND_US


class UpstreamRun:
    """One controller for each cluster. What was recorded about a pod after it was deleted here is left out.

    Attributes:
        departures: what was deleted so far.
    """

    def __init__(self) -> None:
        self.departures: list[Departure] = []
        self._controllers: dict[str, TaintEvictionController] = {}
        self._pods: dict[tuple[str, str], PodEvent] = {}
        self._deleted: set[str] = set()
        self._now_us = 0

    def take(self, record: RecordedRecord) -> None:
        """Take the next record, in order of time; results and signals mean nothing to upstream."""
        self._now_us = max(self._now_us, record.timestamp * MILLISECOND_US)
        event = read_event(record)
        if event is None:
            return
        cluster = (record.key or b"").decode().partition("/")[0]
        if isinstance(event, NodeEvent):
            node, is_gone = event.node, event.type is EventType.DELETED
            self._apply(cluster, NodeGone(self._now_us, node.name) if is_gone else NodeSeen(self._now_us, node))
            return
        pod = event.pod
        if pod.uid in self._deleted:
            return
        self._pods[cluster, f"{pod.namespace}/{pod.name}"] = event
        is_gone = event.type is EventType.DELETED
        self._apply(cluster, PodGone(self._now_us, pod) if is_gone else PodSeen(self._now_us, pod))

    def run_on(self, to_us: int) -> None:
        """Let time pass."""
        self._now_us = max(self._now_us, to_us)
        for cluster, controller in self._controllers.items():
            self._note(cluster, controller.advance(self._now_us))

    def _apply(self, cluster: str, change: Change) -> None:
        controller = self._controllers.get(cluster)
        if controller is None:
            controller = self._controllers[cluster] = TaintEvictionController()
        self._note(cluster, apply(controller, change))

    def _note(self, cluster: str, outcomes: list[Outcome]) -> None:
        for outcome in outcomes:
            if isinstance(outcome, PodDeleted):
                found = Departure(
                    at_us=outcome.at_us,
                    cluster=cluster,
                    pod_uid=outcome.uid,
                    name=outcome.address,
                    node=outcome.node_name,
                )
                self.departures.append(found)
                self._deleted.add(outcome.uid)
                last = self._pods.get((cluster, outcome.address))
                if last is not None:
                    self._apply(cluster, PodGone(self._now_us, last.pod))
