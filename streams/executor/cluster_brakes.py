"""The brakes of one cluster, as its executor asks for them: before any request for an eviction, and before each write.

Workers hold evictions back too. What an executor does not leave to them: a brake stops what is issued already, while no
worker runs, and where it names zones, the node itself says in which it is. It ends by Kafka's clock: a clock that is
ahead here ends it no sooner.
"""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol

from evictstream.models.execution.command_log import CommandAnswer
from evictstream.models.instants import SECOND_US, instant_text, instant_us
from evictstream.models.messages.command import EvictionCommand
from evictstream.models.messages.vocabulary import Outcome
from evictstream.models.steering.brakes import NO_BRAKES, Brakes, StandingBrake
from evictstream.models.steering.holds import Subject, longest, longest_hold
from evictstream.streams.broker.kafka_time import KafkaTime

WAITED_FOR_SECONDS: Final = 60.0
"""A hold that ends so soon is waited for here. After a longer one is answered, the service sends the next attempt that
much later, or when it knows itself that the brake is gone."""


class KnownBrakes(Protocol):
    """All brakes, and whether they are known, as a `BrakesReader` has them."""

    @property
    def kafka_time(self) -> KafkaTime:
        """By which brakes end."""
        ...

    @property
    def brakes(self) -> Brakes:
        """The newest, the same object until they change."""
        ...

    def objection(self) -> str | None:
        """Return why nothing may be evicted now; None if `brakes` says all."""
        ...


class Unbraked:
    """For an executor that only observes: it evicts nothing that could be held."""

    brakes: Brakes = NO_BRAKES
    kafka_time = KafkaTime()

    def objection(self) -> str | None:
        """Return None."""
        return None


UNBRAKED: Final = Unbraked()


class HeldEviction(NamedTuple):
    """An eviction that a brake holds.

    Attributes:
        brake: its id.
        seconds: how long the hold lasts; None until somebody releases it.
        reason: for people.
    """

    brake: str
    seconds: float | None
    reason: str

    @property
    def wait_seconds(self) -> float | None:
        """How long it waits here for the end; None if it is answered."""
        return self.seconds if self.seconds is not None and self.seconds <= WAITED_FOR_SECONDS else None

    @property
    def answer(self) -> CommandAnswer:
        """The answer to its command."""
        return CommandAnswer(Outcome.HELD, self.reason, self.brake)


class ClusterBrakes:
    """Tells what of a cluster is held. Used by several threads."""

    def __init__(self, known: KnownBrakes, cluster: str) -> None:
        self._known = known
        self._cluster = cluster
        self._of_cluster: tuple[Brakes, tuple[StandingBrake, ...]] = (NO_BRAKES, ())

    @property
    def all(self) -> Brakes:
        """The newest brakes of all clusters: another object after each change."""
        return self._known.brakes

    def note_answer(self, appended_ms: int) -> None:
        """Take in the append time with which Kafka has just confirmed a result; milliseconds since 1970."""
        self._known.kafka_time.note_answer(appended_ms)

    def objection(self) -> str | None:
        """Return why nothing may be evicted now: it is not known what is held; None if it is."""
        return self._known.objection()

    def standing(self, now_us: int) -> tuple[str, ...]:
        """Return the ids of the brakes that may hold something here now, microseconds since 1970.

        Who stands by has no answer of Kafka, and would go on to name what is over.
        """
        kafka_us = self._known.kafka_time.earlier(now_us)
        told_us = kafka_us if self._known.kafka_time.is_near else now_us
        return tuple(one.brake.id for one in self._mine(kafka_us) if not one.is_over(told_us))

    def held(self, command: EvictionCommand, now_us: int, *, zone: str | None = None) -> HeldEviction | None:
        """Return by what an eviction is held; None if it may go.

        Args:
            command: with the action `Evict`.
            now_us: the executor's clock. If Kafka's is behind it, that one counts, and `issuedAt` if it is later.
            zone: of the command's node; None before it was looked at. No brake with zones holds it then.
        """
        now_us = self._known.kafka_time.earlier(now_us)
        brakes = self._mine(now_us)
        if not brakes:
            return None
        issued_us, deadline_us = instant_us(command.issued_at), instant_us(command.deadline)
        now_us = max(now_us, issued_us)
        # Who has issued it after a brake's end has spread it, unless the worker knew no zone, or another one.
        due_us = max(deadline_us, issued_us)
        subject = Subject(command.namespace, command.pod_uid, command.reason.taint.key, due_us)
        hold = longest_hold((one for one in brakes if not one.brake.zones), subject, now_us)
        if zone is not None and (hold is None or hold.until_us is not None):
            of_zone = subject._replace(zone=zone, due_us=deadline_us)
            hold = longest((hold, longest_hold((one for one in brakes if one.brake.zones), of_zone, now_us)))
        if hold is None:
            return None
        brake = next(one.brake for one in brakes if one.brake.id == hold.by)
        seconds = None if hold.until_us is None else (hold.until_us - now_us) / SECOND_US
        end = "until it is released" if hold.until_us is None else f"until {instant_text(hold.until_us)}"
        return HeldEviction(brake.id, seconds, f"brake {brake.id} of {brake.by} holds it {end}: {brake.why}")

    def _mine(self, now_us: int) -> tuple[StandingBrake, ...]:
        """Return the brakes of this cluster, chosen once for each change of all: what is over by then stays so."""
        known, of_cluster = self._known.brakes, self._of_cluster
        if of_cluster[0] is not known:
            of_cluster = self._of_cluster = known, known.of_cluster(self._cluster, now_us)
        return of_cluster[1]
