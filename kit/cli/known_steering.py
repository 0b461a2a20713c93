"""Brakes and policies for a command that shows what is owed: they say what holds it."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, TypeVar

from evictstream.streams.cli.output import warn
from evictstream.streams.errors import BrokerRefusedError, BrokerUnreachableError, TopicsDifferError

if TYPE_CHECKING:
    from evictstream.kit.see.steering import Steering
    from evictstream.streams.broker.steering_readers import SteeringReader
    from evictstream.streams.settings import Settings

_Reader = TypeVar("_Reader", bound="SteeringReader[Any]")

_PATIENCE_SECONDS: Final = 5.0
"""For each topic to be read, which takes a tenth of a second. Without them the list is shown all the same."""


@contextlib.contextmanager
def known_steering(settings: Settings, *, is_timed: bool = True) -> Iterator[Callable[[], Steering]]:
    """Read brakes and policies; gives what returns the newest, and if `is_timed` the time by which they end.

    Where this user may not read them, that is said on stderr, and so is a record because of which nothing is evicted.

    Raises:
        BrokerUnreachableError: no broker answered in time.
    """
    from evictstream.kit.cli.kafka_clock import KafkaClock
    from evictstream.kit.see.steering import Steering
    from evictstream.models.steering.brakes import NO_BRAKES
    from evictstream.models.steering.policies import NO_POLICIES
    from evictstream.streams.broker.steering_readers import BrakesReader, PoliciesReader
    from evictstream.streams.worker.service_config import cluster_rules

    rules = cluster_rules(settings).usual
    with contextlib.ExitStack() as stack:
        brakes = _opened(stack, settings, "brakes", settings.brakes_topic, BrakesReader)
        policies = _opened(stack, settings, "policies", settings.policies_topic, PoliciesReader)
        clock = KafkaClock(settings, brakes, policies)

        def newest() -> Steering:
            problems = {gate: one.unreadable() for gate, one in (("brakes", brakes), ("policies", policies)) if one}
            steering = Steering(
                NO_BRAKES if brakes is None else brakes.view,
                NO_POLICIES if policies is None else policies.view,
                rules,
                {gate: problem for gate, problem in problems.items() if problem is not None},
            )
            if not is_timed:
                return steering
            at_us = clock.look(steering.brakes, has_policies=bool(steering.policies.standing))
            return steering._replace(at_us=at_us)

        tell_unreadable(newest())
        yield newest


def tell_unreadable(steering: Steering, before: Steering | None = None) -> None:
    """Say on stderr which records let nothing be evicted; of a later look only what was not so `before`."""
    for gate, problem in steering.unreadable.items():
        if before is None or before.unreadable.get(gate) != problem:
            warn(f"nothing is evicted: {problem}")


def _opened(
    stack: contextlib.ExitStack, settings: Settings, what: str, topic: str, reader_of: Callable[[Settings], _Reader]
) -> _Reader | None:
    """Open a reader that has read its topic to the end; None where this user may not read it."""
    from evictstream.streams.broker.admin import readable_partitions
    from evictstream.streams.cli.steering_records import wait_until

    try:
        readable_partitions(settings, topic)
    except (BrokerRefusedError, TopicsDifferError) as error:  # a service of an earlier version has no such topic
        if isinstance(error, BrokerRefusedError):
            warn(f"{what} are not considered: {error}")
        return None
    reader = reader_of(settings)
    stack.enter_context(reader)
    try:
        wait_until(settings, topic, lambda: math.isfinite(reader.age_seconds()), _PATIENCE_SECONDS)
    except BrokerUnreachableError:
        warn(f"{what} are not considered: they were not read in time")
    return reader


def tell_steering(settings: Settings, cluster: str, now_us: int) -> None:
    """Say on stderr which brakes and policies may hold evictions of a cluster now, microseconds since 1970."""
    with known_steering(settings) as newest:
        steering = newest()
        for standing in steering.brakes.of_cluster(cluster, steering.now_us(now_us)):
            brake = standing.brake
            warn(f"brake {brake.id} of {brake.by} holds evictions here ({brake.why}): they leave later than shown")
        for one in steering.policies.of_cluster(cluster):
            policy = one.policy
            if one.clauses is not None and one.clauses.spec.may_hold:
                warn(f"policy {policy.name} of {policy.by} holds evictions here ({policy.why}): they may leave later")
