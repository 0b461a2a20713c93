"""Kubernetes Events about evictions: best effort, in a thread of their own, without delay for evictions."""

from __future__ import annotations

import datetime as dt
import queue
import threading
import uuid
from collections import OrderedDict
from typing import Any, Final
from urllib.parse import quote

import msgspec
import structlog

from evictstream.models.kubernetes.taints import taint_text
from evictstream.models.messages.command import EvictionCommand
from evictstream.models.messages.vocabulary import Action
from evictstream.streams.errors import KubernetesError
from evictstream.streams.kubernetes.connection import Connection

log = structlog.get_logger(__name__)

MOST_QUEUED: Final = 1_000
"""Events that wait; more are dropped and counted. An outage of the API server must not cost memory."""

MOST_KEPT: Final = 4_096
"""Events that are remembered, so that a repeat raises a count instead of a new Event. As many as client-go keeps."""

COMPONENT: Final = "evictstream"

_REASONS: Final = {
    Action.EVICT: "TaintManagerEviction",  # as upstream
    Action.SCHEDULE: "TaintEvictionScheduled",
    Action.CANCEL: "TaintEvictionCancelled",
}


class PodEvents(threading.Thread):
    """Writes Events of one cluster.

    Attributes:
        written: how many.
        dropped: how many were not written, because too many waited or the API server refused them.
    """

    def __init__(self, cluster: str, connection: Connection) -> None:
        super().__init__(name=f"{cluster} events", daemon=True)
        self.written = 0
        self.dropped = 0
        self._cluster = cluster
        self._connection = connection
        self._queue: queue.Queue[tuple[EvictionCommand, str] | None] = queue.Queue(MOST_QUEUED)
        self._written: OrderedDict[tuple[str, str], tuple[str, int]] = OrderedDict()  # name and count of an Event

    def add(self, command: EvictionCommand) -> None:
        """Queue an Event: a pod is evicted, will be evicted, or will no longer be. Returns at once."""
        try:
            self._queue.put_nowait((command, _message(command)))
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
        while (queued := self._queue.get()) is not None:
            try:
                if self._write(*queued):
                    self.written += 1
                    continue
            except KubernetesError as error:
                log.debug("Event was not written", cluster=self._cluster, error=str(error))
            self.dropped += 1

    def _write(self, command: EvictionCommand, message: str) -> bool:
        path = f"/api/v1/namespaces/{quote(command.namespace, safe='')}/events"
        key = (command.pod_uid, _REASONS[command.action])
        now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        earlier = self._written.pop(key, None)
        if earlier is not None:
            name, count = earlier[0], earlier[1] + 1
            change = {"count": count, "lastTimestamp": now, "message": message}
            answer = self._connection.send(
                "PATCH", f"{path}/{quote(name, safe='')}", body=change, content_type="application/merge-patch+json"
            )
            if answer.is_done:
                self._keep(key, name, count)
                return True
        name = f"{command.pod}.{uuid.uuid4().hex[:16]}"
        answer = self._connection.send("POST", path, body=_event(command, name, message, now))
        if answer.is_done:
            self._keep(key, name, 1)
        return answer.is_done

    def _keep(self, key: tuple[str, str], name: str, count: int) -> None:
        self._written[key] = (name, count)
        if len(self._written) > MOST_KEPT:
            self._written.popitem(last=False)


def _event(command: EvictionCommand, name: str, message: str, now: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": command.namespace},
        "involvedObject": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": command.namespace,
            "name": command.pod,
            "uid": command.pod_uid,
        },
        "type": "Normal",
        "reason": _REASONS[command.action],
        "message": message,
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }


def _message(command: EvictionCommand) -> str:
    taint = f"taint {taint_text(command.reason.taint)} of node {command.node}"
    toleration = command.reason.toleration
    why = f"{taint} is not tolerated"
    if toleration is not None:
        text = msgspec.json.encode(toleration).decode()
        why = f"{taint}, tolerated by {text} since {command.window_start}, deadline {command.deadline}"
    match command.action:
        case Action.EVICT:
            return f"Evicts the pod: {why}"
        case Action.SCHEDULE:
            return f"Will evict the pod at {command.deadline}: {why}"
        case Action.CANCEL:
            return f"Does not evict the pod ({command.reason.verdict}): {taint}"
