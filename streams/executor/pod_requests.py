"""The requests of one eviction to the API server, each with the pod's UID as precondition."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime as dt
from collections.abc import Callable
from typing import Any, Final, TypeVar
from urllib.parse import quote

import msgspec

from evictstream.models.execution.api_answers import Meaning, read_api_answer
from evictstream.models.execution.last_look import SeenNode, SeenPod, read_seen_node, read_seen_pod
from evictstream.models.kubernetes.shapes import DISRUPTION_TARGET
from evictstream.models.messages.command import EvictionCommand
from evictstream.models.messages.envelope import DECODE_ERRORS
from evictstream.streams.errors import ApiRefusedError
from evictstream.streams.kubernetes.connection import ApiAnswer, Connection

LARGEST_LIST_BYTES: Final = 16_777_216
"""Of a list of a node's pods: 110 pods of 150 KB. A node with more is looked at pod by pod."""

_CONDITION_REASON: Final = "DeletionByTaintManager"
"""As upstream (pkg/controller/tainteviction/taint_eviction.go), so that Job controllers treat both the same."""

_CONDITION_MESSAGE: Final = "Taint manager: deleting due to NoExecute taint"

_T = TypeVar("_T")


class _PodList(msgspec.Struct, gc=False):
    items: list[msgspec.Raw]


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


_lists: Final = msgspec.json.Decoder(_PodList)


class PodRequests:
    """Reads pods and nodes, marks and deletes pods. Used by several threads."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @property
    def host(self) -> str:
        """The API server's address, for people."""
        return self._connection.host

    def pod(self, command: EvictionCommand) -> SeenPod | ApiReply | None:
        """Read the pod with the command's namespace and name from etcd; None if there is none.

        Returns an `ApiReply` for any other answer.

        Raises:
            KubernetesError: no answer.
        """
        return self._read(_pod_path(command), read_seen_pod, plural="pods", name=command.pod)

    def node(self, name: str) -> SeenNode | ApiReply | None:
        """Read a node from etcd. As `pod`."""
        return self._read(f"/api/v1/nodes/{quote(name, safe='')}", read_seen_node, plural="nodes", name=name)

    def pods_of(self, node: str) -> dict[str, SeenPod] | None:
        """List the pods of a node from the API server's cache, by UID.

        The cache has an index by node, and may be behind etcd. Pods that cannot be read are left out.

        Returns:
            None if the API server refuses, or the list is too large or malformed: then each pod is read by itself.

        Raises:
            KubernetesError: no answer.
        """
        query = {"fieldSelector": f"spec.nodeName={node}", "resourceVersion": "0"}
        text = bytearray()
        try:
            with self._connection.arriving("/api/v1/pods", query) as pieces:
                for piece in pieces:
                    text += piece
                    if len(text) > LARGEST_LIST_BYTES:
                        return None
            items = _lists.decode(text).items
        except (ApiRefusedError, *DECODE_ERRORS):
            return None
        pods: dict[str, SeenPod] = {}
        for item in items:
            with contextlib.suppress(*DECODE_ERRORS):
                pod = read_seen_pod(bytes(item))
                pods[pod.uid] = pod
        return pods

    def mark(self, command: EvictionCommand, seen: SeenPod, *, send_until: Callable[[], float]) -> ApiReply:
        """Set the condition `DisruptionTarget`, so that a Job does not count its pod as failed.

        Raises:
            NotSentError: it was not sent before the monotonic second that `send_until` returns directly before.
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

    def delete(self, command: EvictionCommand, resource_version: str, *, send_until: Callable[[], float]) -> ApiReply:
        """Delete the pod in the version of the last look, with its own grace period.

        Raises: as `mark`.
        """
        preconditions = {"uid": command.pod_uid, "resourceVersion": resource_version}
        body = _delete_options(preconditions)
        return self._write(command, "DELETE", _pod_path(command), body=body, send_until=send_until)

    def evict(self, command: EvictionCommand, *, send_until: Callable[[], float]) -> ApiReply:
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
        return read_reply(self._connection.send(method, path, **more), plural="pods", name=command.pod)

    def _read(self, path: str, read: Callable[[bytes], _T], *, plural: str, name: str) -> _T | ApiReply | None:
        reply = read_reply(self._connection.send("GET", path), plural=plural, name=name)
        if reply.meaning is Meaning.GONE:
            return None
        return self._decoded(read, reply) if reply.meaning is Meaning.DONE else reply

    @staticmethod
    def _decoded(read: Callable[[bytes], _T], reply: ApiReply) -> _T | ApiReply:
        try:
            return read(reply.body)
        except msgspec.DecodeError as error:  # the object comes from the API server, and is malformed
            return dataclasses.replace(reply, meaning=Meaning.OBJECT_WAITS, text=f"it cannot be read: {error}")


def read_reply(answer: ApiAnswer, *, plural: str, name: str) -> ApiReply:
    """Read the answer to a request for one object."""
    wait = answer.retry_after_seconds
    reading = read_api_answer(answer.status, answer.body, plural=plural, name=name, has_retry_after=wait is not None)
    return ApiReply(meaning=reading.meaning, text=reading.text, body=answer.body, retry_after_seconds=wait)


def _delete_options(preconditions: dict[str, str]) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions}


def _pod_path(command: EvictionCommand) -> str:
    return f"/api/v1/namespaces/{quote(command.namespace, safe='')}/pods/{quote(command.pod, safe='')}"
