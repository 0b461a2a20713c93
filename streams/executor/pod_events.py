"""Kubernetes Events about evictions: best effort, in a thread of their own, without delay for evictions.

A pod has an Event of its own as long as few are written. In a storm they would be a quarter of all requests, so the
evictions beyond that rate are counted by node, and the node has an Event that says how many and which.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import functools
import queue
import threading
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import msgspec
import structlog

from evictstream.models.kubernetes.taints import taint_text
from evictstream.models.messages.command import EvictionCommand
from evictstream.models.messages.vocabulary import Action
from evictstream.streams.errors import KubernetesError
from evictstream.streams.executor.rate_limit import RateLimit
from evictstream.streams.kubernetes.connection import Connection

log = structlog.get_logger(__name__)

MOST_QUEUED: Final = 1_000
"""Events that wait; more are dropped and counted. An outage of the API server must not cost memory."""

MOST_KEPT: Final = 4_096
"""Events that are remembered, so that a repeat raises a count instead of a new Event. As many as client-go keeps."""

EVENTS_A_SECOND: Final = 2.0
FIRST_EVENTS: Final = 50
"""Events of pods that are written in a second, after a burst. 2 are a twentieth of what an API server deletes in a
storm; 50 are an Event for each pod of a node that goes down by itself."""

SUM_SECONDS: Final = 5.0
"""How long the evictions of a node are counted before its Event is written."""

MOST_SUMS: Final = 1_000
"""Nodes whose evictions are being counted; those of further nodes are dropped."""

MOST_NAMED_PODS: Final = 5
"""Pods that the Event of a node names."""

COMPONENT: Final = "evictstream"

_NODE_EVENTS: Final = "default"
"""The namespace of Events about nodes, as upstream's."""

_OBSERVED: Final = "TaintEvictionObserved"


class _Words(NamedTuple):
    """The reason of an Event, and what its message begins with."""

    reason: str
    verb: str


_ACTING: Final = {
    Action.EVICT: _Words("TaintManagerEviction", "Evicts"),  # as upstream
    Action.SCHEDULE: _Words("TaintEvictionScheduled", "Will evict"),
    Action.CANCEL: _Words("TaintEvictionCancelled", "Does not evict"),
}
_OBSERVING: Final = {
    Action.EVICT: _Words(_OBSERVED, "Would evict"),
    Action.SCHEDULE: _Words(_OBSERVED, "Would evict"),
    Action.CANCEL: _Words(_OBSERVED, "Would not evict"),
}


@dataclasses.dataclass(slots=True, eq=False)
class _NodeSum:
    """The evictions of a node that have no Event of their own.

    Attributes:
        first: the first command.
        due_at: when the Event is written, monotonic seconds.
        count: how many.
        named: the first pods, by namespace and name.
    """

    first: EvictionCommand
    due_at: float
    count: int = 0
    named: list[str] = dataclasses.field(default_factory=list)

    def add(self, command: EvictionCommand) -> None:
        self.count += 1
        if len(self.named) < MOST_NAMED_PODS:
            self.named.append(f"{command.namespace}/{command.pod}")

    def message(self, verb: str) -> str:
        """Say what `verb` says of all of them."""
        more = f" and {self.count - len(self.named)} more" if self.count > len(self.named) else ""
        taint = f"the taint {taint_text(self.first.reason.taint)}"
        return f"{verb} {self.count} pods, the first for {taint}: {', '.join(self.named)}{more}"


