"""The recording is played, commands are answered, a worker is killed.

One loop in one thread does it, so nothing here needs a lock. It waits for commands, at most until the next thing is
due, so an answer goes out within a millisecond or two of its command.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from statistics import median_high
from typing import Any, Final

import msgspec

from evictstream.kit.demo.judgement import plan_of
from evictstream.kit.demo.progress import DemoProgress
from evictstream.kit.demo.recording import Event, Recording
from evictstream.kit.demo.summary import Kill
from evictstream.kit.demo.topics import Seen, encode, send_change, send_heartbeat
from evictstream.kit.demo.workers import Workers, listed, now_us, partitions_of
from evictstream.kit.oracle import PodPlan, Stretch
from evictstream.kit.replay.simulated_executor import SimulatedExecutor
from evictstream.models.instants import SECOND_US, instant_text, instant_us
from evictstream.streams.feed.publisher import Publisher
from evictstream.streams.settings import Settings

HEARTBEAT_US: Final = 5_000_000
"""Between heartbeats of the feed that this stands for; the service waits when none came for 60 s."""

LOOK_US: Final = 100_000
"""Between looks at the workers' logs, and the longest the loop waits for a command."""

SETTLE_US: Final = 2_000_000
"""How long to listen after the last thing that had to happen, for commands that must not come."""

LONGEST_WAIT_US: Final = 30_000_000
"""For evictions that are due and do not come, and for a takeover; what has not come by then will not."""

LONGEST_TAIL_US: Final = 120_000_000
"""How long after the recording deadlines may lie to be waited for."""


def moved(events: Sequence[Event], start_us: int, speed: float = 1.0) -> list[Event]:
    """Move times of observation so that the first event is at `start_us`, and all come `speed` times as fast.

    Tolerations are not scaled, so a recording that is played twice as fast ends otherwise, and rightly so: what has to
    happen is worked out from what is played.
    """
    first_us = instant_us(events[0]["observedAt"])
    return [
        event | {"observedAt": instant_text(start_us + int((instant_us(event["observedAt"]) - first_us) / speed))}
        for event in events
    ]


