"""How policies stand: what each holds in the fleet, and what that waits for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec

from evictstream.kit.see.fleet import FleetView
from evictstream.kit.see.policies import clauses_text, selected_text
from evictstream.models.instants import instant_text
from evictstream.models.messages.policy import Policy
from evictstream.models.steering.holds import is_of_policy, policy_holder
from evictstream.models.steering.policies import Policies


class PolicyStanding(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True, kw_only=True):
    """One policy.

    Attributes:
        held: evictions that it holds.
        oldest_due_at: since when the one is due that was held first; None if it holds none.
        waits_for: how many of them wait for which clause; `spread` for what a revision before has held. Workers of an
            earlier version do not say.
        clusters: in how many clusters it holds some.
        does: its clauses, in words; empty if it is deleted, or not known.
        selected: the evictions to which it applies, in words.
        since: when its newest revision was appended.
        problem: why its record cannot be read: nothing at all is evicted then.
    """

    name: str
    held: int = 0
    oldest_due_at: str | None = None
    waits_for: dict[str, int] = {}
    clusters: int = 0
    revision: int | None = None
    does: str = ""
    selected: str = ""
    why: str = ""
    by: str = ""
    since: str | None = None
    problem: str = ""


def policy_standings(view: FleetView, policies: Policies, cluster: str | None = None) -> list[PolicyStanding]:
    """List the policies that stand or hold something, those that hold most first.

    Args:
        view: what the fleet publishes.
        policies: all, as far as the user may read them.
        cluster: only what they hold there, and those that say something of it.
    """
    found = {one.name: one for one in _written(policies, cluster)}
    waits: dict[str, Counter[str]] = {}
    for holder in view.held_by(cluster):
        if not is_of_policy(holder.by):
            continue
        name = holder.by.removeprefix(policy_holder(""))
        one = found.get(name, PolicyStanding(name=name))
        waits.setdefault(name, Counter()).update(holder.clauses)
        oldest = holder.oldest_at if one.oldest_due_at is None else min(one.oldest_due_at, holder.oldest_at)
        found[name] = msgspec.structs.replace(
            one,
            held=one.held + holder.evictions,
            oldest_due_at=oldest,
            waits_for=dict(waits[name].most_common()),
            clusters=one.clusters + 1,
        )
    return sorted(found.values(), key=lambda one: (not one.problem, -one.held, one.name))


def _written(policies: Policies, cluster: str | None) -> Iterator[PolicyStanding]:
    for name, problem in policies.unreadable.items():
        yield PolicyStanding(name=name, problem=problem)
    for standing in policies.standing.values():
        if standing.policy.spec is not None and (cluster is None or standing.of_cluster(cluster) is not None):
            yield _of_policy(standing.policy, standing.appended_us)


def _of_policy(policy: Policy, appended_us: int) -> PolicyStanding:
    assert policy.spec is not None  # noqa: S101 - the caller has looked
    return PolicyStanding(
        name=policy.name,
        revision=policy.revision,
        does=clauses_text(policy.spec),
        selected=selected_text(policy.spec),
        why=policy.why,
        by=policy.by,
        since=instant_text(appended_us),
    )
