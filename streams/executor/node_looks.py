"""What the API server has of a node and of its pods, for all evictions of the node that come together.

A node that goes down has a hundred pods to evict. The node is read once a second. Its pods are read by one list, from
the cache of the API server, once several of them are asked for: it costs a fraction of a request for each. The list
may be older than etcd, and so may be what it says of a pod. That is safe where the write has UID and resource version
as preconditions: if the pod has changed since, the write fails, and the next look reads the pod by itself.
"""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable, Mapping
from typing import Final, Generic, TypeVar

from evictstream.models.execution.last_look import SeenNode, SeenPod
from evictstream.models.messages.command import EvictionCommand
from evictstream.streams.errors import ApiUnreachableError
from evictstream.streams.executor.pod_requests import ApiReply, PodRequests

NODE_FRESH_SECONDS: Final = 1.0
"""How long an answer about a node is used: no precondition of a write covers its taints."""

PODS_FRESH_SECONDS: Final = 2.0
"""How long a list of a node's pods is used: 30 of them take a second at 30 deletes a second. What changes meanwhile
costs one more request."""

LISTED_FROM: Final = 3
"""The pods are listed for the third eviction of a node within `PODS_FRESH_SECONDS`. A list of 30 pods costs the API
server as much as three requests for a pod (docs/decisions/048-one-look-for-a-node.md)."""

LONGEST_LOOK_SECONDS: Final = 90.0
"""The longest wait for another thread's answer: longer than any request takes."""

MOST_NODES: Final = 200
"""Nodes whose answers are kept, of the last seconds; beyond it all are dropped. With 110 pods each they take 10 MB."""

_T = TypeVar("_T")


@dataclasses.dataclass(slots=True, eq=False)
class _Shared(Generic[_T]):
    """One request, and its answer for all threads that need it."""

    asked_at: float
    answer: _T | None = None
    error: Exception | None = None
    ended: threading.Event = dataclasses.field(default_factory=threading.Event)


@dataclasses.dataclass(slots=True, eq=False)
class _Node:
    """What is kept of one node."""

    node: _Shared[SeenNode | ApiReply | None] | None = None
    pods: _Shared[Mapping[str, SeenPod] | None] | None = None
    asked_at: list[float] = dataclasses.field(default_factory=list)
    """When its pods were asked for: the last `LISTED_FROM` times."""


class NodeLooks:
    """Looks at nodes and their pods. Used by several threads."""

    def __init__(self, requests: PodRequests, *, lists: bool) -> None:
        """Set `lists` if writes have a resource version as precondition, so that a cached pod will do."""
        self._requests = requests
        self._lists = lists
        self._lock = threading.Lock()
        self._nodes: dict[str, _Node] = {}

    def pod(self, command: EvictionCommand, *, is_first: bool) -> SeenPod | ApiReply | None:
        """Look at the command's pod; None if there is none.

        Args:
            command: names the pod by namespace, name and UID.
            is_first: whether this is the first look of this try; else the pod has changed, and is read by itself.

        Raises:
            KubernetesError: no answer.
        """
        listed = self._listed(command) if self._lists and is_first else None
        return self._requests.pod(command) if listed is None else listed

    def node(self, command: EvictionCommand) -> SeenNode | ApiReply | None:
        """Look at the command's node, not longer ago than `NODE_FRESH_SECONDS`. As `pod`."""
        now = time.monotonic()
        with self._lock:
            kept = self._kept(command.node)
            shared = kept.node
            must_ask = shared is None or now - shared.asked_at >= NODE_FRESH_SECONDS
            if shared is None or must_ask:
                shared = kept.node = _Shared(now)
        if must_ask:
            self._ask(shared, lambda: self._requests.node(command.node))
            if shared.error is not None or isinstance(shared.answer, ApiReply):
                with self._lock:  # the next eviction asks again
                    if kept.node is shared:
                        kept.node = None
        return self._answer(shared, command.node)

    def _listed(self, command: EvictionCommand) -> SeenPod | None:
        """Find the pod in a list of its node's pods; None if there is no list, or another pod has its name."""
        now = time.monotonic()
        with self._lock:
            kept = self._kept(command.node)
            shared = kept.pods
            must_ask = shared is None or now - shared.asked_at >= PODS_FRESH_SECONDS
            if must_ask:
                kept.asked_at = [*(at for at in kept.asked_at if now - at < PODS_FRESH_SECONDS), now][-LISTED_FROM:]
                if len(kept.asked_at) < LISTED_FROM:
                    return None
                shared = kept.pods = _Shared(now)
        assert shared is not None  # noqa: S101 - it was there, or was made
        if must_ask:
            self._ask(shared, lambda: self._requests.pods_of(command.node))
        pods = self._answer(shared, command.node)
        return None if pods is None else pods.get(command.pod_uid)

    def _kept(self, node: str) -> _Node:
        kept = self._nodes.get(node)
        if kept is None:
            if len(self._nodes) >= MOST_NODES:
                self._nodes.clear()
            kept = self._nodes[node] = _Node()
        return kept

    @staticmethod
    def _ask(shared: _Shared[_T], ask: Callable[[], _T]) -> None:
        try:
            shared.answer = ask()
        except Exception as error:  # noqa: BLE001 - raised again in each thread that waits
            shared.error = error
        finally:
            shared.ended.set()

    def _answer(self, shared: _Shared[_T], node: str) -> _T | None:
        if not shared.ended.wait(LONGEST_LOOK_SECONDS):
            raise ApiUnreachableError(host=self._requests.host, reason=f"no answer about the node {node}")
        if shared.error is not None:
            raise shared.error
        return shared.answer
