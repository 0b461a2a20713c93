"""Brakes and policies together, for what shows what they hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from evictstream.models.eviction import RuleParameters
from evictstream.models.steering.brakes import NO_BRAKES, Brakes
from evictstream.models.steering.holds import Holder
from evictstream.models.steering.incidents import OpenIncident, standing_incidents
from evictstream.models.steering.policies import NO_POLICIES, Policies


class Steering(NamedTuple):
    """What may hold evictions.

    Attributes:
        brakes: all.
        policies: all.
        rules: say when Kubernetes' own controller goes on with what they hold.
        unreadable: the gates that records close which cannot be read, `brakes` or `policies`, and what is wrong there.
            While there is one, nothing is evicted in any cluster.
        at_us: the time by which they end, microseconds since 1970; None for that of the one who asks.
    """

    brakes: Brakes = NO_BRAKES
    policies: Policies = NO_POLICIES
    rules: RuleParameters = RuleParameters()
    unreadable: Mapping[str, str] = {}
    at_us: int | None = None

    def now_us(self, local_us: int) -> int:
        """Return the time by which they end, where that of the one who asks is `local_us`."""
        return local_us if self.at_us is None else self.at_us

    def of_cluster(self, cluster: str, now_us: int, incidents: Sequence[OpenIncident] = ()) -> tuple[Holder, ...]:
        """Return what may hold evictions of a cluster now; `incidents` are those of its row."""
        policies = self.policies.of_cluster(cluster)
        return (*self.brakes.of_cluster(cluster, now_us), *policies, *standing_incidents(incidents, policies))


UNSTEERED: Final = Steering()
