"""Plays commands to an executor, and API servers that misbehave, and records what it does.

Each situation ("case") has a node and pods of its own, so they run at the same time.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import time
from collections.abc import Iterable
from typing import Final

from evictstream.kit.conformance.brake_rules import BRAKE_CASE, BRAKE_GRACE_SECONDS, write_brake
from evictstream.kit.conformance.command_writer import (
    ANSWER_SECONDS,
    COMMANDED_TAINT,
    TOLERATION,
    TOLERATION_SECONDS,
    CommandWriter,
    PlayedCommand,
    uid_of,
)
from evictstream.kit.conformance.executor_evidence import ExecutorEvidence, PlayedBrake, SeenResult
from evictstream.kit.conformance.fake_faults import Fault
from evictstream.kit.conformance.playground import CLUSTER, Playground

HELLO_SECONDS: Final = 2.0
"""Between commands that ask whether the executor is there: one that begins at the end of the topic misses some."""

OPEN_SECONDS: Final = 2.0
"""How long the transaction with an invisible command stays open."""

_SETTLE_SECONDS: Final = 1.5
"""After the last answer, for deletes that should not come."""

RETURN_SECONDS: Final = 75.0
"""For what is left after a kill. The group notices it after the session timeout, 45 s by Kafka's own default."""

TOKEN_RETRY_SECONDS: Final = 2.0

SECOND_TOKEN: Final = "second-token"  # noqa: S105 - of a server that holds nothing

OTHER_CLUSTER: Final = "next"
"""Of three partitions it is in that of `CLUSTER`, so whoever reads only this one finds its commands, too."""

KILL_NODES: Final = 6
KILL_PODS: Final = 12
KILL_AFTER: Final = 3
"""Answers after which the executor is killed; the others are on their way or unread."""

KILL_HOLD_SECONDS: Final = 0.15
"""How late the API server looks at a delete of the case with the kill, for each pod so much later than for the one
before: however many are deleted at once, some are answered when others are not."""

_REFUSED_TIMES: Final = 1_000
"""A fault that lasts until it is taken away."""

_FAULTS: Final[dict[str, list[int | str | Fault]]] = {
    "429": [Fault(status=429, retry_after_seconds=1, cause="DisruptionBudget", message="2 pods have to be healthy")]
    * 3,
    "500": [500] * _REFUSED_TIMES,
    "403": [403] * _REFUSED_TIMES,
    "cut-before": [Fault(cut="before")],
    "cut-after": [Fault(cut="after")],
    "slow": [Fault(delay_seconds=2.0)],
}
"""What happens to deletes of the pods of these cases."""

_UNREADABLE: Final[list[bytes | None]] = [
    None,
    b"",
    b"no JSON",
    b"[]",
    b"{}",
    b'{"action": "Evict"}',
    b'{"apiVersion": "evictstream.io/v9", "kind": "EvictionCommand", "action": "Explode", "attempt": "one"}',
    b'\xff\xfe{"kind": 1e999}',
]
"""Records that are no commands."""


