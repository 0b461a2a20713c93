"""The end of the story in numbers, counted from what a `read_committed` reader saw."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from evictstream.kit.demo.topics import Seen
from evictstream.kit.oracle import PodPlan, Stretch
from evictstream.models.instants import SECOND_US, instant_us

PROBLEMS_SHOWN = 20
"""To people; a rule that is broken breaks for hundreds of pods."""


@dataclasses.dataclass(slots=True)
class Kill:
    """A worker that was killed: who, when (microseconds since 1970), and when others had all it had."""

    worker: int
    pid: int
    at_us: int
    partitions: tuple[int, ...]
    pending: int
    heir: int | None = None
    taken_over_us: int | None = None

    @property
    def seconds(self) -> float | None:
        """From the kill to the takeover; None if nobody has taken over."""
        return None if self.taken_over_us is None else (self.taken_over_us - self.at_us) / SECOND_US


@dataclasses.dataclass(frozen=True, slots=True)
class Counts:
    """Commands counted.

    Attributes:
        scheduled: evictions announced with a deadline ahead.
        moved: later announcements of another deadline for the same eviction.
        cancelled: evictions taken back.
        issued: evictions issued, each counted once.
        repeated: further attempts of those, after the executor had reported a failure.
        lateness: from when an eviction was owed to the arrival of its first `Evict`, seconds, in order of arrival.
        lateness_undisturbed: the same, without those that were due or on their way while a takeover was on.
    """

    scheduled: int = 0
    moved: int = 0
    cancelled: int = 0
    issued: int = 0
    repeated: int = 0
    lateness: tuple[float, ...] = ()
    lateness_undisturbed: tuple[float, ...] = ()


def count(seen: Iterable[Seen], outages: Sequence[Stretch], plans: Mapping[str, PodPlan]) -> Counts:
    """Count commands. `plans` of pods, by UID, tell since when an eviction was owed; without one it is the deadline."""
    commands = sorted(seen, key=lambda one: one.at_us)
    schedules = [one for one in commands if one.command["action"] == "Schedule"]
    evicts = [one for one in commands if one.command["action"] == "Evict"]
    due = [(_owed_us(one.command, plans), one.at_us) for one in evicts if one.command["attempt"] == 1]
    calm = [(a, b) for a, b in due if not any(a <= end and b >= begin for begin, end in outages)]
    announced = {one.command["evictionId"] for one in schedules}
    return Counts(
        scheduled=len(announced),
        moved=len(schedules) - len(announced),
        cancelled=len(commands) - len(schedules) - len(evicts),
        issued=len({one.command["evictionId"] for one in evicts}),
        repeated=len(evicts) - len(due),
        lateness=tuple((b - a) / SECOND_US for a, b in due),
        lateness_undisturbed=tuple((b - a) / SECOND_US for a, b in calm),
    )


def _owed_us(command: Mapping[str, Any], plans: Mapping[str, PodPlan]) -> int:
    """Say since when an `Evict` was owed: its deadline, or when the plan of its pod says that this was known."""
    deadline_us = instant_us(command["deadline"])
    pod = plans.get(command["podUid"])
    return deadline_us if pod is None else pod.owed_us(deadline_us)


@dataclasses.dataclass(frozen=True, slots=True)
class Summary:
    """How it went.

    Attributes:
        incident: name of the recording.
        kafka: which Kafka.
        pods: how many pods the oracle had an opinion on.
        counts: commands.
        spared: pods that had to leave only while a takeover was on; their reason was gone when it ended.
        kill: the worker that was killed, if one was.
        problems: everything that was wrong, sentences.
        logs: folder with the workers' logs if it was kept.
    """

    incident: str
    kafka: str
    pods: int
    counts: Counts
    spared: int
    kill: Kill | None
    problems: tuple[str, ...]
    logs: str | None

    def lines(self) -> list[str]:
        """Say it to people."""
        counts = self.counts
        failures = f", {counts.repeated} of them again after a failed delete" if counts.repeated else ""
        lines = [
            f"{self.incident} on {self.kafka}",
            f"  scheduled  {counts.scheduled:5}  deadlines announced",
            f"  moved      {counts.moved:5}  deadlines changed",
            f"  cancelled  {counts.cancelled:5}  taken back in time",
            f"  issued     {counts.issued:5}  evictions{failures}",
            *self._lateness_lines(),
            *self._kill_lines(),
        ]
        if self.spared:
            lines.append(f"             {self.spared} pods stayed: their taint was removed before a worker took over")
        if not self.problems:
            return [*lines, f"The oracle agrees: every command about {self.pods} pods was right, and none was missing."]
        shown = self.problems[:PROBLEMS_SHOWN]
        lines += [f"{len(self.problems)} problem(s):", *(f"  {problem}" for problem in shown)]
        if len(shown) < len(self.problems):
            lines.append(f"  and {len(self.problems) - len(shown)} more; -o json lists all")
        return lines if self.logs is None else [*lines, f"the workers' logs are in {self.logs}"]

    def _lateness_lines(self) -> list[str]:
        late, calm = self.counts.lateness, self.counts.lateness_undisturbed
        if not late:
            return ["  lateness       -  nothing was due"]
        lines = [f"  lateness   p50 {_text(statistics.median(late))}, max {_text(max(late))}, from deadline to arrival"]
        if self.kill is not None and calm:
            waited = len(late) - len(calm)
            lines.append(f"             max {_text(max(calm))} without the {waited} that fell into the takeover")
        return lines

    def _kill_lines(self) -> list[str]:
        kill = self.kill
        if kill is None:
            return ["  kills      none"]
        who = f"             from worker {kill.worker} (process {kill.pid}, SIGKILL, {kill.pending} deadlines pending)"
        if kill.seconds is None:
            return ["  kills      1, not survived: no worker took over", who]
        return [f"  kills      1, survived: worker {kill.heir} took over in {kill.seconds:.1f} s", who]

    def as_json(self) -> dict[str, Any]:
        """Say it to programs: seconds, names in camelCase."""
        late, calm, kill = self.counts.lateness, self.counts.lateness_undisturbed, self.kill
        return {
            "incident": self.incident,
            "kafka": self.kafka,
            "pods": self.pods,
            "scheduled": self.counts.scheduled,
            "moved": self.counts.moved,
            "cancelled": self.counts.cancelled,
            "issued": self.counts.issued,
            "repeated": self.counts.repeated,
            "spared": self.spared,
            "latenessP50Seconds": round(statistics.median(late), 6) if late else None,
            "latenessMaxSeconds": round(max(late), 6) if late else None,
            "latenessMaxOutsideTakeoverSeconds": round(max(calm), 6) if calm else None,
            "kills": int(kill is not None),
            "killsSurvived": int(kill is not None and kill.seconds is not None),
            "takeoverSeconds": None if kill is None else kill.seconds,
            "problems": list(self.problems),
            "logs": self.logs,
        }


def _text(seconds: float) -> str:
    """Say a duration as people do: milliseconds below one second."""
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.2f} s"
