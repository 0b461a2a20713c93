"""The requests of one eviction to the API server, each with the pod's UID as precondition."""

from __future__ import annotations

import dataclasses
import datetime as dt
import threading
import time
from collections.abc import Callable
from typing import Any, Final, TypeVar
from urllib.parse import quote

import msgspec

from evictstream.models.execution.api_answers import Meaning, read_api_answer
from evictstream.models.execution.last_look import DISRUPTION_TARGET, SeenNode, SeenPod, read_seen_node, read_seen_pod
from evictstream.models.messages.command import EvictionCommand
from evictstream.streams.errors import ApiUnreachableError
from evictstream.streams.kubernetes.connection import ApiAnswer, Connection

NODE_FRESH_SECONDS: Final = 1.0
"""How long an answer about a node is used for its other pods; else its hundred pods would be a hundred requests."""

LONGEST_LOOK_SECONDS: Final = 90.0
"""The longest wait for another thread's request for the node: longer than any request takes."""

MOST_NODES: Final = 1_000
"""Answers that are kept; beyond it all are dropped. These are the nodes of one second, not of the cluster."""

_CONDITION_REASON: Final = "DeletionByTaintManager"
"""As upstream (pkg/controller/tainteviction/taint_eviction.go), so that Job controllers treat both the same."""

_CONDITION_MESSAGE: Final = "Taint manager: deleting due to NoExecute taint"

_T = TypeVar("_T")


@dataclasses.dataclass(slots=True, kw_only=True, eq=False)
class _NodeLook:
    """One request for a node, and its answer for all threads that need it."""

    asked_at: float
    node: SeenNode | ApiReply | None = None
    error: Exception | None = None
    ended: threading.Event = dataclasses.field(default_factory=threading.Event)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ApiReply:
    """The answer to one request.

    Attributes:
        meaning: of the answer.
        text: of the answer, for people.
        body: of the answer.
        retry_after_seconds: from the header `Retry-After`; None without.
    """

    meaning: Meaning
    text: str
    body: bytes = b""
    retry_after_seconds: float | None = None


class PodRequests:
    """Reads pods and nodes, marks and deletes pods. Used by several threads."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._nodes: dict[str, _NodeLook] = {}

    def pod(self, command: EvictionCommand) -> SeenPod | ApiReply | None:
        """Read the pod with the command's namespace and name from etcd; None if there is none.

        Returns an `ApiReply` for any other answer.

        Raises:
            KubernetesError: no answer.
        """
        return self._read(_pod_path(command), read_seen_pod, plural="pods", name=command.pod)

    def node(self, command: EvictionCommand) -> SeenNode | ApiReply | None:
        """Read the node with the command's node name, not older than `NODE_FRESH_SECONDS`. As `pod`."""
        now = time.monotonic()
        with self._lock:
            look = self._nodes.get(command.node)
            must_ask = look is None or now - look.asked_at >= NODE_FRESH_SECONDS
            if look is None or must_ask:
                if len(self._nodes) >= MOST_NODES:
                    self._nodes.clear()
                look = self._nodes[command.node] = _NodeLook(asked_at=now)
        if must_ask:
            self._ask(look, command.node)
        elif not look.ended.wait(LONGEST_LOOK_SECONDS):
            raise ApiUnreachableError(host=self._connection.host, reason=f"no answer about the node {command.node}")
        if look.error is not None:
            raise look.error
        return look.node

    def _ask(self, look: _NodeLook, name: str) -> None:
        path = f"/api/v1/nodes/{quote(name, safe='')}"
        try:
            look.node = self._read(path, read_seen_node, plural="nodes", name=name)
        except Exception as error:  # noqa: BLE001 - raised again in each thread that waits
            look.error = error
        finally:
            if look.error is not None or isinstance(look.node, ApiReply):
                with self._lock:
                    if self._nodes.get(name) is look:
                        del self._nodes[name]
            look.ended.set()

    def mark(self, command: EvictionCommand, seen: SeenPod, *, send_until: float) -> ApiReply:
        """Set the condition `DisruptionTarget`, so that a Job does not count its pod as failed.

        Raises:
            NotSentError: it was not sent before the monotonic second `send_until`.
            ApiUnreachableError: no answer.
            KubernetesError: no credentials, or another cluster answers.
        """
        condition = {
            "type": DISRUPTION_TARGET,
            "status": "True",
            "reason": _CONDITION_REASON,
            "message": _CONDITION_MESSAGE,
            "lastTransitionTime": dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        return self._write(
            command,
            "PATCH",
            f"{_pod_path(command)}/status",
            body={
                "metadata": {"uid": command.pod_uid, "resourceVersion": seen.resource_version},
                "status": {"conditions": [condition]},
            },
            content_type="application/strategic-merge-patch+json",
            send_until=send_until,
        )

    def delete(self, command: EvictionCommand, resource_version: str, *, send_until: float) -> ApiReply:
        """Delete the pod in the version of the last look, with its own grace period.

        Raises: as `mark`.
        """
        preconditions = {"uid": command.pod_uid, "resourceVersion": resource_version}
        body = _delete_options(preconditions)
        return self._write(command, "DELETE", _pod_path(command), body=body, send_until=send_until)

    def evict(self, command: EvictionCommand, *, send_until: float) -> ApiReply:
        """Request its eviction, which a disruption budget may refuse. The API server sets `DisruptionTarget` itself.

        Raises: as `mark`.
        """
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"namespace": command.namespace, "name": command.pod},
            "deleteOptions": _delete_options({"uid": command.pod_uid}),
        }
        return self._write(command, "POST", f"{_pod_path(command)}/eviction", body=eviction, send_until=send_until)

    def marked_version(self, reply: ApiReply) -> str | ApiReply:
        """Read the pod's resource version from the answer to `mark`."""
        pod = self._decoded(read_seen_pod, reply)
        return pod if isinstance(pod, ApiReply) else pod.resource_version

    def _write(self, command: EvictionCommand, method: str, path: str, **more: Any) -> ApiReply:
        return _reply(self._connection.send(method, path, **more), plural="pods", name=command.pod)

    def _read(self, path: str, read: Callable[[bytes], _T], *, plural: str, name: str) -> _T | ApiReply | None:
        reply = _reply(self._connection.send("GET", path), plural=plural, name=name)
        if reply.meaning is Meaning.GONE:
            return None
        return self._decoded(read, reply) if reply.meaning is Meaning.DONE else reply

    @staticmethod
    def _decoded(read: Callable[[bytes], _T], reply: ApiReply) -> _T | ApiReply:
        try:
            return read(reply.body)
        except msgspec.DecodeError as error:  # the object comes from the API server, and is malformed
            return dataclasses.replace(reply, meaning=Meaning.OBJECT_WAITS, text=f"it cannot be read: {error}")


def _reply(answer: ApiAnswer, *, plural: str, name: str) -> ApiReply:
    wait = answer.retry_after_seconds
    reading = read_api_answer(answer.status, answer.body, plural=plural, name=name, has_retry_after=wait is not None)
    return ApiReply(meaning=reading.meaning, text=reading.text, body=answer.body, retry_after_seconds=wait)


def _delete_options(preconditions: dict[str, str]) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions}


def _pod_path(command: EvictionCommand) -> str:
    return f"/api/v1/namespaces/{quote(command.namespace, safe='')}/pods/{quote(command.pod, safe='')}"
