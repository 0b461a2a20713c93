"""Writes revisions of policies so that people who write at the same time lose nothing of one another.

A record replaces the one before as a whole, with the answers to incidents, and Kafka appends it whatever came between.
So each is made from the newest view, and made again if another one had come before it was appended.
"""

from __future__ import annotations

import datetime as dt
import random
import time
from collections.abc import Callable, Container, Iterable, Mapping
from functools import partial
from typing import Final

import msgspec

from evictstream.kit.cli.policy_revisions import answered, check_room
from evictstream.models.instants import MILLISECOND_US, SECOND_US, moment_at
from evictstream.models.messages.codec import encode
from evictstream.models.messages.incident import IncidentAnswer
from evictstream.models.messages.policy import Policy
from evictstream.models.steering.policies import Policies
from evictstream.streams.broker.steering_readers import PoliciesReader
from evictstream.streams.cli.steering_records import REMEMBERED_SECONDS, SteeringWriter
from evictstream.streams.errors import FoundProblemError

_MOST_TRIES: Final = 5
_LONGEST_PAUSE_SECONDS: Final = 0.5
"""Before another try, at random: those who have written at once do not go on at once."""

_FROM_NOW: Final = dt.datetime.max.replace(tzinfo=dt.UTC)


def write_next(
    writer: SteeringWriter, reader: PoliciesReader, name: str, make: Callable[[Policies], Policy | None]
) -> Policy | None:
    """Write the next revision of a policy; returns it, or None if there is nothing to write.

    Args:
        writer: of the topic.
        reader: of the same.
        name: of the policy.
        make: returns the next revision of some policies; None if nothing is to change.

    Raises:
        FoundProblemError: others write it all the time, have deleted what was to be changed, or left no room for it.
        BrokerError: Kafka does not take it.
    """
    base = made_from = reader.policies
    policy = make(base)
    if policy is None:
        return None
    lost: dict[str, IncidentAnswer] = {}
    for _ in range(_MOST_TRIES):
        before: Policies = _append(writer, policy)
        if _record(before, name) == _record(base, name):
            return policy
        time.sleep(random.uniform(0, _LONGEST_PAUSE_SECONDS))  # noqa: S311 - no secret
        if name in before.standing:  # the answers that `make` has seen it has kept, or dropped on purpose
            seen = made_from.standing[name].kept_answers() if name in made_from.standing else ()
            lost = _newest((*lost.values(), *(one for one in before.standing[name].kept_answers() if one not in seen)))
        base = reader.policies
        newest = _record(base, name)
        is_own = newest is not None and encode(newest) == encode(policy)
        made_from = before if is_own else base
        revision = max(policy.revision, 0 if newest is None else newest.revision) + 1
        try:
            policy = make(made_from) or answered(made_from, name, applied_at=policy.applied_at)
            policy = msgspec.structs.replace(_with_answers(policy, lost), revision=revision)
        except FoundProblemError:
            deleted = _record(made_from, name)
            if is_own and deleted is not None:  # what others have written, such as that it is deleted, stays
                writer.append(name, encode(msgspec.structs.replace(deleted, revision=revision)))
            raise
    raise FoundProblemError(
        f"others write policy {name} at the same time: what they or you have changed may be lost",
        next_step="look with `evictstream policy get` and `evictstream incidents list`, and give the command again",
    )


def remove_old_policies(writer: SteeringWriter, reader: PoliciesReader) -> None:
    """Remove the records of policies that were deleted long ago, by Kafka's clock.

    Raises:
        BrokerError: Kafka does not take it.
    """
    long_ago_us = writer.now_us() - REMEMBERED_SECONDS * SECOND_US
    for name, standing in reader.policies.standing.items():
        if not standing.is_over(long_ago_us) or reader.policies.standing.get(name) is not standing:
            continue
        removed = writer.remove(name).before.standing.get(name)
        if removed is not None and removed is not standing:  # somebody has applied it again just now
            writer.append(name, encode(removed.policy))


def write_answer(
    writer: SteeringWriter,
    reader: PoliciesReader,
    policy_name: str,
    answer: IncidentAnswer,
    *,
    seconds: int | None,
    standing_ids: Container[str] | None,
) -> tuple[Policy, IncidentAnswer]:
    """Write an answer that counts for some seconds; returns the policy, and the answer with its end.

    Raises:
        FoundProblemError: the policy is not there any more, or has no room.
        BrokerError: Kafka does not take it.
    """
    if seconds is not None:  # by Kafka's clock, as holds; a revision that answers nothing yet tells it
        write_next(writer, reader, policy_name, lambda now: answered(now, policy_name, applied_at=answer.answered_at))
        now_us = writer.now_us()
        answer = msgspec.structs.replace(
            answer, answered_at=moment_at(now_us), expires_at=moment_at(now_us + seconds * SECOND_US)
        )
    written = partial(answered, applied_at=answer.answered_at, standing_ids=standing_ids)
    policy = write_next(writer, reader, policy_name, lambda now: written(now, policy_name, answer))
    assert policy is not None  # noqa: S101 - an answer is always written
    return policy, answer


def _append(writer: SteeringWriter, policy: Policy) -> Policies:
    """Append a revision; returns what stood before.

    Raises:
        FoundProblemError: it cannot be read, as one policy too many; what stood before stands again.
    """
    name, value = policy.name, encode(policy)
    before, at_us = writer.append(name, value)
    problem = before.with_record(name.encode(), value, at_us // MILLISECOND_US).unreadable.get(name)
    if problem is None:
        found: Policies = before
        return found
    replaced = _record(before, name)
    if replaced is None:
        writer.remove(name)
    else:
        writer.append(name, encode(replaced))
    raise FoundProblemError(
        f"policy {name} does not stand: {problem}", next_step="delete one, or write the patterns into fewer"
    )


def _record(policies: Policies, name: str) -> Policy | None:
    standing = policies.standing.get(name)
    return None if standing is None else standing.policy


def _with_answers(policy: Policy, others: Mapping[str, IncidentAnswer]) -> Policy:
    """Return a policy with the answers of others too; of two to one incident the later one stays."""
    if policy.spec is None or not others:
        return policy
    answers = _newest((*others.values(), *policy.answers))
    check_room(policy.name, answers)
    return msgspec.structs.replace(policy, answers=tuple(sorted(answers.values(), key=_counts_from, reverse=True)))


def _newest(answers: Iterable[IncidentAnswer]) -> dict[str, IncidentAnswer]:
    return {one.incident: one for one in sorted(answers, key=_counts_from)}


def _counts_from(answer: IncidentAnswer) -> dt.datetime:
    return answer.counts_from or _FROM_NOW
