"""One replay, and its comparison with another run on the same recording."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, TypeAlias

from evictstream.kit.recordings.record import RecordedRecord
from evictstream.kit.replay.comparison import (
    DifferenceKind,
    RunDifference,
    compare_runs,
    other_run_reason,
    upstream_reason,
)
from evictstream.kit.replay.evictions import EvictionsOfRun
from evictstream.kit.replay.held_effects import HeldEffects
from evictstream.kit.replay.recorded_steering import RecordedSteering
from evictstream.kit.replay.replay import Replay
from evictstream.kit.replay.upstream_run import UpstreamRun
from evictstream.kit.replay.virtual_partition import ReplayedMessage
from evictstream.models.instants import SECOND_US, instant_text
from evictstream.models.messages.unreadable import Unreadable
from evictstream.streams.errors import WrongUseError
from evictstream.streams.settings import Settings

Source: TypeAlias = Callable[[], Iterable[RecordedRecord]]
"""Gives the recording from its beginning; it is called once for each reading."""

_UPSTREAM = "upstream"


class WithoutPolicy(NamedTuple):
    """Beside upstream, had no policy moved seconds: departures that are the same within a second, and all others."""

    same: int
    different: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ReplayReport:
    """What came of it.

    Attributes:
        replay: the records that were read.
        evictions: in the order in which they began.
        messages: counted by topic.
        held: evictions that are due at the end and held, by the id of a brake, or `policy/NAME`.
        end_us: up to when the clock ran.
        against: name of the other run; None if there is none.
        same: departures that both runs have, within a second.
        differences: all others, by time.
        without_policy: beside upstream, if seconds had been moved.
    """

    replay: Replay
    evictions: EvictionsOfRun
    messages: Counter[str]
    held: Mapping[str, int] = dataclasses.field(default_factory=dict)
    end_us: int = 0
    against: str | None = None
    same: int = 0
    differences: tuple[RunDifference, ...] = ()
    without_policy: WithoutPolicy | None = None

    def rows(self) -> Iterator[tuple[str, int | str]]:
        """Give what a table shows."""
        replay, first_us = self.replay, self.replay.first_us
        yield "records", replay.records
        if first_us is not None:
            yield "recorded", f"{instant_text(first_us)} to {instant_text(replay.last_us)}"
        for begun in replay.epochs:
            yield f"epoch {begun.epoch} of {begun.cluster} begins", instant_text(begun.at_us)
        if replay.set_back:
            yield "records whose time went back", replay.set_back
        yield "evictions", len(self.evictions)
        yield "  issued", sum(eviction.issued_at_us is not None for eviction in self.evictions)
        for verdict, count in sorted(self._cancelled().items()):
            yield f"  cancelled, {verdict}", count
        yield "  not due at the end", self._not_due()
        for holder, count in sorted(self.held.items()):
            yield f"  held at the end, {holder}", count
        if objections := replay.objections():
            yield "brakes and policies that cannot be read", len(objections)
        yield "dead letters", self.messages["dead-letters"]

    def summary(self) -> dict[str, object]:
        """Give the same for programs."""
        replay, first_us = self.replay, self.replay.first_us
        summary: dict[str, object] = {
            "records": replay.records,
            "firstAt": None if first_us is None else instant_text(first_us),
            "lastAt": None if first_us is None else instant_text(replay.last_us),
            "epochs": [
                {
                    "cluster": one.cluster,
                    "epoch": one.epoch,
                    "clusterUid": one.cluster_uid,
                    "at": instant_text(one.at_us),
                }
                for one in replay.epochs
            ],
            "setBack": replay.set_back,
            "evictions": len(self.evictions),
            "issued": sum(eviction.issued_at_us is not None for eviction in self.evictions),
            "cancelled": self._cancelled(),
            "notDue": self._not_due(),
            "held": dict(sorted(self.held.items())),
            "unreadableSteering": replay.objections(),
            "deadLetters": self.messages["dead-letters"],
            "against": self.against,
            "same": self.same,
        }
        if self.without_policy is not None:
            summary["withoutPolicy"] = self.without_policy._asdict()
        return summary

    def _not_due(self) -> int:
        """Count what is left open; without what is held, if anything is."""
        return sum(one.is_open and not (self.held and one.deadline_us <= self.end_us) for one in self.evictions)

    def _cancelled(self) -> Counter[str]:
        return Counter(
            str(eviction.cancelled_for)
            for eviction in self.evictions
            if eviction.cancelled_for is not None and eviction.issued_at_us is None
        )


def report_of(
    settings: Settings,
    source: Source,
    *,
    partitions: int,
    plays_executor: bool,
    run_on_seconds: float = 0.0,
    against: str | None = None,
    steering: RecordedSteering | None = None,
    keep: Callable[[ReplayedMessage], object] = lambda _: None,
) -> ReplayReport:
    """Replay, and compare.

    Args:
        settings: whose rules and limits count.
        source: the recording, which is read once, twice in a comparison with upstream, and again if
            seconds had been moved.
        partitions: of the recording.
        plays_executor: each eviction succeeds and its pod goes.
        run_on_seconds: how long the clock runs after the last record.
        against: `upstream`, or the path of a file with commands; None compares with nothing.
        steering: brakes and policies at the beginning; None for those of the recording alone.
        keep: gets every message, partition by partition.

    Raises:
        WrongUseError: `against` holds no commands. Also what the source raises.
    """
    replay = Replay(settings, partitions=partitions, plays_executor=plays_executor, steering=steering)
    evictions, messages, effects = EvictionsOfRun(), Counter[str](), HeldEffects()
    for message in _everything(replay, source(), run_on_seconds):
        messages[message.topic] += 1
        keep(message)
        if message.topic == "commands":
            evictions.take(message.value)
        elif against is not None and message.topic == "decisions":
            effects.take(message.value)
    until_us, held = replay.last_us + int(run_on_seconds * SECOND_US), replay.held_back()
    if against is None:
        return ReplayReport(replay=replay, evictions=evictions, messages=messages, held=held, end_us=until_us)
    without_policy = None
    if against == _UPSTREAM:
        run = UpstreamRun(settings, partitions=partitions, service=evictions.departures())
        same, differences = _beside_upstream(run, source, evictions, until_us)
        if run.has_moved:
            other = UpstreamRun(settings, partitions=partitions, service=evictions.departures(), without_policy=True)
            as_ever = _beside_upstream(other, source, evictions, until_us)
            without_policy = WithoutPolicy(as_ever[0], len(as_ever[1]))
    else:
        same, differences = _beside_run(evictions, _commands_of(Path(against)))
    if replay.is_steered:
        pods = {(one.cluster, one.pod_uid) for one in replay.holds()}
        differences = [one._replace(reason=effects.reason(one, pods) or one.reason) for one in differences]
    return ReplayReport(
        replay=replay,
        evictions=evictions,
        messages=messages,
        held=held,
        end_us=until_us,
        against=against,
        same=same,
        differences=tuple(sorted(differences, key=lambda one: one.first)),
        without_policy=without_policy,
    )


def _everything(replay: Replay, records: Iterable[RecordedRecord], seconds: float) -> Iterator[ReplayedMessage]:
    yield from replay.run(records)
    yield from replay.run_on(seconds)


def _beside_upstream(
    upstream: UpstreamRun, source: Source, evictions: EvictionsOfRun, until_us: int
) -> tuple[int, list[RunDifference]]:
    ours = evictions.departures()
    for record in source():
        upstream.take(record)
    upstream.run_on(until_us)
    same, differing = _split(compare_runs(ours, upstream.departures))
    return same, [difference._replace(reason=upstream_reason(difference, upstream)) for difference in differing]


def _beside_run(evictions: EvictionsOfRun, others: EvictionsOfRun) -> tuple[int, list[RunDifference]]:
    same, differing = _split(compare_runs(evictions.departures(), others.departures()))
    return same, [
        difference._replace(reason=other_run_reason(difference, evictions, others)) for difference in differing
    ]


def _split(differences: Iterable[RunDifference]) -> tuple[int, list[RunDifference]]:
    remaining = list(differences)
    differing = [one for one in remaining if one.kind is not DifferenceKind.SAME]
    return len(remaining) - len(differing), differing


def _commands_of(path: Path) -> EvictionsOfRun:
    evictions = EvictionsOfRun()
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                evictions.take(line)
            except Unreadable as error:
                raise WrongUseError(f"{path}, line {number}: no command ({error.reason})") from error
    return evictions
