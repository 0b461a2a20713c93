"""Runs the node lifecycle controller at upstream's times (semantics.md 7.2 and 8.1)."""

from evictstream.models.upstream.lifecycle.changes import Change
from evictstream.models.upstream.lifecycle.controller import NodeLifecycle
from evictstream.models.upstream.lifecycle.settings import NO_EXECUTE_PASS_PERIOD_US


class LifecycleClock:
    """A virtual clock: a round every monitor period and a NoExecute pass every 100 ms, both from the start on.

    Where both fall on one instant the round comes first, so that the pass handles the nodes that it queues. Upstream
    runs both concurrently, and a round takes a little time, so either order can occur there.
    """

    def __init__(self, lifecycle: NodeLifecycle, started_at_us: int) -> None:
        """Start the clock.

        Args:
            lifecycle: the controller to run.
            started_at_us: time of the first round and the first pass.
        """
        self._lifecycle = lifecycle
        self._next_round_us = started_at_us
        self._next_pass_us = started_at_us

    def advance(self, to_us: int) -> tuple[Change, ...]:
        """Let time pass up to and including an instant.

        Args:
            to_us: the instant; one that lies behind changes nothing.

        Returns:
            All changes, in order, with their times.
        """
        done: list[Change] = []
        while (at_us := min(self._next_round_us, self._next_pass_us)) <= to_us:
            if self._next_round_us == at_us:
                done += self._lifecycle.monitor(at_us)
                self._next_round_us += self._lifecycle.settings.monitor_period_us
            if self._next_pass_us == at_us:
                done += self._lifecycle.no_execute_pass(at_us)
                self._next_pass_us += NO_EXECUTE_PASS_PERIOD_US
            self._skip_idle_passes()
        return tuple(done)

    def _skip_idle_passes(self) -> None:
        """Skip passes before the next round while the queues are empty; such passes change nothing."""
        if any(len(queue) for queue in self._lifecycle.queues.values()):
            return
        behind_us = self._next_round_us - self._next_pass_us
        if behind_us > 0:
            self._next_pass_us += -(-behind_us // NO_EXECUTE_PASS_PERIOD_US) * NO_EXECUTE_PASS_PERIOD_US
