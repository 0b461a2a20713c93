"""Policies of files, for commands that play a recording, or look ahead: nothing is written to Kafka."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

if TYPE_CHECKING:
    from evictstream.kit.replay.recorded_steering import RecordedSteering
    from evictstream.models.messages.policy import Policy
    from evictstream.models.steering.policies import Policies

PolicyOption: TypeAlias = Annotated[
    list[Path] | None,
    typer.Option("--policy", help="Policies of a file stand from the beginning on; repeatable.", metavar="FILE"),
]


def tried_policies(files: Iterable[Path]) -> tuple[list[Policy], Policies]:
    """Read files; returns the records that `policy apply` would write first, and what stands then.

    Raises:
        WrongUseError: a file is at fault.
    """
    from evictstream.kit.cli.policy_files import read_policy_files
    from evictstream.kit.cli.policy_revisions import next_revision
    from evictstream.models.messages.codec import encode
    from evictstream.models.steering.policies import NO_POLICIES

    written = read_policy_files(some) if (some := list(files)) else []
    records = [next_revision(one.name, NO_POLICIES, why=one.why or "tried", written=one) for one in written]
    policies = NO_POLICIES
    for record in records:
        policies = policies.with_record(record.name.encode(), encode(record), 0)
    return records, policies


def steering_of(files: Iterable[Path] | None, *, is_followed: bool = True) -> RecordedSteering:
    """Return what stands at the beginning of a replay: policies of files; `is_followed` as in `RecordedSteering`."""
    from evictstream.kit.replay.recorded_steering import RecordedSteering

    _, policies = tried_policies(files or ())
    return RecordedSteering(policies, is_followed=is_followed)
