"""The lease: proof, not older than a margin under the session timeout, that the group counts us as a member.

The broker gives our partitions to others once the session has timed out, counted from the last request of
ours that it accepted. A commit of group offsets is such a request: the coordinator checks member and
generation and restarts the session, exactly as for a heartbeat, and its success is visible to us through the
client's public interface. So commits run every second and renew the lease from the moment they were *sent*.
A worker that was paused, cut off or thrown out finds the lease expired and fires nothing.
"""

from __future__ import annotations

from collections.abc import Callable


class Lease:
    """How long ago the group confirmed us, on the monotonic clock."""

    __slots__ = ("_confirmed_at", "_monotonic", "valid_seconds")

    def __init__(
        self, monotonic: Callable[[], float], *, session_timeout_seconds: float, margin_seconds: float
    ) -> None:
        self._monotonic = monotonic
        self.valid_seconds = session_timeout_seconds - margin_seconds
        self._confirmed_at = float("-inf")

    def renew(self, asked_at: float) -> None:
        """Note a confirmed request that was sent at ``asked_at`` (``time.monotonic``)."""
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
        """Whether firing is allowed as far as ownership goes."""
        return self.age_seconds < self.valid_seconds

    def confirmed_after(self, moment: float) -> bool:
        """Whether the group has confirmed us by a request sent after ``moment`` (``time.monotonic``)."""
        return self._confirmed_at > moment
