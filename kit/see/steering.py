"""Brakes and policies together, for what shows what they hold."""

from __future__ import annotations

from typing import Final, NamedTuple

from evictstream.models.steering.brakes import NO_BRAKES, Brakes
from evictstream.models.steering.holds import Holder
from evictstream.models.steering.policies import NO_POLICIES, Policies


class Steering(NamedTuple):
    """What may hold evictions.

    Attributes:
        brakes: all.
        policies: all.
    """

    brakes: Brakes = NO_BRAKES
    policies: Policies = NO_POLICIES

    def of_cluster(self, cluster: str, now_us: int) -> tuple[Holder, ...]:
        """Return what may hold evictions of a cluster now."""
        return (*self.brakes.of_cluster(cluster, now_us), *self.policies.of_cluster(cluster))


UNSTEERED: Final = Steering()
