"""Sets and ends brakes so that people who write the same one at the same time lose nothing of one another.

A record replaces the one before as a whole, and Kafka appends it whatever came between. So what stood just before it is
looked at once it is appended, and written back if it must not go. What is over is over by Kafka's clock.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec

from evictstream.models.instants import SECOND_US, instant_text, moment_at
from evictstream.models.messages.brake import Brake
from evictstream.models.steering.brakes import MOST_BRAKES, Brakes, StandingBrake
from evictstream.streams.cli.brakes import BrakesWriter
from evictstream.streams.cli.steering_records import who
from evictstream.streams.errors import FoundProblemError

KEPT_FOR_ALL: Final = 10
"""Of `MOST_BRAKES`: only `--all` may be one of the last ones. A person who stops everything has no time to look for a
brake that can go."""

_MOST_TRIES: Final = 5


def set_brake(writer: BrakesWriter, brake: Brake, seconds: int | None) -> StandingBrake:
    """Write a brake that ends after some seconds, or when it is released; returns it as it was read back.

    Raises:
        FoundProblemError: its id has another brake, there are too many, or somebody has released it meanwhile.
        BrokerError: Kafka does not take it.
    """
    refuse_to_replace(writer.brakes, brake, writer.now_us)
    written = writer.write(brake)
    first, earlier = written
    if earlier is not None and _holds_otherwise(earlier, brake) and not earlier.is_over(first.appended_us):
        writer.put_back(written)
        raise _holds_else(brake)
    if seconds is not None:  # by Kafka's clock, as deadlines: that of this machine may be hours behind
        ends_at = moment_at(first.appended_us + seconds * SECOND_US)
        written = writer.write(msgspec.structs.replace(brake, ends_at=ends_at))
        found = None if written.before is None else written.before.brake
        # A command that means something else by this id has found the first record, and is refused.
        if found is not None and found != first.brake and _selection(found) == _selection(brake):
            writer.put_back(written)
            raise FoundProblemError(
                f"{found.released_by or found.by} has {'released' if found.is_released else 'set'} the brake {brake.id}"
                " at the same time",
                next_step="look with `evictstream holds`, and give the command again",
            )
    writer.remove_old(written.standing.appended_us)
    return written.standing


def refuse_to_replace(brakes: Brakes, brake: Brake, now_us: Callable[[], int]) -> None:
    """Raise `FoundProblemError` if this brake would let go what one of its id holds or spreads, or is one too many.

    Args:
        brakes: as they stand.
        brake: the new one.
        now_us: asks for Kafka's clock, if that matters.
    """
    most = MOST_BRAKES if not any(_selection(brake)) else MOST_BRAKES - KEPT_FOR_ALL
    others = [one for name, one in brakes.standing.items() if name != brake.id]
    if len(others) >= most:
        at_us = now_us()
        count = sum(not one.is_over(at_us) for one in others)
        if count >= most:
            rest = "" if most == MOST_BRAKES else f"; the last {KEPT_FOR_ALL} are kept for --all"
            raise FoundProblemError(
                f"there are {count} brakes that are not over{rest}",
                next_step="release some, or write the names into one brake",
            )
    earlier = brakes.standing.get(brake.id)
    if earlier is None or not _holds_otherwise(earlier, brake):
        return
    if earlier.end_us is None or not earlier.is_over(now_us()):
        raise _holds_else(brake)


def _holds_otherwise(standing: StandingBrake, brake: Brake) -> bool:
    return _selection(standing.brake) != _selection(brake)


def _holds_else(brake: Brake) -> FoundProblemError:
    return FoundProblemError(
        f"the brake {brake.id} holds something else", next_step="`evictstream holds` shows it; give another --id"
    )


def _selection(brake: Brake) -> tuple[frozenset[str], ...]:
    return tuple(map(frozenset, (brake.clusters, brake.zones, brake.taints, brake.namespaces)))


class EndedBrake(NamedTuple):
    """What became of a brake in one Kafka.

    Attributes:
        name: its id.
        sentence: for people.
        ended_at: when it was released; None where nothing was to be done.
    """

    name: str
    sentence: str
    ended_at: str | None = None


def end_brake(writer: BrakesWriter, name: str, why: str) -> EndedBrake:
    """Release a brake, or remove the record with its id that cannot be read.

    Raises:
        FoundProblemError: others write it all the time.
        BrokerError: Kafka does not take it.
    """
    if name in writer.brakes.unreadable:
        at = instant_text(writer.remove(name))
        return EndedBrake(
            name, f"removed brake {name}, which could not be read; what nothing else holds goes at once", at
        )
    standing = writer.brakes.all.get(name)
    if standing is None:
        return EndedBrake(name, f"there is no brake {name}; `evictstream holds` shows them")
    if standing.end_us is not None and (standing.brake.is_released or standing.is_over(writer.now_us())):
        return _ended_before(name, standing.end_us)
    known = standing.brake
    for _ in range(_MOST_TRIES):
        written = writer.write(msgspec.structs.replace(standing.brake, released_by=who(), released_why=why))
        ended, before = written
        if before is None or before.brake == known:
            at, seconds = instant_text(ended.appended_us), ended.brake.spread_seconds
            overdue = f"within {seconds} s" if seconds else "at once"
            return EndedBrake(name, f"released brake {name} at {at}; what is overdue goes {overdue}", at)
        if before.end_us is not None and (before.brake.is_released or before.is_over(ended.appended_us)):
            writer.put_back(written)
            return _ended_before(name, before.end_us)
        standing, known = before, ended.brake
    raise FoundProblemError(
        f"others write brake {name} at the same time", next_step="look with `evictstream holds`, and give it again"
    )


def _ended_before(name: str, end_us: int) -> EndedBrake:
    return EndedBrake(name, f"brake {name} ended at {instant_text(end_us)}")
