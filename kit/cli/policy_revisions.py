"""The next revisions of policies that people have written into files."""

from __future__ import annotations

import datetime as dt
from collections.abc import Container, Sized

import msgspec

from evictstream.kit.cli.policy_files import WrittenPolicy
from evictstream.models.messages.incident import IncidentAnswer
from evictstream.models.messages.policy import MOST_INCIDENT_ANSWERS, POLICY_KIND, EarlierSpec, Policy
from evictstream.models.messages.vocabulary import API_VERSION
from evictstream.models.steering.policies import MOST_POLICIES, Policies
from evictstream.streams.cli.steering_records import check_why, who
from evictstream.streams.errors import FoundProblemError, WrongUseError


def revised(written: list[WrittenPolicy], policies: Policies, why: str | None) -> list[Policy]:
    """Return the next revisions of those that differ from what stands.

    Raises:
        WrongUseError: nobody says why.
        FoundProblemError: there would be too many.
    """
    found = []
    for one in written:
        standing = policies.standing.get(one.name)
        reason = check_why(why) if why is not None else one.why
        if standing is not None and _is_as_written(standing.policy, one, reason):
            continue
        if not reason:
            raise WrongUseError(f"policy {one.name} does not say why", next_step="write `why:` into it, or give --why")
        found.append(next_revision(one.name, policies, why=reason, written=one))
    standing_names = {name for name, one in policies.standing.items() if one.policy.spec is not None}
    if len(standing_names.union(one.name for one in written)) > MOST_POLICIES:
        raise FoundProblemError(
            f"there would be more than {MOST_POLICIES} policies", next_step="write the patterns into fewer"
        )
    return found


def _is_as_written(policy: Policy, written: WrittenPolicy, why: str) -> bool:
    same = (policy.spec, policy.spread_seconds) == (written.spec, written.spread_seconds)
    return same and why in ("", policy.why)


def next_revision(name: str, policies: Policies, *, why: str, written: WrittenPolicy | None = None) -> Policy:
    """Return the record after the one that stands; one without a spec where nothing is written.

    It keeps the spreads that went on when that one was appended, by Kafka's clock. One that has ended since holds
    nothing; the clock of this machine may be hours ahead, and would end a spread too early.
    """
    standing = policies.standing.get(name)
    spread_seconds = 60 if written is None else written.spread_seconds
    spec = None if written is None else written.spec
    earlier: tuple[EarlierSpec, ...] = ()
    if standing is not None:
        if written is None:
            spread_seconds = standing.policy.spread_seconds
        earlier = standing.replaced_by(spec, standing.appended_us)
    return Policy(
        api_version=API_VERSION,
        kind=POLICY_KIND,
        name=name,
        revision=1 if standing is None else standing.policy.revision + 1,
        why=why,
        by=who(),
        applied_at=dt.datetime.now(dt.UTC),
        spec=spec,
        spread_seconds=spread_seconds,
        earlier=earlier,
        answers=() if spec is None or standing is None else standing.kept_answers(),
    )


def answered(
    policies: Policies,
    name: str,
    *new: IncidentAnswer,
    applied_at: dt.datetime,
    standing_ids: Container[str] | None = None,
) -> Policy:
    """Return the record after the one that stands, with new answers to its incidents; it does as before.

    Where there is no room for all answers, those to incidents that have ended go.

    Args:
        policies: as they stand.
        name: of the policy.
        new: the answers.
        applied_at: when, for people.
        standing_ids: the incidents that stand; None if they are not all known.

    Raises:
        FoundProblemError: there is no such policy any more, its record cannot be read, or it has no room.
    """
    standing = policies.standing.get(name)
    if standing is None or standing.policy.spec is None:
        raise FoundProblemError(
            f"there is no policy {name} any more, or it cannot be read", next_step="evictstream policy get shows them"
        )
    incidents = {one.incident for one in new}
    answers = (*new, *(one for one in standing.kept_answers() if one.incident not in incidents))
    if len(answers) > MOST_INCIDENT_ANSWERS and standing_ids is not None:
        answers = tuple(one for one in answers if one in new or one.incident in standing_ids)
    check_room(name, answers)
    return msgspec.structs.replace(
        standing.policy,
        revision=standing.policy.revision + 1,
        by=who(),
        applied_at=applied_at,
        earlier=standing.replaced_by(standing.policy.spec, standing.appended_us),
        answers=answers,
    )


def check_room(name: str, answers: Sized) -> None:
    """Refuse more answers than a record may have.

    Raises:
        FoundProblemError: there are more.
    """
    if len(answers) > MOST_INCIDENT_ANSWERS:
        raise FoundProblemError(
            f"policy {name} has {MOST_INCIDENT_ANSWERS} answers to incidents that have not ended",
            next_step="take the taints of one of them away, and answer then; evictstream incidents list shows them",
        )