def kill_moment_us(plans: Mapping[str, PodPlan]) -> int | None:
    """Choose the median of the middles of all announced deadlines: when many are pending; None if there is none."""
    middles = []
    for pod in plans.values():
        evicted_us = pod.course().evicted_us
        for span in pod.spans:
            if evicted_us is not None and span.since_us >= evicted_us:
                break
            if span.is_announced and span.deadline_us is not None:
                until_us = span.deadline_us if span.until_us is None else min(span.deadline_us, span.until_us)
                middles.append((span.since_us + until_us) // 2)
    return median_high(middles) if middles else None


def waits_until_us(plans: Mapping[str, PodPlan], end_us: int) -> int:
    """Return when the last eviction is due, at least `end_us`; later ones than the longest tail are not waited for."""
    due = [pod.course().evicted_us for pod in plans.values()]
    return max([end_us, *(one for one in due if one is not None and one <= end_us + LONGEST_TAIL_US)])


def still_owed(plans: Mapping[str, PodPlan], now: int) -> set[str]:
    """Return the UIDs of pods that have to be evicted by now, whatever may have kept the service from it."""
    return {
        uid
        for uid, pod in plans.items()
        for span in pod.spans
        if span.due_us is not None and span.due_us <= now and (span.until_us is None or now < span.until_us)
    }


class Play:
    """The play while it runs.

    Attributes:
        seen: commands as they came.
        kill: the worker that was killed, if one was.
    """

    def __init__(
        self,
        recording: Recording,
        settings: Settings,
        *,
        workers: Workers,
        publisher: Publisher,
        reader: Any,
        progress: DemoProgress,
    ) -> None:
        self.seen: list[Seen] = []
        self.kill: Kill | None = None
        self._recording, self._settings = recording, settings
        self._workers, self._publisher, self._reader, self._progress = workers, publisher, reader, progress
        self._executor = SimulatedExecutor()
        self._evicted: set[str] = set()
        self._pending: dict[str, int] = {}  # announced evictions by id, with their partition
        self._kill_us: int | None = None
        self._beat_us = 0
        self._done_us: int | None = None

    def run(self, *, speed: float, kill: bool) -> list[str]:
        """Play the whole recording and wait for what has to follow; return what went wrong, one sentence each."""
        start_us = self._progress.start_us = now_us()
        events = moved(self._recording.events, start_us, speed)
        end_us = instant_us(events[-1]["observedAt"])
        plans = plan_of(events, self._settings)
        self._kill_us = kill_moment_us(plans) if kill else None
        last_due_us = waits_until_us(plans, end_us)
        title = self._recording.title
        self._progress.say(f"playing {title}: {len(plans)} pods, {(end_us - start_us) / SECOND_US:.0f} s")
        coming = deque(events)
        while not self._is_over(now_us(), last_due_us, plans):
            self._turn(now_us(), coming)
            soonest = [now_us() + LOOK_US, self._executor.next_us(), _next_us(coming)]
            self._take_commands(min(one for one in soonest if one is not None))
        if self.kill is None or self.kill.heir is not None:
            return []
        return [f"no worker took over partitions {listed(self.kill.partitions)} of worker {self.kill.worker}"]

    def _turn(self, now: int, coming: deque[Event]) -> None:
        """Do what is due."""
        while (at_us := _next_us(coming)) is not None and at_us <= now:
            event = coming.popleft()
            before = self._executor.admit(msgspec.json.encode(event), now)
            if before is not None:  # else it did not happen here
                self._publish([*before, event])
        self._publish(self._executor.gone(now))
        if now >= self._beat_us:
            self._beat_us = now + HEARTBEAT_US
            for cluster in self._recording.clusters:
                send_heartbeat(self._publisher, self._settings, cluster, now)
        self._workers.look()
        self._progress.refresh()
        if self._kill_us is not None and now >= self._kill_us:
            self._kill_us = None
            self._kill()
        if self.kill is not None and self.kill.heir is None:
            self._look_for_heir(self.kill)

    def _is_over(self, now: int, last_due_us: int, plans: Mapping[str, PodPlan]) -> bool:
        """Whether all that had to happen has, for long enough; or will not happen any more."""
        if now < last_due_us:
            return False
        is_settled = self._kill_us is None and (self.kill is None or self.kill.heir is not None)
        if not is_settled or self._executor.busy or still_owed(plans, now) - self._evicted:
            self._done_us = None
            return now >= last_due_us + LONGEST_WAIT_US
        self._done_us = self._done_us or now
        return now >= self._done_us + SETTLE_US

    def outages(self) -> tuple[Stretch, ...]:
        """From the kill to the takeover, or without end."""
        return () if self.kill is None else ((self.kill.at_us, self.kill.taken_over_us or now_us()),)

    def _publish(self, events: Iterable[Event]) -> None:
        for event in events:
            send_change(self._publisher, self._settings, event)
            self._progress.change(event)

    def _take_commands(self, until_us: int) -> None:
        """Wait for commands, note when they came, and answer them."""
        batches = self._reader.poll(timeout_ms=max(0, until_us - now_us()) // 1000)
        at_us = now_us()
        for record in (one for records in batches.values() for one in records):
            command = json.loads(record.value)
            self.seen.append(Seen(at_us, command))
            self._progress.command(command)
            if command["action"] == "Schedule":
                self._pending[command["evictionId"]] = record.partition
            else:
                self._pending.pop(command["evictionId"], None)
            if command["action"] == "Evict":
                answer = self._executor.evict(command, now_us())
                self._publisher.send(self._settings.results_topic, record.key, encode(answer.result))
                self._publish(answer.events)
                if answer.result["outcome"] != "Failed":
                    self._evicted.add(command["podUid"])

    def _kill(self) -> None:
        """Kill the worker that has most to lose."""
        owners = self._workers.owners()

        def pending(numbers: set[int]) -> int:
            return sum(partition in numbers for partition in self._pending.values())

        victim = max(self._workers.all, key=lambda worker: pending(partitions_of(worker, owners)))
        mine = partitions_of(victim, owners)
        victim.kill()
        self.kill = Kill(
            worker=victim.number,
            pid=victim.pid,
            at_us=now_us(),
            partitions=tuple(sorted(mine)),
            pending=pending(mine),
        )
        text = f"worker {victim.number} (process {victim.pid}) killed with SIGKILL: {self.kill.pending} of"
        text += f" {len(self._pending)} pending deadlines were its own; it is not replaced"
        self._progress.say(text)

    def _look_for_heir(self, kill: Kill) -> None:
        """Look whether somebody has taken over all that the killed worker had."""
        owners = self._workers.owners()
        heirs = {owners[number].number for number in kill.partitions}
        if kill.worker not in heirs:
            heir = self._workers.all[max(heirs) - 1]
            kill.heir, kill.taken_over_us = heir.number, max(at_us for at_us, _ in heir.taken)
            text = f"worker {heir.number} has taken over partitions {listed(kill.partitions)}, {kill.seconds:.1f} s"
            self._progress.say(f"{text} after the kill; deadlines are unchanged")


def _next_us(coming: Sequence[Event]) -> int | None:
    return instant_us(coming[0]["observedAt"]) if coming else None
