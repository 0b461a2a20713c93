"""How a feed or an executor behaves as a process; the same for both."""

from __future__ import annotations

import dataclasses

from evictstream.kit.conformance.findings import Finding, broken, held, not_shown


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ProcessEvidence:
    """What became of the process.

    Attributes:
        is_ours: whether the kit has started it, and so could kill, start and stop it.
        ended_by_itself: how it ended without a request.
        stop_seconds: how long it took to end after SIGTERM; None if it did not.
    """

    is_ours: bool = True
    ended_by_itself: str = ""
    stop_seconds: float | None = None

    def stays(self) -> Finding:
        """Judge whether it went on until it was stopped."""
        if not self.is_ours:
            return not_shown("the kit has not started it")
        return broken(f"it ended by itself: {self.ended_by_itself}") if self.ended_by_itself else held("it ran")

    def stops(self) -> Finding:
        """Judge whether SIGTERM ended it."""
        if not self.is_ours or self.ended_by_itself:
            return not_shown("the kit has not stopped it")
        if self.stop_seconds is None:
            return broken("it had to be killed")
        return held(f"after {self.stop_seconds:.1f} s")
