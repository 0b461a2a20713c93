"""Brakes as a list shows them, and how many evictions each holds."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterator, Mapping

import msgspec

from evictstream.kit.see.stored_state import StoredState
from evictstream.models.eviction import EvictionState
from evictstream.models.eviction.backstop import Outlasted
from evictstream.models.eviction.held_attempts import subject_of
from evictstream.models.instants import SECOND_US, instant_text
from evictstream.models.messages.brake import Brake
from evictstream.models.steering.brakes import Brakes, StandingBrake


class SeenBrakeState(enum.StrEnum):
    """What a brake does now."""

    HOLDS = "Holds"
    SPREADS = "Spreads"
    """It has ended; what was due before goes little by little."""
    UNREADABLE = "Unreadable"
    """Nobody knows what it holds, so nothing is evicted at all."""


class ListedBrake(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True, kw_only=True):
    """One brake.

    Attributes:
        region: where it stands; empty where no regions are set.
        since: when its newest record was appended.
        ends_at: when it ends or has ended; None until somebody releases it.
        spread_ends_at: when the last of what was due at the end goes; None as before.
        brake: the record; None if it cannot be read.
        evictions: how many that are due it holds, by the rows; None if they were not counted.
        built_in_at: when Kubernetes' own controller goes on with the first pod that the brake holds, if that is before
            the hold ends; None also where the rows were not read.
        problem: why the record cannot be read.
    """

    id: str
    state: SeenBrakeState
    region: str = ""
    since: str | None = None
    ends_at: str | None = None
    spread_ends_at: str | None = None
    brake: Brake | None = None
    evictions: int | None = None
    built_in_at: str | None = None
    problem: str = ""


def listed_brakes(
    brakes: Brakes,
    now_us: int,
    evictions: Mapping[str, int] | None = None,
    outlasted: Mapping[str, Outlasted] | None = None,
) -> Iterator[ListedBrake]:
    """Yield the brakes that hold or spread something now, the oldest first, behind records that cannot be read.

    Args:
        brakes: all.
        now_us: microseconds since 1970.
        evictions: how many each holds, by id, as `count_held` has counted them; None if nobody has.
        outlasted: what each outlasts, by id; None if nobody has looked.
    """
    for key, problem in brakes.unreadable.items():
        yield ListedBrake(id=key, state=SeenBrakeState.UNREADABLE, problem=problem)
    for standing in sorted(brakes.standing.values(), key=lambda one: one.appended_us):
        if not standing.is_over(now_us):
            yield _listed(standing, now_us, evictions, None if outlasted is None else outlasted.get(standing.brake.id))


def _listed(
    standing: StandingBrake, now_us: int, evictions: Mapping[str, int] | None, outlasted: Outlasted | None
) -> ListedBrake:
    brake, end_us = standing.brake, standing.end_us
    return ListedBrake(
        id=brake.id,
        state=SeenBrakeState.HOLDS if end_us is None or now_us < end_us else SeenBrakeState.SPREADS,
        since=instant_text(standing.appended_us),
        ends_at=None if end_us is None else instant_text(end_us),
        spread_ends_at=None if end_us is None else instant_text(end_us + brake.spread_seconds * SECOND_US),
        brake=brake,
        evictions=None if evictions is None else evictions.get(brake.id, 0),
        built_in_at=None if outlasted is None else instant_text(outlasted.built_in_us),
    )


def count_held(brakes: Brakes, state: StoredState, now_us: int) -> Counter[str]:
    """Count the evictions that are due and held, by the id of the brake; some are held by several."""
    held: Counter[str] = Counter()
    of_cluster: dict[str, tuple[StandingBrake, ...]] = {}
    for stored in state.nodes():
        cluster = stored.aggregate.cluster
        if cluster not in of_cluster:
            of_cluster[cluster] = brakes.of_cluster(cluster, now_us)
        for pod in stored.aggregate.pods.values() if of_cluster[cluster] else ():
            eviction = pod.eviction
            if eviction is None or eviction.state is EvictionState.DONE or eviction.owed_us > now_us:
                continue
            subject = subject_of(stored.aggregate, pod, eviction, eviction.due)
            held.update(one.brake.id for one in of_cluster[cluster] if one.hold(subject, now_us) is not None)
    return held
