"""Node leases: those of the API server, and the controller's cache of them, which may be behind.

Sources: `pkg/controller/nodelifecycle/node_lifecycle_controller.go` (`tryUpdateNodeHealth`) and
`pkg/controller/util/consistency/consistency.go` (`WroteAt`, `EnsureReady`), both of Kubernetes 1.37. Versions are
numbers, as resource versions are: each write of any lease takes the next one.
"""

import dataclasses
import enum


@dataclasses.dataclass(frozen=True, slots=True)
class NodeLease:
    """A node's lease, as far as it is read.

    Attributes:
        renewed_at_us: `spec.renewTime`, by the node's clock.
        version: `metadata.resourceVersion`.
    """

    renewed_at_us: int
    version: int = 0


class LiveLease(enum.StrEnum):
    """What a live read of a silent node's lease means for the node."""

    AS_REMEMBERED = "as remembered"
    """The lease is that of the last heartbeat, or there is none: the node is judged."""
    ANOTHER = "another"
    """The lease has another version: nothing is judged until the cache has it, and not this node in this round."""
    UNREAD = "unread"
    """The read failed: this node is not judged in this round."""


class WatchedLeases:
    """The leases of all nodes, by name.

    Attributes:
        is_cache_behind: whether the cache gets no events for now, as with a watch that hangs. `catch_up` ends it.
        fail: whether live reads fail.
    """

    def __init__(self) -> None:
        self.is_cache_behind = False
        self.fail = False
        self._live: dict[str, NodeLease] = {}
        self._cached: dict[str, NodeLease] = {}
        self._version = 0
        self._cached_version = 0
        self._awaited_version = 0

    def put(self, name: str, renewed_at_us: int) -> None:
        """Write a lease, which gets the next version; the cache has it at once, unless it is behind."""
        self._version += 1
        self._live[name] = NodeLease(renewed_at_us, self._version)
        if not self.is_cache_behind:
            self._cached[name] = self._live[name]
            self._cached_version = self._version

    def delete(self, name: str) -> None:
        """Delete a lease, if there is one."""
        if self._live.pop(name, None) is not None:
            self._version += 1
            if not self.is_cache_behind:
                del self._cached[name]
                self._cached_version = self._version

    def catch_up(self) -> None:
        """Let the cache have all leases as they are now."""
        self.is_cache_behind = False
        self._cached = dict(self._live)
        self._cached_version = self._version

    def cached(self, name: str) -> NodeLease | None:
        """Return the lease as the cache has it."""
        return self._cached.get(name)

    @property
    def are_awaited(self) -> bool:
        """Whether the cache has to catch up with what a live read has found (`EnsureReady`)."""
        return self._awaited_version > self._cached_version

    def look(self, name: str, remembered: NodeLease | None) -> LiveLease:
        """Compare the live lease with that of the last heartbeat; the request has been answered.

        A lease that was changed without a later renewal is another one too: no heartbeat, but another version.
        """
        if self.fail:
            return LiveLease.UNREAD
        live = self._live.get(name)
        if live is None or (remembered is not None and live.version == remembered.version):
            return LiveLease.AS_REMEMBERED
        self._awaited_version = max(self._awaited_version, live.version)
        return LiveLease.ANOTHER