class PodEvents(threading.Thread):
    """Writes Events of one cluster.

    Attributes:
        written: how many.
        counted: evictions that the Event of their node counts.
        dropped: how many were not written, because too many waited or the API server refused them.
    """

    def __init__(self, cluster: str, connection: Connection, *, observes: bool = False) -> None:
        """`observes` says only what would be done, and needs no right but to create Events."""
        super().__init__(name=f"{cluster} events", daemon=True)
        self.written = 0
        self.counted = 0
        self.dropped = 0
        self._cluster = cluster
        self._connection = connection
        self._observes = observes
        self._words = _OBSERVING if observes else _ACTING
        self._queue: queue.Queue[EvictionCommand | None] = queue.Queue(MOST_QUEUED)
        self._limit = RateLimit(rate=EVENTS_A_SECOND, burst=FIRST_EVENTS, now=time.monotonic())
        self._sums: dict[tuple[str, Action], _NodeSum] = {}  # by node; the first is due first
        self._written: OrderedDict[tuple[str, str], tuple[str, int]] = OrderedDict()  # name and count of an Event

    def add(self, command: EvictionCommand) -> None:
        """Queue an Event: a pod is evicted, will be evicted, or will no longer be. Returns at once."""
        try:
            self._queue.put_nowait(command)
        except queue.Full:
            self.dropped += 1

    def stop(self) -> None:
        """Write no more Events."""
        while True:
            try:
                self._queue.put_nowait(None)
            except queue.Full:
                self._queue.get_nowait()
            else:
                return

    def run(self) -> None:
        """Write one Event after the other."""
        while True:
            try:
                command = self._queue.get(timeout=self._pause_seconds())
            except queue.Empty:
                self._write_sums()
                continue
            if command is None:
                return
            if self._limit.wait_seconds(time.monotonic()) > 0:
                self._count(command)
            else:
                self._limit.spend()
                self._try(functools.partial(self._write, command))
            self._write_sums()

    def _pause_seconds(self) -> float | None:
        first = next(iter(self._sums.values()), None)
        return None if first is None else max(0.0, first.due_at - time.monotonic())

    def _count(self, command: EvictionCommand) -> None:
        place = (command.node, command.action)
        found = self._sums.get(place)
        if found is None:
            if len(self._sums) >= MOST_SUMS:
                self.dropped += 1
                return
            found = self._sums[place] = _NodeSum(command, time.monotonic() + SUM_SECONDS)
        found.add(command)
        self.counted += 1

    def _write_sums(self) -> None:
        now = time.monotonic()
        for place in [place for place, found in self._sums.items() if found.due_at <= now]:
            self._try(functools.partial(self._write_sum, self._sums.pop(place)))

    def _try(self, write: Callable[[], bool]) -> None:
        try:
            if write():
                self.written += 1
                return
        except KubernetesError as error:
            log.debug("Event was not written", cluster=self._cluster, error=str(error))
        self.dropped += 1

    def _write_sum(self, found: _NodeSum) -> bool:
        command = found.first
        about = {"apiVersion": "v1", "kind": "Node", "name": command.node, "uid": command.node_uid or command.node}
        words = self._words[command.action]
        message = found.message(words.verb)
        event = _event(about, words.reason, name=command.node, namespace=_NODE_EVENTS, message=message)
        event["count"] = found.count
        return self._connection.send("POST", f"/api/v1/namespaces/{_NODE_EVENTS}/events", body=event).is_done

    def _write(self, command: EvictionCommand) -> bool:
        words = self._words[command.action]
        message = _message(command, words.verb)
        path = f"/api/v1/namespaces/{quote(command.namespace, safe='')}/events"
        key = (command.pod_uid, words.reason)
        earlier = self._written.pop(key, None)
        if earlier is not None:
            name, count = earlier[0], earlier[1] + 1
            change = {"count": count, "lastTimestamp": _now(), "message": message}
            answer = self._connection.send(
                "PATCH", f"{path}/{quote(name, safe='')}", body=change, content_type="application/merge-patch+json"
            )
            if answer.is_done:
                self._keep(key, name, count)
                return True
        about = {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": command.namespace,
            "name": command.pod,
            "uid": command.pod_uid,
        }
        event = _event(about, words.reason, name=command.pod, namespace=command.namespace, message=message)
        answer = self._connection.send("POST", path, body=event)
        if answer.is_done and not self._observes:
            self._keep(key, event["metadata"]["name"], 1)
        return answer.is_done

    def _keep(self, key: tuple[str, str], name: str, count: int) -> None:
        self._written[key] = (name, count)
        if len(self._written) > MOST_KEPT:
            self._written.popitem(last=False)


def _event(about: dict[str, str], reason: str, *, name: str, namespace: str, message: str) -> dict[str, Any]:
    now = _now()
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{name}.{uuid.uuid4().hex[:16]}", "namespace": namespace},
        "involvedObject": about,
        "type": "Normal",
        "reason": reason,
        "message": message,
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }


def _now() -> str:
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _message(command: EvictionCommand, verb: str) -> str:
    taint = f"taint {taint_text(command.reason.taint)} of node {command.node}"
    toleration = command.reason.toleration
    why = f"{taint} is not tolerated"
    if toleration is not None:
        text = msgspec.json.encode(toleration).decode()
        why = f"{taint}, tolerated by {text} since {command.window_start}, deadline {command.deadline}"
    match command.action:
        case Action.EVICT:
            return f"{verb} the pod: {why}"
        case Action.SCHEDULE:
            return f"{verb} the pod at {command.deadline}: {why}"
        case Action.CANCEL:
            return f"{verb} the pod ({command.reason.verdict}): {taint}"
