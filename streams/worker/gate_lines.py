"""What a worker logs about the gates of its partitions: a line when one closes, and a line when it opens.

A gate often closes for all partitions at once, as when brokers are away: that is one line. It compares the snapshots of
each second, so what closes and opens between two of them is not logged.
"""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING, Final

import structlog

from evictstream.models.instants import SECOND_US
from evictstream.streams.worker.gates import Closed, Gate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evictstream.streams.deed_log import DeedLog
    from evictstream.streams.worker.snapshot import PartitionView, Snapshot

log = structlog.get_logger(__name__)

_USUAL: Final = frozenset({Gate.OWNER, Gate.CAUGHT_UP})
"""Each start and each rebalance closes these."""


class GateLines:
    """Remembers which gates are closed, and logs what changes."""

    def __init__(self, deeds: DeedLog) -> None:
        """`deeds` limits the lines of a gate that closes and opens again and again."""
        self._deeds = deeds
        self._closed: dict[int, tuple[Gate, int]] = {}  # by partition: the gate, and since when, microseconds

    def look(self, snapshot: Snapshot) -> None:
        """Compare a snapshot with the one before. A partition that has moved to another worker is forgotten."""
        before, self._closed = self._closed, {}
        paused: dict[Gate, list[PartitionView]] = collections.defaultdict(list)
        resumed: dict[Gate, dict[int, int]] = collections.defaultdict(dict)
        for view in snapshot.partitions:
            was = before.get(view.partition)
            gate = None if view.closed is None else view.closed.gate
            if was is not None and was[0] is not gate:
                resumed[was[0]][view.partition] = was[1]
            if gate is None:
                continue
            if was is not None and was[0] is gate:
                self._closed[view.partition] = was
            else:
                self._closed[view.partition] = gate, snapshot.at_us
                paused[gate].append(view)
        self._log(paused, resumed, snapshot.at_us)

    def _log(
        self, paused: Mapping[Gate, list[PartitionView]], resumed: Mapping[Gate, Mapping[int, int]], now_us: int
    ) -> None:
        for gate, since_us in resumed.items():
            if self._deeds.takes("firing resumed", ""):
                # A clock that was ahead, the reason of the gate `clock`, has gone back meanwhile.
                seconds = max(0, round((now_us - min(since_us.values())) / SECOND_US))
                log.info("firing resumed", gate=str(gate), partitions=sorted(since_us), paused_seconds=seconds)
        for gate, views in paused.items():
            if not self._deeds.takes("firing paused", ""):
                continue
            closed = views[0].closed or Closed(gate, "")
            due = sum(w.count for view in views for (held, _), w in view.waiting.items() if held is gate)
            (log.info if gate in _USUAL else log.warning)(
                "firing paused",
                gate=str(gate),
                partitions=[view.partition for view in views],
                evictions=due,
                reason=closed.reason,
            )
