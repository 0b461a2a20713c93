"""Evidence without Kafka: what an executor without fault leaves behind, to be spoiled by a test."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from evictstream.kit.conformance.brake_rules import BRAKE_CASE
from evictstream.kit.conformance.command_writer import PlayedCommand, partition_of_key, uid_of
from evictstream.kit.conformance.executor_evidence import ExecutorEvidence, PlayedBrake, SeenResult
from evictstream.kit.conformance.executor_play import OTHER_CLUSTER
from evictstream.kit.conformance.executor_rules import EXECUTOR_RULES
from evictstream.kit.conformance.fake_faults import ApiWrite
from evictstream.kit.conformance.findings import judge_rules
from evictstream.kit.conformance.playground import CLUSTER
from evictstream.kit.conformance.process_rules import ProcessEvidence
from evictstream.models.instants import instant_text

PARTITIONS = 3
KILLED_AT = 500.0
DELETE = "delete pods"
PATCH = "patch pods/status"

Spoil = Callable[["ToldExecutor"], object]


class ToldExecutor:
    """Commands, results and writes in the order of a clock that each of them moves by a tenth of a second."""

    def __init__(self) -> None:
        self.now = 100.0
        self.commands: list[PlayedCommand] = []
        self.results: list[SeenResult] = []
        self.writes: list[ApiWrite] = []
        self.more: dict[str, Any] = {"killed_at": KILLED_AT, "process": ProcessEvidence(stop_seconds=0.2)}

    def evict(self, case: str, pod: str = "", **more: Any) -> PlayedCommand:
        pod = pod or case
        self.now += 0.1
        more = {"action": "Evict", "node": f"node-of-{case}", "pod_uid": uid_of(pod), "at": self.now, **more}
        self.commands.append(PlayedCommand(case=case, pod=pod, **more))
        return self.commands[-1]

    def answer(self, command: PlayedCommand, outcome: str, **more: Any) -> None:
        self.now += 0.1
        fields = {"cluster": command.cluster, "pod": command.pod, "podUid": command.pod_uid, "node": command.node}
        body = {"evictionId": command.eviction_id, "attempt": command.attempt, "outcome": outcome, **fields}
        partition = partition_of_key(command.key, PARTITIONS)
        result = SeenResult(at=self.now, partition=partition, key=command.key, body=body, problem="")
        self.results.append(dataclasses.replace(result, **more))

    def hold(self, command: PlayedCommand) -> None:
        """Answer that it is held."""
        self.answer(command, "Accepted")
        self.results[-1].body["heldBy"] = BRAKE_CASE

    def report(self, command: PlayedCommand, **more: Any) -> None:
        """Let the executor have all up to this command in its queue that is not answered."""
        self.now += 0.1
        key = CLUSTER.encode()
        read_to_us = command.issued_at_us
        body = {"kind": "ExecutorReport", "readTo": instant_text(read_to_us)}
        report = SeenResult(
            at=self.now,
            partition=partition_of_key(key, PARTITIONS),
            key=key,
            body=body,
            problem="",
            read_to_us=read_to_us,
        )
        self.results.append(dataclasses.replace(report, **more))

    def forget_reports(self) -> None:
        self.results = [one for one in self.results if one.read_to_us is None]

    def write(self, command: PlayedCommand, what: str = DELETE, **more: Any) -> None:
        self.now += 0.1
        write = ApiWrite(
            at=self.now,
            what=what,
            namespace="shop",
            name=command.pod,
            uid=command.pod_uid,
            done_to=command.pod_uid,
            status=200,
            body={"status": {"conditions": [{"type": "DisruptionTarget"}]}} if what == PATCH else {},
            is_dry_run=False,
        )
        self.writes.append(dataclasses.replace(write, **more))

    def do(self, command: PlayedCommand) -> None:
        self.write(command, PATCH)
        self.write(command)
        self.answer(command, "Succeeded")

    def refuse(self, command: PlayedCommand, status: int, outcome: str) -> None:
        self.write(command, status=status, done_to=None)
        self.answer(command, outcome)

    def evidence(self) -> ExecutorEvidence:
        return ExecutorEvidence(
            commands=self.commands,
            results=self.results,
            writes=self.writes,
            partitions=PARTITIONS,
            **self.more,
        )

    def standings(self) -> dict[str, str]:
        return {one.name: one.standing.value for one in judge_rules(EXECUTOR_RULES, self.evidence())}

    def of(self, case: str, number: int = 0) -> PlayedCommand:
        return [one for one in self.commands if one.case == case][number]

    def forget_answers(self, command: PlayedCommand) -> None:
        self.results = [one for one in self.results if one.body.get("evictionId") != command.eviction_id]

    def change_answers(self, command: PlayedCommand, **fields: Any) -> None:
        self.results = [
            dataclasses.replace(one, body=one.body | fields)
            if one.body.get("evictionId") == command.eviction_id
            else one
            for one in self.results
        ]


def without_fault() -> ToldExecutor:
    """What the contract wants, in each case of the play."""
    told = ToldExecutor()
    for number in range(3):
        told.do(told.evict("plain", f"plain-{number}"))
    told.evict("uncommitted", node="u", is_committed=False)
    told.do(told.evict("uncommitted-later", node="u"))
    told.refuse(told.evict("other-uid"), 409, "Gone")
    told.refuse(told.evict("absent"), 404, "Gone")
    command = told.evict("429")
    told.report(command)
    told.refuse(command, 429, "Failed")
    told.refuse(told.evict("500"), 500, "Failed")
    told.do(told.evict("500", attempt=2))
    told.refuse(told.evict("403"), 403, "Refused")
    told.refuse(told.evict("cut-before"), 0, "Failed")
    command = told.evict("cut-after")
    told.write(command)
    told.answer(command, "Gone")
    told.do(told.evict("slow"))
    told.answer(told.evict("cancelled"), "Obsolete")
    told.evict("cancelled", action="Cancel")
    told.answer(told.evict("moved"), "Obsolete")
    told.evict("moved", action="Schedule", revision=2)
    told.answer(told.evict("overtaken"), "Obsolete")
    told.do(told.evict("overtaken", attempt=2))
    told.answer(told.evict("untainted"), "Obsolete")
    told.do(told.evict("unreadable"))
    told.do(told.evict("newer"))
    told.evict("foreign", node="f", cluster=OTHER_CLUSTER)
    told.do(told.evict("foreign-later", node="f"))
    told.evict("schedule", node="s", action="Schedule", attempt=0)
    told.do(told.evict("schedule-later", node="s"))
    told.do(told.evict("repeated"))
    told.answer(told.evict("repeated"), "Succeeded")
    braked = told.evict(BRAKE_CASE)
    told.hold(braked)
    told.more["brake"] = PlayedBrake(BRAKE_CASE, set_at=braked.at - 1.5, released_at=told.now + 0.05)
    told.do(told.evict(BRAKE_CASE, attempt=2))
    told.refuse(told.evict("token"), 401, "Failed")
    told.do(told.evict("token", attempt=2))
    kill = [told.evict("kill", f"kill-{number}") for number in range(3)]
    told.do(kill[0])
    told.now = KILLED_AT
    told.do(kill[1])
    told.do(kill[2])
    for command in kill:
        told.commands[told.commands.index(command)] = dataclasses.replace(command, answer_seconds=1000.0)
    return told
