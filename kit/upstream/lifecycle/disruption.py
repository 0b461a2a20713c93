"""Full disruption and its end: what the states of all zones together mean for their rates (semantics.md 8.4).

Source: `pkg/controller/nodelifecycle/node_lifecycle_controller.go` (`handleDisruption`). One
difference: zones without nodes are forgotten before states are compared. The source forgets them in a loop over a Go
map, in random order, which stops at the first zone that is not in full disruption.
"""

import dataclasses
import enum
from collections.abc import Mapping, Sequence

from evictstream.kit.upstream.lifecycle.settings import LifecycleSettings
from evictstream.kit.upstream.lifecycle.zones import ZoneState, zone_rate, zone_state


class Passage(enum.StrEnum):
    """The change of the cluster as a whole in a round."""

    NONE = "none"
    """Neither before nor now are all zones in full disruption; each zone has its own rate."""
    ENTERED = "entered"
    """Every zone is in full disruption now. All health NoExecute taints are removed, all queues stop."""
    REMAINS = "remains"
    """Every zone is in full disruption, as before. Nothing changes."""
    LEFT = "left"
    """Some zone has left full disruption. All nodes get a fresh grace period, all zones the rate of their state."""


@dataclasses.dataclass(frozen=True, slots=True)
class DisruptionStep:
    """The decisions of a round about zones.

    Attributes:
        passage: for the cluster.
        states: of all zones with at least one node that counts.
        rates: for the zones whose limiter is to be exchanged. A zone that stays in its state keeps its rate, even if
            it has grown beyond the threshold meanwhile.
    """

    passage: Passage
    states: Mapping[str, ZoneState]
    rates: Mapping[str, float]


def disruption_step(
    states_before: Mapping[str, ZoneState],
    ready_statuses: Mapping[str, Sequence[str | None]],
    settings: LifecycleSettings,
) -> DisruptionStep:
    """Decide about zones at the end of a round.

    Args:
        states_before: the states after the previous round.
        ready_statuses: for each zone the status of `Ready` after this round's update of each node that counts.
        settings: rates and thresholds.
    """
    states = {
        zone: zone_state(statuses, settings.unhealthy_zone_threshold)[1] for zone, statuses in ready_statuses.items()
    }
    before = {zone: states_before.get(zone, ZoneState.INITIAL) for zone in states}
    all_are_full = all(state is ZoneState.FULL_DISRUPTION for state in states.values())
    all_were_full = all(state is ZoneState.FULL_DISRUPTION for state in before.values())
    if all_are_full and all_were_full:
        return DisruptionStep(Passage.REMAINS if states else Passage.NONE, states, {})
    if all_are_full:
        return DisruptionStep(Passage.ENTERED, states, dict.fromkeys(states, 0.0))
    changed = states if all_were_full else {zone: state for zone, state in states.items() if state is not before[zone]}
    rates = {zone: zone_rate(state, len(ready_statuses[zone]), settings) for zone, state in changed.items()}
    return DisruptionStep(Passage.LEFT if all_were_full else Passage.NONE, states, rates)
