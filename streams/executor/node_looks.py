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


class _SharedAnswers(Generic[_T]):
    """The newest answer about each node. The next eviction asks again after an error, or a reply without an object."""

    def __init__(self, host: str, fresh_seconds: float) -> None:
        self._host = host
        self._fresh_seconds = fresh_seconds
        self._lock = threading.Lock()
        self._by_node: dict[str, _Shared[_T]] = {}

    def __len__(self) -> int:
        return len(self._by_node)

    def is_fresh(self, node: str) -> bool:
        """Whether there is an answer, or one is on its way."""
        shared = self._by_node.get(node)
        return shared is not None and time.monotonic() - shared.asked_at < self._fresh_seconds

    def get(self, node: str, ask: Callable[[], _T]) -> _T | None:
        """Give the answer; `ask` is called by one thread, while the others wait for it."""
        with self._lock:
            shared = self._by_node.get(node) if self.is_fresh(node) else None
            must_ask = shared is None
            if shared is None:
                if len(self._by_node) >= MOST_NODES:
                    self._by_node.clear()
                shared = self._by_node[node] = _Shared(time.monotonic())
        if must_ask:
            self._ask(node, shared, ask)
        elif not shared.ended.wait(LONGEST_LOOK_SECONDS):
            raise ApiUnreachableError(host=self._host, reason=f"no answer about the node {node}")
        if shared.error is not None:
            raise shared.error
        return shared.answer

    def _ask(self, node: str, shared: _Shared[_T], ask: Callable[[], _T]) -> None:
        try:
            shared.answer = ask()
        except Exception as error:  # noqa: BLE001 - raised again in each thread that waits
            shared.error = error
        finally:
            if shared.error is not None or isinstance(shared.answer, ApiReply):
                with self._lock:
                    if self._by_node.get(node) is shared:
                        del self._by_node[node]
            shared.ended.set()


class NodeLooks:
    """Looks at nodes and their pods. Used by several threads."""

    def __init__(self, requests: PodRequests, *, lists: bool) -> None:
        """Set `lists` if writes have a resource version as precondition, so that a cached pod will do."""
        self._requests = requests
        self._lists = lists
        self._nodes = _SharedAnswers[SeenNode | ApiReply | None](requests.host, NODE_FRESH_SECONDS)
        self._pods = _SharedAnswers[Mapping[str, SeenPod] | None](requests.host, PODS_FRESH_SECONDS)
        self._lock = threading.Lock()
        self._asked_at: dict[str, list[float]] = {}  # by node: the last times at which one of its pods was asked for

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
        return self._nodes.get(command.node, lambda: self._requests.node(command.node))

    def _listed(self, command: EvictionCommand) -> SeenPod | None:
        """Find the pod in a list of its node's pods; None if there is no list, or it has no pod with this UID."""
        if not (self._pods.is_fresh(command.node) or self._is_worth_listing(command.node)):
            return None
        pods = self._pods.get(command.node, lambda: self._requests.pods_of(command.node))
        return None if pods is None else pods.get(command.pod_uid)

    def _is_worth_listing(self, node: str) -> bool:
        """Note that one of a node's pods is asked for; returns whether so many were lately."""
        now = time.monotonic()
        with self._lock:
            if len(self._asked_at) >= MOST_NODES and node not in self._asked_at:
                self._asked_at.clear()
            recent = [at for at in self._asked_at.get(node, ()) if now - at < PODS_FRESH_SECONDS]
            self._asked_at[node] = [*recent, now][-LISTED_FROM:]
            return len(self._asked_at[node]) == LISTED_FROM
