"""What was recorded while commands were played to an executor."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Final

from evictstream.kit.conformance.command_writer import PlayedCommand
from evictstream.kit.conformance.fake_faults import ApiWrite
from evictstream.kit.conformance.process_rules import ProcessEvidence
from evictstream.kit.conformance.topic_recorder import SeenRecord
from evictstream.models.messages.result import decode_result

KILLED_CASE: Final = "kill"
"""The case in whose midst the executor is killed."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SeenResult:
    """A record of the results topic.

    Attributes:
        at: when it was read, seconds since 1970: never before it was written.
        partition: where.
        key: as it came.
        body: its fields, as far as it is a JSON object.
        problem: why the service would not read it; empty if it would.
    """

    at: float
    partition: int
    key: bytes | None
    body: dict[str, Any]
    problem: str

    @classmethod
    def of(cls, record: SeenRecord) -> SeenResult:
        """Read a record."""
        body, problem = record.read(decode_result)
        return cls(at=record.at, partition=record.partition, key=record.key, body=body, problem=problem)

    @property
    def outcome(self) -> str:
        """What it says was done."""
        return str(self.body.get("outcome", ""))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorEvidence:
    """Everything that the rules look at.

    Attributes:
        commands: in the order in which they were written.
        results: in the order in which they were read.
        writes: of the API server.
        partitions: of each topic.
        killed_at: when the executor was killed; None if it was not.
        process: what became of it.
    """

    commands: Sequence[PlayedCommand]
    results: Sequence[SeenResult]
    writes: Sequence[ApiWrite]
    partitions: int
    killed_at: float | None = None
    process: ProcessEvidence = dataclasses.field(default_factory=ProcessEvidence)

    def of(self, case: str, action: str = "Evict") -> list[PlayedCommand]:
        """List the commands of a case, in order."""
        return [command for command in self.commands if command.case == case and command.action == action]

    def answers(self, command: PlayedCommand) -> list[SeenResult]:
        """List the results that name this eviction and attempt.

        Of what was over before the kill only those before it: whoever is killed may answer it all again.
        """
        until = self.killed_at if self.killed_at is not None and command.case != KILLED_CASE else float("inf")
        return [
            result
            for result in self.results
            if result.body.get("evictionId") == command.eviction_id
            and result.body.get("attempt") == command.attempt
            and result.at < until
        ]

    def finals(self, command: PlayedCommand) -> list[SeenResult]:
        """List its answers without `Accepted`, which another one follows."""
        return [answer for answer in self.answers(command) if answer.outcome != "Accepted"]

    def outcomes(self, command: PlayedCommand) -> list[str]:
        """List what its answers say was done."""
        return [answer.outcome for answer in self.finals(command)]

    def removals(self, pod: str) -> list[ApiWrite]:
        """List deletes and evictions of the pod of this name, done or refused, without dry runs."""
        return [write for write in self.writes if write.is_removal and write.name == pod and not write.is_dry_run]
