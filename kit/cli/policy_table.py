"""The table of `evictstream policy get`, and a policy as a file has it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import yaml  # type: ignore[import-untyped]

from evictstream.kit.cli.policy_holds import hold_fields
from evictstream.kit.cli.policy_limits import in_flight_fields, rate_fields
from evictstream.kit.cli.see_tables import NOTHING, since_words
from evictstream.kit.see.policies import ListedPolicy, clauses_text, length_text, selected_text
from evictstream.models.messages.policy import Policy
from evictstream.models.messages.policy_clauses import PolicyGuard, PolicySelection
from evictstream.streams.cli.fitting import cut_end
from evictstream.streams.cli.lists import ListColumn, ListKind


def policies_kind(present_us: Callable[[], int]) -> ListKind[ListedPolicy]:
    """Describe the table of policies."""
    return ListKind(
        name="Policy",
        columns=(
            ListColumn("NAME", lambda one: one.name, usual=16),
            ListColumn("REVISION", _revision, rank=3),
            ListColumn("DOES", _does, usual=16),
            ListColumn("FOR", _selected, usual=30, least=12, cut=cut_end),
            ListColumn("SINCE", lambda one: since_words(one.since, present_us()), usual=9, rank=4),
            ListColumn("BY", lambda one: NOTHING if one.policy is None else one.policy.by, least=6, rank=2),
            ListColumn("WHY", _why, usual=20, least=10, rank=1, cut=cut_end),
        ),
        name_of=lambda one: one.name,
        is_alarming=lambda one: one.policy is None,
    )


def _revision(one: ListedPolicy) -> str:
    return NOTHING if one.policy is None else str(one.policy.revision)


def _does(one: ListedPolicy) -> str:
    if one.policy is None or one.policy.spec is None:
        return "unreadable: nothing is evicted"
    return clauses_text(one.policy.spec)


def _selected(one: ListedPolicy) -> str:
    return NOTHING if one.policy is None or one.policy.spec is None else selected_text(one.policy.spec)


def _why(one: ListedPolicy) -> str:
    return one.problem if one.policy is None else one.policy.why


def file_text(policy: Policy) -> str:
    """Write a policy as its file has it; who wrote it and when is left out."""
    spec = policy.spec
    fields: dict[str, Any] = {"name": policy.name, "why": policy.why}
    if spec is not None:
        fields["for"] = _selection(spec.selected)
        if spec.excluded is not None:
            fields["except"] = _selection(spec.excluded)
        if spec.observe:
            fields["observe"] = True
        for name, seconds in (("settle", spec.settle_seconds), ("patience", spec.patience_seconds)):
            if seconds is not None:
                fields[name] = length_text(seconds)
        if spec.limit is not None:
            fields["limit"] = rate_fields(spec.limit)
        elif spec.in_flight is not None:
            fields["limit"] = in_flight_fields(spec.in_flight)
        if spec.hold is not None:
            fields["hold"] = hold_fields(spec.hold)
        if spec.guard is not None:
            fields["guard"] = _guard(spec.guard)
    fields["spread"] = length_text(policy.spread_seconds)
    return str(yaml.safe_dump(fields, sort_keys=False))


def _guard(guard: PolicyGuard) -> dict[str, Any]:
    allowed: dict[str, Any] = {} if guard.count is None else {"count": guard.count}
    if guard.share_percent is not None:
        allowed["share"] = f"{guard.share_percent}%"
    release = guard.release_after_seconds
    return {
        "moreThan": allowed,
        "of": str(guard.of),
        "within": length_text(guard.within_seconds),
        "by": str(guard.by),
        "release": "person" if release is None else f"after {length_text(release)}",
    }


def _selection(selection: PolicySelection) -> dict[str, Any]:
    return dict(msgspec.json.decode(msgspec.json.encode(selection)))
