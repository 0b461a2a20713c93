"""Which worker handles a node, and which keys wait for it (semantics.md 6.1).

Kubernetes `pkg/controller/tainteviction/taint_eviction.go`: `hash`, `Run`, `worker`. Everything about one node goes to
one worker, in sequence. Keys wait in a set, so a key that waits already is not added again. The object is read
when its key is handled, so states in between are never seen.
"""

from typing import Final

import msgspec

WORKERS: Final = 8
"""How many workers share the nodes (`UpdateWorkerSize`)."""

_OFFSET_BASIS: Final = 0x811C9DC5
_PRIME: Final = 0x01000193
_MASK: Final = 0xFFFFFFFF


class PodKey(msgspec.Struct, frozen=True, gc=False):
    """The key of a pod: its address (`<namespace>/<name>`) and the node it was bound to when queued; no UID."""

    address: str
    node_name: str


def fnv1a_32(text: str) -> int:
    """Hash text with 32-bit FNV-1a, over its UTF-8 bytes."""
    digest = _OFFSET_BASIS
    for byte in text.encode():
        digest = ((digest ^ byte) * _PRIME) & _MASK
    return digest


def worker_of(node_name: str) -> int:
    """Give the number, from 0, of the worker that handles a node and its pods."""
    return fnv1a_32(node_name) % WORKERS


class WaitingKeys:
    """The keys that wait: nodes by name, and pods; each once, in order of arrival."""

    __slots__ = ("_nodes", "_pods")

    def __init__(self) -> None:
        self._nodes: dict[str, None] = {}
        self._pods: dict[PodKey, None] = {}

    def put_node(self, name: str) -> None:
        """Queue a node, unless it waits already."""
        self._nodes.setdefault(name)

    def put_pod(self, key: PodKey) -> None:
        """Queue a pod, unless it waits already for the same node."""
        self._pods.setdefault(key)

    def take_all(self) -> list[str | PodKey]:
        """Remove all keys and return them in a valid order of handling.

        The order is worker by worker, node keys before pod keys. Upstream's workers run concurrently; since no two of
        them share a node, their order does not matter.
        """
        keys: list[str | PodKey] = []
        for worker in range(WORKERS):
            keys.extend(name for name in self._nodes if worker_of(name) == worker)
            keys.extend(key for key in self._pods if worker_of(key.node_name) == worker)
        self._nodes.clear()
        self._pods.clear()
        return keys
