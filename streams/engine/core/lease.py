"""The lease: proof that the group has lately counted this worker as a member, so that it may fire.

The lease is not what keeps two owners apart. Peers remove a worker that is silent for 1.5 s
(`engine.kafka.group_beats`), so another one may own a partition while this lease is valid. Fencing decides: a new owner
fences before it reads, and brokers refuse all that the old one commits from then on. What that one has committed before
is in the rows that the new owner reads. The lease ends useless work where a worker was paused or cut off for longer.

The coordinator itself gives a member's partitions to others once its session has timed out, counted from the last
request that it accepted. A commit of group offsets is such a request: the coordinator checks member and generation and
restarts the session, exactly as for a heartbeat, and the client's public interface tells of its success. So commits run
every second and renew the lease from the moment they were *sent*. The lease is valid for the session timeout less a
margin. A worker that was paused, cut off or thrown out finds it expired and fires nothing.
"""

from __future__ import annotations

from collections.abc import Callable


class Lease:
    """How long ago the group confirmed this worker, by the monotonic clock. It begins expired."""

    __slots__ = ("_confirmed_at", "_monotonic", "valid_seconds")

    def __init__(
        self, monotonic: Callable[[], float], *, session_timeout_seconds: float, margin_seconds: float
    ) -> None:
        self._monotonic = monotonic
        self.valid_seconds = session_timeout_seconds - margin_seconds
        self._confirmed_at = float("-inf")

    def renew(self, asked_at: float) -> None:
        """Note that the group has confirmed a request that was sent at `asked_at` (monotonic seconds)."""
        self._confirmed_at = max(self._confirmed_at, asked_at)

    def drop(self) -> None:
        """Forget all confirmations: a rebalance has begun."""
        self._confirmed_at = float("-inf")

    @property
    def age_seconds(self) -> float:
        """Seconds since the confirmed request was sent; infinite when there was none."""
        return self._monotonic() - self._confirmed_at

    @property
    def valid(self) -> bool:
        """Whether the session cannot have timed out yet."""
        return self.age_seconds < self.valid_seconds

    def confirmed_after(self, moment: float) -> bool:
        """Whether the group has confirmed a request that was sent after `moment` (monotonic seconds)."""
        return self._confirmed_at > moment
