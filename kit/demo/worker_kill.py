"""The crash in the middle of the story."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from evictstream.kit.demo.summary import Kill
from evictstream.kit.demo.workers import listed, now_us, partitions_of
from evictstream.kit.oracle import Stretch

if TYPE_CHECKING:
    from evictstream.kit.demo.performance import Performance


class WorkerKill:
    """Kills one worker in mid-window and watches for who takes over."""

    def __init__(self, performance: Performance, at_us: int | None) -> None:
        """`at_us` is when; `None` for never."""
        self._performance, self._at_us = performance, at_us
        self.kill: Kill | None = None

    @property
    def unsettled(self) -> bool:
        """Whether the kill or the take-over is still to come."""
        return self._at_us is not None and (self.kill is None or not self.kill.survived)

    def outages(self) -> tuple[Stretch, ...]:
        """From the kill to the take-over, or without end."""
        if self.kill is None:
            return ()
        return ((self.kill.at_us, self.kill.taken_over_us or now_us()),)

    def problems(self) -> tuple[str, ...]:
        """Say if nobody took over."""
        if self.kill is None or self.kill.survived:
            return ()
        return (f"nobody took over the partitions {listed(self.kill.partitions)} of worker {self.kill.worker}",)

    def turn(self, now: int) -> None:
        """Kill when it is time; afterwards look whether all has been taken over."""
        if self._at_us is None or now < self._at_us:
            return
        if self.kill is None:
            self._kill()
        elif not self.kill.survived:
            self._look(self.kill)

    def _kill(self) -> None:
        performance = self._performance
        owners = performance.workers.owners()
        # Whoever has most to lose.
        victim = max(
            performance.workers.all, key=lambda worker: performance.board.pending_in(partitions_of(worker, owners))
        )
        mine = partitions_of(victim, owners)
        pending = performance.board.pending_in(mine)
        victim.kill()
        self.kill = Kill(
            worker=victim.number, pid=victim.pid, at_us=now_us(), partitions=tuple(sorted(mine)), pending=pending
        )
        performance.board.phase = f"worker {victim.number} killed"
        text = f"worker {victim.number} (process {victim.pid}) killed with SIGKILL: {pending} of"
        text += f" {len(performance.board.pending)} pending deadlines were its own; nothing is started in its place"
        performance.show.say(now_us(), text)

    def _look(self, kill: Kill) -> None:
        performance = self._performance
        owners = performance.workers.owners()
        heirs = {owners[number].number for number in kill.partitions}
        if kill.worker in heirs:
            return
        heir = performance.workers.all[max(heirs) - 1]
        taken_us = max(at_us for at_us, _ in heir.taken)
        self.kill = dataclasses.replace(kill, heir=heir.number, taken_over_us=taken_us)
        performance.board.phase = f"worker {heir.number} has taken over from worker {kill.worker}"
        text = f"worker {heir.number} has taken over partitions {listed(kill.partitions)}, {self.kill.seconds:.1f} s"
        performance.show.say(now_us(), f"{text} after the kill; deadlines are as they were")
