"""Which evictions the brakes hold, and until when: a function of the records of the brakes topic, and of the time.

A brake holds from when it is read. It ends at its `endsAt`, or when somebody releases it: then the append time of that
record counts, no clock of a person. What was due before the end is spread over `spreadSeconds` after it, each eviction
at the same instant for every reader, so a worker that starts anew, or a second one, does not change it.

`Brakes` is a value. A reader replaces it with each record, so who asks keeps one view for as long as a step lasts.
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import msgspec

from evictstream.models.instants import MILLISECOND_US, SECOND_US, microseconds
from evictstream.models.messages.brake import Brake, decode_brake
from evictstream.models.steering import holds
from evictstream.models.steering.holds import Hold, Subject, share_us

MOST_BRAKES: Final = 1_000
"""Brakes at once that are not over. Each eviction that is due is compared with all of its cluster, so more would cost
more than the evictions. What comes beyond it is as a record that cannot be read: everything is held."""


class StandingBrake(NamedTuple):
    """A brake as its record has come.

    Attributes:
        brake: the record.
        appended_us: its append time.
    """

    brake: Brake
    appended_us: int

    @property
    def holder(self) -> str:
        """Its id."""
        return self.brake.id

    @property
    def end_us(self) -> int | None:
        """When it ends or has ended; None if somebody has to release it."""
        end_us = None if self.brake.ends_at is None else microseconds(self.brake.ends_at)
        if self.brake.is_released:
            return self.appended_us if end_us is None else min(end_us, self.appended_us)
        return end_us

    def is_over(self, now_us: int) -> bool:
        """Whether it can hold nothing any more."""
        end_us = self.end_us
        return end_us is not None and end_us + self.brake.spread_seconds * SECOND_US <= now_us

    def until_us(self, pod_uid: str) -> int | None:
        """When the eviction of a pod that it holds may go: its share of the spread after the end; None before one."""
        end_us = self.end_us
        if end_us is None:
            return None
        return end_us + share_us(pod_uid, self.brake.spread_seconds)

    def hold(self, subject: Subject, now_us: int) -> Hold | None:
        """Return until when it holds an eviction of one of its clusters; None if it does not."""
        brake = self.brake
        if brake.namespaces and subject.namespace not in brake.namespaces:
            return None
        if brake.taints and subject.taint not in brake.taints:
            return None
        if brake.zones and subject.zone not in brake.zones:
            return None
        end_us, until_us = self.end_us, self.until_us(subject.pod_uid)
        if end_us is None or until_us is None:
            return Hold(brake.id, None)
        return None if subject.due_us > end_us or now_us >= until_us else Hold(brake.id, until_us)


class Brakes(msgspec.Struct, frozen=True):
    """All brakes that have been read.

    Attributes:
        standing: by id, also those that are over, until their records go or there are `MOST_BRAKES`.
        unreadable: what is wrong with each record that is no brake, by its key. While there is one, all is held:
            nobody knows what it was to hold.
        ended: by id, those that were over when there were too many to look at all of them again and again.
    """

    standing: Mapping[str, StandingBrake] = {}
    unreadable: Mapping[str, str] = {}
    ended: Mapping[str, StandingBrake] = {}

    def with_record(self, key: bytes | None, value: bytes | None, appended_ms: int) -> "Brakes":
        """Return the brakes after a record of the topic; one without a value removes what had its key."""
        appended_us = appended_ms * MILLISECOND_US
        before, ended = self.standing, self.ended
        if len(before) >= MOST_BRAKES:
            over = {name: one for name, one in before.items() if one.is_over(appended_us)}
            if over:
                before = {name: one for name, one in before.items() if name not in over}
                ended = {**ended, **over}
        if ended:
            ended = {name: one for name, one in ended.items() if name.encode() != key}

        def read(name: str, text: bytes, others: Mapping[str, StandingBrake]) -> StandingBrake | str:
            brake = decode_brake(text)
            if brake.id != name:
                return "the key is not the id of the brake"
            if len(others) >= MOST_BRAKES:
                return f"more than {MOST_BRAKES} brakes"
            return StandingBrake(brake, appended_us)

        return Brakes(*holds.with_record(before, self.unreadable, (key, value), read), ended)

    @property
    def all(self) -> Mapping[str, StandingBrake]:
        """All whose records are there, by id."""
        return {**self.ended, **self.standing}

    def objection(self) -> str | None:
        """Return why nothing may be evicted at all: a record cannot be read; None if all can."""
        for key, detail in self.unreadable.items():
            return f"brake {key!r} cannot be read ({detail}); write it again, or remove it with `evictstream release`"
        return None

    def in_force(self, now_us: int) -> Iterator[StandingBrake]:
        """Yield the brakes that have not ended, whatever they hold."""
        for standing in self.standing.values():
            end_us = standing.end_us
            if end_us is None or end_us > now_us:
                yield standing

    def of_cluster(self, cluster: str, now_us: int) -> tuple[StandingBrake, ...]:
        """Return the brakes that may hold evictions of a cluster now."""
        return tuple(
            standing
            for standing in self.standing.values()
            if (not standing.brake.clusters or cluster in standing.brake.clusters) and not standing.is_over(now_us)
        )


NO_BRAKES: Final = Brakes()
