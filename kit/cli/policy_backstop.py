"""What policies outlast: Kubernetes' own controller goes on with pods that they hold (docs/managed-clusters.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evictstream.kit.cli.seeing import read_known_cluster
from evictstream.streams.cli.backstop import outlasted_text, warn_not_known
from evictstream.streams.cli.output import warn
from evictstream.streams.errors import EvictstreamError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evictstream.kit.see.stored_state import StoredState
    from evictstream.models.messages.policy import Policy
    from evictstream.models.steering.policies import Policies
    from evictstream.streams.settings import Settings


def read_and_tell_outlasted(
    settings: Settings, policies: Policies, changed: Iterable[Policy], now_us: int
) -> StoredState | None:
    """Say on stderr what policies that were written outlast; they stand, whatever happens here.

    Returns the rows; None where they are not needed for this, or could not be read.
    """
    names = [policy.name for policy in changed if policy.spec is not None and policy.spec.may_hold]
    if not names:
        return None
    try:
        state = read_known_cluster(settings, None).state
    except EvictstreamError as error:
        warn_not_known(error)
        return None
    tell_outlasted_by_policies(settings, policies, names, state, now_us)
    return state


def tell_outlasted_by_policies(
    settings: Settings, policies: Policies, names: Iterable[str], state: StoredState, now_us: int
) -> None:
    """Say on stderr what of these policies outlasts the backstop, by rows."""
    from evictstream.models.eviction.backstop import outlasted_by
    from evictstream.models.steering.holds import policy_holder
    from evictstream.models.steering.policies import Policies as SomePolicies
    from evictstream.streams.worker.service_config import cluster_rules

    some = SomePolicies({name: policies.standing[name] for name in names if name in policies.standing})
    nodes = [stored.aggregate for stored in state.nodes()]
    found = outlasted_by(some.of_cluster, nodes, now_us, cluster_rules(settings).usual)
    for name in some.standing:
        if policy_holder(name) in found:
            warn(outlasted_text(f"policy {name}", found[policy_holder(name)]))
