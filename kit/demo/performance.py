"""Where everything meets: the recording is played, commands are answered, a worker is killed, and all of it is shown.

One loop in one thread does it, so nothing here needs a lock. It waits for commands, at most until the next thing is
due, so an answer goes out within a millisecond of its command.
"""

from __future__ import annotations

import dataclasses

import msgspec

from evictstream.kit.demo.board import Board
from evictstream.kit.demo.input_writer import InputWriter
from evictstream.kit.demo.judgement import plan_of
from evictstream.kit.demo.kill_moment import kill_moment_us, still_owed, waits_until_us
from evictstream.kit.demo.player import Heartbeats, Player
from evictstream.kit.demo.reader import Arrival, CommandReader, Seen
from evictstream.kit.demo.recording import Event, Recording
from evictstream.kit.demo.summary import Kill
from evictstream.kit.demo.view import Show
from evictstream.kit.demo.worker_kill import WorkerKill
from evictstream.kit.demo.workers import Worker, Workers, listed, now_us, partitions_of
from evictstream.kit.oracle import PodPlan, Stretch
from evictstream.kit.replay.simulated_executor import SimulatedExecutor
from evictstream.streams.feed.publisher import Publisher
from evictstream.streams.settings import Settings

LOOK_US = 100_000
"""Between looks at the workers' logs, and the longest the loop waits for a command."""

SETTLE_US = 2_000_000
"""How long to listen after the last thing that had to happen, for commands that must not come."""

LONGEST_WAIT_US = 30_000_000
"""For evictions that are due and do not come, and for a take-over; what has not come by then will not."""


@dataclasses.dataclass(frozen=True, slots=True)
class PerformanceResult:
    """What happened: commands as seen, the kill, and what went wrong."""

    seen: list[Seen]
    kill: Kill | None
    outages: tuple[Stretch, ...]
    end_us: int
    problems: tuple[str, ...]


class Performance:
    """All parts of the demo while it runs: recording, workers, readers and what is shown."""

    def __init__(
        self,
        recording: Recording,
        settings: Settings,
        show: Show,
        *,
        workers: Workers,
        reader: CommandReader,
        publisher: Publisher,
    ) -> None:
        self.recording = recording
        self.show = show
        self.workers = workers
        self.board = Board()
        self.board.phase = "workers start"
        self.executor = SimulatedExecutor()
        self.inputs = InputWriter(publisher, settings)
        self.reader = reader
        self.seen: list[Seen] = []
        self.evicted: set[str] = set()
        self.settings = settings

    def all_own(self) -> bool:
        """Whether every worker has partitions and every partition has an owner."""
        owners = self.workers.owners()
        return len(owners) == self.settings.partitions and set(owners.values()) == set(self.workers.all)

    def look(self) -> None:
        """Look at the workers and show what is new."""
        self.workers.look()
        owners = self.workers.owners()
        self.board.workers = tuple(_about(worker, owners) for worker in self.workers.all)
        self.show.refresh(self.board, now_us())

    def publish(self, event: Event) -> None:
        """Send a watch event, and say so if it taints a node."""
        self.inputs.change(event)
        sentence = self.board.change(event)
        if sentence is not None:
            self.show.say(now_us(), sentence)

    def play(self, event: Event, at_us: int) -> None:
        """Send a recorded watch event, unless it did not happen here."""
        before = self.executor.admit(msgspec.json.encode(event), at_us)
        if before is not None:
            for one in (*before, event):
                self.publish(one)

    def take(self, arrival: Arrival) -> None:
        """Note a command and answer it."""
        self.board.command(arrival)
        self.seen.append(arrival.seen)
        command = arrival.seen.command
        if command["action"] == "Evict":
            answer = self.executor.evict(command, now_us())
            self.inputs.result(answer.result)
            for event in answer.events:
                self.publish(event)
            if answer.result["outcome"] != "Failed":
                self.evicted.add(command["podUid"])


def play_through(performance: Performance, *, speed: float, kill: bool) -> PerformanceResult:
    """Play the whole recording, wait for what has to follow, and say how it went."""
    start_us = now_us()
    player = Player(performance.recording.events, start_us=start_us, speed=speed)
    plan = plan_of(player.planned(), performance.settings)
    performance.board.plans = plan
    performance.show.begin(start_us)
    performance.board.phase = performance.recording.title
    show_text = f"playing {performance.recording.title}: {len(plan)} pods, {(player.end_us - start_us) / 1e6:.0f} s"
    performance.show.say(start_us, show_text)
    act = _Act(
        performance,
        player,
        plan,
        killing=WorkerKill(performance, kill_moment_us(plan, start_us) if kill else None),
        speed=speed,
    )
    while not act.turn():
        pass
    performance.board.phase = "the workers stop"
    performance.show.say(now_us(), "all is played and done; the workers get SIGTERM")
    return PerformanceResult(
        seen=performance.seen,
        kill=act.killing.kill,
        outages=act.killing.outages(),
        end_us=now_us(),
        problems=act.killing.problems(),
    )


class _Act:
    """The loop's state from the first event to the end."""

    def __init__(
        self,
        performance: Performance,
        player: Player,
        plan: dict[str, PodPlan],
        *,
        killing: WorkerKill,
        speed: float,
    ) -> None:
        self.performance, self.player, self.plan, self.killing = performance, player, plan, killing
        steps = [(player.start_us + int(s.after_seconds / speed * 1e6), s.text) for s in performance.recording.steps]
        self._steps = sorted(steps, reverse=True)
        self._heartbeats = Heartbeats(player.start_us)
        self._look_us = 0
        self._last_due_us = waits_until_us(plan, player.end_us)
        self._done_us: int | None = None

    def turn(self) -> bool:
        """Do what is due, then wait for one command; return whether it is over."""
        performance, now = self.performance, now_us()
        while self._steps and self._steps[-1][0] <= now:
            performance.board.phase = self._steps.pop()[1]
            performance.show.say(now, f"recorded: {performance.board.phase}")
        for event in self.player.due(now):
            performance.play(event, now)
        for event in performance.executor.gone(now):
            performance.publish(event)
        if self._heartbeats.due(now):
            for cluster in performance.recording.clusters:
                performance.inputs.heartbeat(cluster, now)
        self.killing.turn(now)
        if now >= self._look_us:
            self._look_us = now + LOOK_US
            performance.look()
            if self._is_over(now):
                return True
        moments = [self._look_us, self.player.next_us(), performance.executor.next_us()]
        soonest = min(moment for moment in moments if moment is not None)
        arrival = performance.reader.next((soonest - now_us()) / 1_000_000)
        if arrival is not None:
            performance.take(arrival)
        return False

    def _is_over(self, now: int) -> bool:
        """Whether all that had to happen has, for long enough; or will not happen any more."""
        if now < self._last_due_us:
            return False
        waits = (
            self.performance.executor.busy
            or self.killing.unsettled
            or bool(still_owed(self.plan, now) - self.performance.evicted)
        )
        if waits:
            self._done_us = None
            return now >= self._last_due_us + LONGEST_WAIT_US
        self._done_us = self._done_us or now
        return now >= self._done_us + SETTLE_US


def _about(worker: Worker, owners: dict[int, Worker]) -> str:
    who = f"worker {worker.number} (process {worker.pid})"
    if worker.killed:
        return f"{who} was killed"
    mine = partitions_of(worker, owners)
    return f"{who} has partitions {listed(tuple(sorted(mine)))}" if mine else f"{who} starts"