class ExecutorPlay:
    """One run."""

    def __init__(
        self,
        playground: Playground,
        *,
        answer_seconds: float = ANSWER_SECONDS,
        return_seconds: float = RETURN_SECONDS,
    ) -> None:
        self._playground = playground
        self._answer_seconds = answer_seconds
        self._return_seconds = return_seconds
        self._commands: list[PlayedCommand] = []
        self._results: list[SeenResult] = []
        self._killed_at: float | None = None
        self._brake: PlayedBrake | None = None

    def run(self) -> ExecutorEvidence:
        """Play all situations and return the evidence.

        Raises:
            EndSilentError: the executor shows nothing.
            BrokerError: Kafka cannot be used any more.
        """
        playground = self._playground
        self._furnish()
        write_brake(playground.settings, "another-cluster", OTHER_CLUSTER)
        with CommandWriter(playground.settings) as writer, CommandWriter(playground.settings) as other_writer:
            self._wait_for_the_executor(writer)
            playground.report("plays situations")
            self._play_uncommitted(writer, other_writer)
            self._play_most(writer)
            self._play_again(writer)
            self._play_a_brake(writer)
            self._play_a_new_token(writer)
            if playground.end is not None:
                self._play_a_kill(writer)
        time.sleep(_SETTLE_SECONDS)
        process = playground.stop()
        return dataclasses.replace(self._evidence(), process=process)

    def _furnish(self) -> None:
        """Put the nodes and the pods of all cases, before the executor looks."""
        api = self._playground.api
        for case in (
            "uncommitted",
            "rest",
            "unreadable",
            "newer",
            "foreign",
            "schedule",
            "repeated",
            "token",
            BRAKE_CASE,
        ):
            self._node(case)
        for number in range(3):
            self._node(f"plain-{number}")
            self._pod(f"plain-{number}", f"plain-{number}")
        for name in ("uncommitted", "uncommitted-later"):
            self._pod(name, "uncommitted")
        for name in ("cancelled", "moved", "overtaken", *_FAULTS):
            self._pod(name, "rest")
        self._pod("other-uid", "rest", uid="the pod that came after it")
        self._node("untainted", taints=[])
        self._pod("untainted", "untainted")
        for name in (
            "unreadable",
            "newer",
            "foreign",
            "foreign-later",
            "schedule",
            "schedule-later",
            "repeated",
            "token",
            BRAKE_CASE,
        ):
            self._pod(name, name.removesuffix("-later"))
        for number in range(KILL_PODS):
            self._node(f"kill-{number % KILL_NODES}")
            self._pod(f"kill-{number}", f"kill-{number % KILL_NODES}")
        api.trouble = self._trouble()

    @staticmethod
    def _trouble() -> dict[str, list[int | str | Fault]]:
        by_pod: dict[str, list[int | str | Fault]] = {**_FAULTS}
        by_pod |= {f"kill-{number}": [Fault(hold_seconds=number * KILL_HOLD_SECONDS)] for number in range(KILL_PODS)}
        removals = ("delete pods", "create pods/eviction")
        faults_by_request = {f"{what} {pod}": list(faults) for pod, faults in by_pod.items() for what in removals}
        # Only evictions ask budgets; a server that has too much to do refuses deletes in the same way.
        faults_by_request["create pods/eviction 429"] = [
            Fault(status=429, retry_after_seconds=1, cause="DisruptionBudget")
        ] * 3
        return faults_by_request

    def _wait_for_the_executor(self, writer: CommandWriter) -> None:
        """Ask for a pod that is not there, attempt after attempt, until there is an answer."""
        next_at, attempt = 0.0, 0

        def is_alive() -> bool:
            nonlocal next_at, attempt
            if time.monotonic() >= next_at:
                next_at, attempt = time.monotonic() + HELLO_SECONDS, attempt + 1
                self._write(writer, self._evict("hello", "hello", "hello", attempt=attempt))
            return bool(self._read())

        self._playground.start(is_alive)

    def _play_uncommitted(self, writer: CommandWriter, other_writer: CommandWriter) -> None:
        command = self._evict("uncommitted", "uncommitted", "uncommitted")
        self._commands += other_writer.write_and_abort(command, open_seconds=OPEN_SECONDS)
        self._write(writer, self._evict("uncommitted-later", "uncommitted-later", "uncommitted"))

    def _play_most(self, writer: CommandWriter) -> None:
        for number in range(3):
            self._write(writer, self._evict("plain", f"plain-{number}", f"plain-{number}"))
        for case in ("other-uid", "absent", *_FAULTS):
            self._write(writer, self._evict(case, case, "rest"))
        evict = self._evict("cancelled", "cancelled", "rest")
        self._write(writer, evict, dataclasses.replace(evict, action="Cancel"))
        evict = self._evict("moved", "moved", "rest")
        self._write(writer, evict, dataclasses.replace(evict, action="Schedule", revision=2))
        evict = self._evict("overtaken", "overtaken", "rest")
        self._write(writer, evict, dataclasses.replace(evict, attempt=2))
        self._write(writer, self._evict("untainted", "untainted", "untainted"))
        evict = self._evict("unreadable", "unreadable", "unreadable")
        writer.write_raw(evict.key, _UNREADABLE)
        self._write(writer, evict)
        self._write(writer, dataclasses.replace(self._evict("newer", "newer", "newer"), is_newer=True))
        self._write(writer, dataclasses.replace(self._evict("foreign", "foreign", "foreign"), cluster=OTHER_CLUSTER))
        self._write(writer, self._evict("foreign-later", "foreign-later", "foreign"))
        scheduled = dataclasses.replace(self._evict("schedule", "schedule", "schedule", attempt=0), action="Schedule")
        self._write(writer, scheduled)
        self._write(writer, dataclasses.replace(scheduled, action="Cancel"))
        self._write(writer, self._evict("schedule-later", "schedule-later", "schedule"))
        self._write(writer, self._evict("repeated", "repeated", "repeated"))
        self._wait_for_answers(self._answer_seconds)

    def _play_again(self, writer: CommandWriter) -> None:
        """Repeat a command that was answered, and send the next attempt of one that had failed."""
        for what in ("delete pods 500", "create pods/eviction 500"):
            self._playground.api.trouble[what] = []
        # The two records are equal but for their time: who has read the first has to know it by id, revision, attempt.
        self._write(writer, self._evict("repeated", "repeated", "repeated"))
        self._write(writer, self._evict("500", "500", "rest", attempt=2))
        repeated = self._evict("repeated", "repeated", "repeated")
        self._playground.wait(lambda: len(self._evidence().finals(repeated)) > 1, self._answer_seconds)
        self._wait_for_answers(self._answer_seconds)

    def _play_a_brake(self, writer: CommandWriter) -> None:
        """Hold the cluster, command an eviction, release, and command the next attempt."""
        settings = self._playground.settings
        set_at = write_brake(settings, BRAKE_CASE, CLUSTER)
        time.sleep(BRAKE_GRACE_SECONDS)
        first = self._evict(BRAKE_CASE, BRAKE_CASE, BRAKE_CASE)
        self._write(writer, first)
        self._playground.wait(lambda: bool(self._evidence().answers(first)), self._answer_seconds)
        time.sleep(BRAKE_GRACE_SECONDS)  # for a delete that should not come
        self._brake = PlayedBrake(BRAKE_CASE, set_at, time.time())
        write_brake(settings, BRAKE_CASE, CLUSTER, releasedBy="conformance")
        time.sleep(BRAKE_GRACE_SECONDS)
        self._write(writer, dataclasses.replace(first, attempt=2))
        self._wait_for_answers(self._answer_seconds)

    def _play_a_new_token(self, writer: CommandWriter) -> None:
        """Refuse the token, hand out another one, and repeat the command as the service does."""
        self._playground.set_token(SECOND_TOKEN)
        self._write(writer, self._evict("token", "token", "token"))
        time.sleep(TOKEN_RETRY_SECONDS)
        self._playground.hand_out()
        until, attempt = time.monotonic() + self._answer_seconds, 1
        while time.monotonic() < until and not self._playground.is_over:
            evidence = self._evidence()
            if any("Succeeded" in evidence.outcomes(command) for command in evidence.of("token")):
                break
            if evidence.outcomes(evidence.of("token")[-1]):
                attempt += 1
                self._write(writer, self._evict("token", "token", "token", attempt=attempt))
            self._playground.wait(lambda: False, TOKEN_RETRY_SECONDS / 2)

    def _play_a_kill(self, writer: CommandWriter) -> None:
        """Kill the executor in the midst of its work, and start it again."""
        assert self._playground.end is not None  # noqa: S101 - the caller has looked
        commands = [self._evict("kill", f"kill-{number}", f"kill-{number % KILL_NODES}") for number in range(KILL_PODS)]
        self._write(
            writer, *(dataclasses.replace(command, answer_seconds=self._return_seconds) for command in commands)
        )
        self._playground.wait(lambda: self._answered("kill") >= KILL_AFTER, self._answer_seconds)
        self._playground.report("kills the executor and starts it again")
        self._killed_at = time.time()
        self._playground.end.kill()
        self._playground.end.start()
        self._playground.wait(lambda: self._answered("kill") == KILL_PODS, self._return_seconds)

    def _answered(self, case: str) -> int:
        evidence = self._evidence()
        return sum(1 for command in evidence.of(case) if evidence.finals(command))

    def _wait_for_answers(self, seconds: float) -> None:
        """Wait for all required answers; that it waits is enough while the API server still fails."""

        def are_there() -> bool:
            evidence = self._evidence()
            return all(
                evidence.answers(command) if command == failing else evidence.finals(command)
                for command in evidence.commands
                if command.action == "Evict"
                and command.is_committed
                and command.cluster == CLUSTER
                and command.case != "hello"
            )

        failing = next((command for command in self._commands if command.case == "500"), None)
        self._playground.wait(are_there, seconds)

    def _evict(self, case: str, pod: str, node: str, *, attempt: int = 1) -> PlayedCommand:
        return PlayedCommand(
            case=case,
            action="Evict",
            pod=pod,
            pod_uid=uid_of(pod),
            node=node,
            attempt=attempt,
            answer_seconds=self._answer_seconds,
        )

    def _write(self, writer: CommandWriter, *commands: PlayedCommand) -> None:
        self._commands += writer.write(*commands)

    def _read(self) -> list[SeenResult]:
        records = self._playground.recorder.records(len(self._results))
        self._results += [SeenResult.of(record) for record in records]
        return self._results

    def _evidence(self) -> ExecutorEvidence:
        return ExecutorEvidence(
            commands=tuple(self._commands),
            results=tuple(self._read()),
            writes=tuple(self._playground.api.writes),
            partitions=self._playground.settings.partitions,
            killed_at=self._killed_at,
            brake=self._brake,
        )

    def _node(self, name: str, taints: Iterable[object] = (COMMANDED_TAINT,)) -> None:
        since = dt.datetime.now(dt.UTC) - dt.timedelta(seconds=2 * TOLERATION_SECONDS)
        added = {"timeAdded": since.strftime("%Y-%m-%dT%H:%M:%SZ")}
        spec = {"taints": [{**taint, **added} for taint in taints if isinstance(taint, dict)]}
        self._playground.api.put("Node", name, uid=uid_of(name), spec=spec)

    def _pod(self, name: str, node: str, uid: str = "") -> None:
        self._playground.api.put(
            "Pod",
            name,
            uid=uid_of(uid or name),
            spec={"nodeName": node, "tolerations": [TOLERATION], "terminationGracePeriodSeconds": 30},
            status={"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]},
        )
