"""What was recorded while commands were played to an executor."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from evictstream.kit.conformance.command_writer import PlayedCommand
from evictstream.kit.conformance.fake_faults import ApiWrite
from evictstream.kit.conformance.process_rules import ProcessEvidence
from evictstream.kit.conformance.topic_recorder import SeenRecord
from evictstream.models.instants import microseconds
from evictstream.models.messages.executor_report import decode_report, is_report
from evictstream.models.messages.result import decode_result

WAITS: Final = ("Accepted", "Waits")
"""What is said of an eviction before it is done: `Accepted`, or that a report has it in its queue."""

KILLED_CASE: Final = "kill"
"""The case in whose midst the executor is killed."""


class PlayedBrake(NamedTuple):
    """A brake that was played; seconds since 1970.

    Attributes:
        name: its id.
        set_at: its append time.
        released_at: when its release was sent.
    """

    name: str
    set_at: float
    released_at: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SeenResult:
    """A record of the results topic: a result, or a report of a queue.

    Attributes:
        at: when it was read, seconds since 1970: never before it was written.
        partition: where.
        key: as it came.
        body: its fields, as far as it is a JSON object.
        problem: why the service would not read it; empty if it would.
        read_to_us: of a report: the latest `issuedAt` that was read; all up to it that is not answered is in its queue.
    """

    at: float
    partition: int
    key: bytes | None
    body: dict[str, Any]
    problem: str
    read_to_us: int | None = None

    @classmethod
    def of(cls, record: SeenRecord) -> SeenResult:
        """Read a record."""
        is_of_queue = is_report(record.value or b"")
        body, problem = record.read(decode_report if is_of_queue else decode_result)
        read_to_us = None
        if is_of_queue and not problem:
            read_to_us = microseconds(decode_report(record.value or b"").read_to)
        return cls(
            at=record.at,
            partition=record.partition,
            key=record.key,
            body=body,
            problem=problem,
            read_to_us=read_to_us,
        )

    @property
    def outcome(self) -> str:
        """What it says was done."""
        return str(self.body.get("outcome", "" if self.read_to_us is None else "Waits"))

    def is_about(self, command: PlayedCommand) -> bool:
        """Whether it is a result of this eviction and attempt, or a report that has it in its queue if not answered."""
        if self.read_to_us is not None:
            return command.action == "Evict" and self.at >= command.at and command.issued_at_us <= self.read_to_us
        return self.body.get("evictionId") == command.eviction_id and self.body.get("attempt") == command.attempt


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorEvidence:
    """Everything that the rules look at.

    Attributes:
        commands: in the order in which they were written.
        results: in the order in which they were read.
        writes: of the API server.
        partitions: of each topic.
        killed_at: when the executor was killed; None if it was not.
        brake: the one that holds its cluster; None if none was played.
        process: what became of it.
    """

    commands: Sequence[PlayedCommand]
    results: Sequence[SeenResult]
    writes: Sequence[ApiWrite]
    partitions: int
    killed_at: float | None = None
    brake: PlayedBrake | None = None
    process: ProcessEvidence = dataclasses.field(default_factory=ProcessEvidence)

    def of(self, case: str, action: str = "Evict") -> list[PlayedCommand]:
        """List the commands of a case, in order."""
        return [command for command in self.commands if command.case == case and command.action == action]

    def answers(self, command: PlayedCommand) -> list[SeenResult]:
        """List the results that name this eviction and attempt, and before its outcome the reports that have it.

        Of what was over before the kill only those before it: whoever is killed may answer it all again.
        """
        until = self.killed_at if self.killed_at is not None and command.case != KILLED_CASE else float("inf")
        found = [result for result in self.results if result.at < until and result.is_about(command)]
        ended_at = min((one.at for one in found if one.outcome not in WAITS), default=until)
        return [one for one in found if one.read_to_us is None or one.at < ended_at]

    def finals(self, command: PlayedCommand) -> list[SeenResult]:
        """List its answers without those that say that it waits."""
        return [answer for answer in self.answers(command) if answer.outcome not in WAITS]

    def outcomes(self, command: PlayedCommand) -> list[str]:
        """List what its answers say was done."""
        return [answer.outcome for answer in self.finals(command)]

    def removals(self, pod: str) -> list[ApiWrite]:
        """List deletes and evictions of the pod of this name, done or refused, without dry runs."""
        return [write for write in self.writes if write.is_removal and write.name == pod and not write.is_dry_run]
