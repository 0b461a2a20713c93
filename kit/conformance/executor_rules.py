"""The rules for executors, by docs/messages.md; each is a function of the recorded evidence."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from typing import Final

from evictstream.kit.conformance.brake_rules import judge_hold, judge_release
from evictstream.kit.conformance.command_writer import PlayedCommand, partition_of_key
from evictstream.kit.conformance.executor_evidence import WAITS, ExecutorEvidence, SeenResult
from evictstream.kit.conformance.findings import Finding, broken, conformance_rules, held, not_shown, unless
from evictstream.kit.conformance.playground import CLUSTER

MOST_TRIES: Final = 10
"""Requests for one `Evict` that the API server refuses; "a few tries within a second are fine"."""

_Judge = Callable[[ExecutorEvidence], Finding]

_NO_ANSWER: Final = "no answer"
_NOTHING_READ_US: Final = 0
"""A report of nothing has a `readTo` before every `Evict`, and before this where none was written."""


def _said(evidence: ExecutorEvidence, command: PlayedCommand) -> str:
    return " and ".join(evidence.outcomes(command)) or _NO_ANSWER


def _is_asked(command: PlayedCommand) -> bool:
    is_ours = command.cluster == CLUSTER and command.is_committed and command.case != "hello"
    return is_ours and command.action == "Evict"


def _evicts(case: str) -> _Judge:
    """Make a rule: each `Evict` of a case is done, and answered once."""

    def judge(evidence: ExecutorEvidence) -> Finding:
        commands = evidence.of(case)
        wrong = [f"{one.pod}: {_said(evidence, one)}" for one in commands if evidence.outcomes(one) != ["Succeeded"]]
        wrong += [
            f"{one.pod} was not deleted"
            for one in commands
            if not any(write.done_to == one.pod_uid for write in evidence.removals(one.pod))
        ]
        seen = f"{len(commands)} deleted, one Succeeded each"
        return unless(wrong, seen) if commands else not_shown("not played")

    return judge


def _answers(evidence: ExecutorEvidence) -> Finding:
    asked = [command for command in evidence.commands if _is_asked(command)]
    waits = {
        command: min((a.at for a in evidence.answers(command)), default=float("inf")) - command.at for command in asked
    }
    wrong = [
        f"{command.pod}, attempt {command.attempt}: {_NO_ANSWER}"
        for command, wait in waits.items()
        if wait == float("inf")
    ]
    wrong += [
        f"{command.pod}, attempt {command.attempt}: after {wait:.1f} s"
        for command, wait in waits.items()
        if command.answer_seconds < wait < float("inf")
    ]
    if not asked:
        return not_shown("not played")
    return unless(wrong, f"{len(asked)} of {len(asked)} answered, the slowest after {max(waits.values()):.1f} s")


def _form(evidence: ExecutorEvidence) -> Finding:
    commands = {(command.eviction_id, command.attempt): command for command in evidence.commands}
    results = [result for result in evidence.results if result.read_to_us is None]
    wrong = [problem for result in results if (problem := _problem_of(result, commands, evidence.partitions))]
    if not results:
        return not_shown("no results")
    return unless(wrong, f"{len(results)} results, each under its command's key and with its fields")


def _problem_of(result: SeenResult, commands: dict[tuple[str, int], PlayedCommand], partitions: int) -> str:
    command = commands.get((str(result.body.get("evictionId")), result.body.get("attempt", -1)))
    if result.problem:
        return f"the service cannot read a result: {result.problem}"
    if command is None:
        return f"a result for attempt {result.body.get('attempt')} of an eviction without a command"
    fields = {"cluster": command.cluster, "pod": command.pod, "podUid": command.pod_uid, "node": command.node}
    for field, expected in fields.items():
        if result.body[field] != expected:
            return f"{command.pod}: {field} is {result.body[field]!r}"
    if result.key != command.key:
        return f"{command.pod}: the key is {result.key!r}"
    if result.partition != partition_of_key(command.key, partitions):
        return f"{command.pod}: a result in partition {result.partition}, which is not its key's"
    return ""


def _reports(evidence: ExecutorEvidence) -> Finding:
    key, wrong = CLUSTER.encode(), []
    reports = [result for result in evidence.results if result.read_to_us is not None]
    for report in reports:
        if report.key != key or report.partition != partition_of_key(key, evidence.partitions):
            wrong.append("one is not under the key of its cluster")
        issued_us = [command.issued_at_us for command in evidence.commands if _is_read(command, report)]
        has_read = (report.read_to_us or 0) >= min(issued_us, default=_NOTHING_READ_US)
        if has_read and report.read_to_us not in issued_us:
            wrong.append(f"readTo {report.body['readTo']} is the issuedAt of no Evict by then")
    return unless(wrong, f"{len(reports)} reports") if reports else not_shown("no reports")


def _begins(evidence: ExecutorEvidence) -> Finding:
    reports = sum(result.read_to_us is not None for result in evidence.results)
    if not evidence.commands:
        return not_shown("not played")
    return held(f"{reports} reports") if reports else broken("no report")


def _is_read(command: PlayedCommand, report: SeenResult) -> bool:
    return command.action == "Evict" and command.cluster == CLUSTER and command.at <= report.at


def _precondition(evidence: ExecutorEvidence) -> Finding:
    uids = {command.pod: command.pod_uid for command in evidence.commands}
    removals = [write for write in evidence.writes if write.is_removal and not write.is_dry_run]
    wrong = [
        f"{removal.name}: {removal.what} "
        + ("without a UID" if removal.uid is None else "with another UID than the command's")
        for removal in removals
        if removal.uid != uids.get(removal.name)
    ]
    return unless(wrong, f"{len(removals)} requests, each with its UID") if removals else not_shown("nothing deleted")


def _truth(evidence: ExecutorEvidence) -> Finding:
    done = {(write.done_to or write.uid) for write in evidence.writes if write.is_removal and 200 <= write.status < 300}  # noqa: PLR2004 - what HTTP calls success
    successes = [result for result in evidence.results if result.outcome == "Succeeded"]
    wrong = [
        f"{result.body.get('pod')}: Succeeded, but nothing was deleted"
        for result in successes
        if result.body["podUid"] not in done
    ]
    return (
        unless(wrong, f"{len(successes)} times Succeeded, each after its delete")
        if successes
        else not_shown("no Succeeded")
    )


def _says(case: str, outcomes: Collection[str], *, may_ask: bool = True) -> _Judge:
    """Make a rule: the first `Evict` of a case gets one of these answers, and the pod is not deleted."""

    def judge(evidence: ExecutorEvidence) -> Finding:
        commands = evidence.of(case)
        if not commands:
            return not_shown("not played")
        removals = evidence.removals(commands[0].pod)
        if any(removal.done_to is not None for removal in removals):
            return broken(f"the pod was deleted; answered {_said(evidence, commands[0])}")
        if removals and not may_ask:
            return broken(f"asked the API server to delete it; answered {_said(evidence, commands[0])}")
        said = evidence.outcomes(commands[0])
        is_right = said and set(said) <= set(outcomes)
        return (
            held(f"nothing deleted, {_said(evidence, commands[0])}")
            if is_right
            else broken(_said(evidence, commands[0]))
        )

    return judge


def _repeated(evidence: ExecutorEvidence) -> Finding:
    commands = evidence.of("repeated")
    if len(commands) < 2 or not any(answer.at < commands[1].at for answer in evidence.finals(commands[0])):  # noqa: PLR2004 - the first and its repeat
        return not_shown("the first one was not answered")
    if any(removal.at > commands[1].at for removal in evidence.removals(commands[1].pod)):
        return broken("asked the API server again")
    later = [answer for answer in evidence.finals(commands[0]) if answer.at > commands[1].at]
    return held(f"answered again: {later[0].outcome}") if later else broken("not answered again")


def _next_attempt(evidence: ExecutorEvidence) -> Finding:
    commands = evidence.of("500")
    if len(commands) < 2:  # noqa: PLR2004 - the attempt that fails and the one that does not
        return not_shown("not played")
    first, second = (_said(evidence, command) for command in commands)
    if any(removal.done_to is not None for removal in evidence.removals("500")):
        return held(f"first {first}, then {second}")
    return broken(f"not deleted; first {first}, then {second}")


def _overtaken(evidence: ExecutorEvidence) -> Finding:
    commands = evidence.of("overtaken")
    if not commands:
        return not_shown("not played")
    first, second = (_said(evidence, command) for command in commands)
    seen = f"attempt 1 {first}, attempt 2 {second}"
    return held(seen) if (first, second) == ("Obsolete", "Succeeded") else broken(seen)


def _untouched(case: str, why: str, action: str = "Evict") -> _Judge:
    """Make a rule: a case is neither done nor answered, while the next command of its partition is."""

    def judge(evidence: ExecutorEvidence) -> Finding:
        commands, later = evidence.of(case, action), evidence.of(f"{case}-later")
        if not commands:
            return not_shown("not played")
        if evidence.removals(commands[0].pod):
            return broken("asked the API server to delete the pod")
        ids = {command.eviction_id for command in commands}
        if any(result.body.get("evictionId") in ids for result in evidence.results):
            return broken("answered")
        if not any(evidence.finals(command) for command in later):
            return not_shown("the next command was not answered either")
        return held(why)

    return judge


def _fault(case: str, outcomes: Collection[str]) -> _Judge:
    """Make a rule: an `Evict` in a fault of the API server gets one of these answers."""

    def judge(evidence: ExecutorEvidence) -> Finding:
        commands = evidence.of(case)
        if not commands:
            return not_shown("not played")
        until = commands[1].at if len(commands) > 1 else float("inf")  # the next attempt makes it obsolete
        said = [answer.outcome for answer in evidence.answers(commands[0]) if answer.at < until]
        seen = ", then ".join(said) or _NO_ANSWER
        return (held if said and set(said) <= {*WAITS, *outcomes} else broken)(seen)

    return judge


def _tries(evidence: ExecutorEvidence) -> Finding:
    commands = evidence.of("500")
    if not commands or not evidence.removals("500"):
        return not_shown("no delete that is refused")
    until = commands[1].at if len(commands) > 1 else float("inf")
    tries = sum(1 for removal in evidence.removals("500") if removal.at < until)
    return (held if tries <= MOST_TRIES else broken)(f"{tries} requests")


def _unreadable(evidence: ExecutorEvidence) -> Finding:
    commands = evidence.of("unreadable")
    if not commands:
        return not_shown("not played")
    return (held if evidence.outcomes(commands[0]) else broken)(f"the next command: {_said(evidence, commands[0])}")


def _nothing_lost(evidence: ExecutorEvidence) -> Finding:
    if evidence.killed_at is None:
        return not_shown("the kit can only kill what it has started")
    killed_at = evidence.killed_at
    unanswered = [
        command for command in evidence.of("kill") if not any(a.at < killed_at for a in evidence.finals(command))
    ]
    if not unanswered:
        return not_shown("all was answered before the kill")
    wrong = [f"{command.pod}: {_NO_ANSWER}" for command in unanswered if not evidence.finals(command)]
    return unless(wrong, f"{len(unanswered)} were not answered when it was killed; all are now")


def _not_done_twice(evidence: ExecutorEvidence) -> Finding:
    if evidence.killed_at is None:
        return not_shown("the kit can only kill what it has started")
    killed_at = evidence.killed_at
    before = [command.pod for command in evidence.of("kill") if any(a.at < killed_at for a in evidence.finals(command))]
    if not before:
        return not_shown("none was answered before the kill")
    wrong = [
        f"{pod}: asked the API server again"
        for pod in before
        if any(removal.at > killed_at for removal in evidence.removals(pod))
    ]
    return unless(wrong, f"{len(before)} were answered before the kill; none was deleted again")


def _new_token(evidence: ExecutorEvidence) -> Finding:
    commands = evidence.of("token")
    if not commands:
        return not_shown("not played")
    seen = ", then ".join(_said(evidence, command) for command in commands)
    return (held if any("Succeeded" in evidence.outcomes(command) for command in commands) else broken)(seen)


def _condition(evidence: ExecutorEvidence) -> Finding:
    wrong = []
    for command in evidence.of("plain"):
        removal = next((removal for removal in evidence.removals(command.pod) if removal.done_to), None)
        if removal is None or removal.what == "create pods/eviction":  # there the API server sets it
            continue
        patches = [
            write
            for write in evidence.writes
            if write.what == "patch pods/status" and write.done_to == command.pod_uid and write.at <= removal.at
        ]
        if not any("DisruptionTarget" in json.dumps(patch.body) for patch in patches):
            wrong.append(f"{command.pod}: deleted without it")
    return unless(wrong, "set before each delete") if evidence.of("plain") else not_shown("not played")


_TRIED: Final = {"Succeeded", "Failed", "Gone", "Refused"}
_LEFT: Final = {"Obsolete", "Failed", "Refused"}

_cancelled = _says("cancelled", {"Obsolete"}, may_ask=False)
_moved = _says("moved", {"Obsolete"}, may_ask=False)
_uncommitted = _untouched("uncommitted", "nothing happened")
_scheduled = _untouched("schedule", "nothing happened", "Schedule")

_REQUIRED: Final[tuple[tuple[str, str, _Judge], ...]] = (
    ("evicts", "An Evict deletes the pod and is answered once, Succeeded", _evicts("plain")),
    ("answers", "Each Evict is answered within 30 s, or a report has it", _answers),
    ("result-form", "Results have the key, id, attempt and pod of their command", _form),
    ("reports", "A report has the key of its cluster, and claims only what was issued", _reports),
    ("precondition", "Each delete names the UID of the command", _precondition),
    ("truth", "Succeeded only for what the API server has done", _truth),
    ("other-uid", "Another pod of the name: not deleted, Gone", _says("other-uid", {"Gone"})),
    ("absent", "No such pod: Gone", _says("absent", {"Gone"})),
    ("repeated", "A repeated Evict is answered again, not done again", _repeated),
    ("next-attempt", "The next attempt after a failed Evict is done", _next_attempt),
    ("cancelled", "A later Cancel: not done, Obsolete", _cancelled),
    ("moved", "A later Schedule of a higher revision: not done, Obsolete", _moved),
    ("overtaken", "A later Evict of a higher attempt: Obsolete, and the later one done", _overtaken),
    ("committed-only", "Commands of aborted transactions are ignored", _uncommitted),
    ("owed-nothing", "Schedule and Cancel alone: nothing done, nothing answered", _scheduled),
    ("own-cluster", "Commands of another cluster are left alone", _untouched("foreign", "nothing happened")),
    ("refused-429", "Refused by a disruption budget or a busy server (429): answered", _fault("429", _TRIED)),
    ("refused-500", "The API server fails (500): answered", _fault("500", {"Failed"})),
    ("refused-403", "Forbidden (403): answered", _fault("403", {"Refused", "Failed"})),
    ("cut-before", "The connection is cut before the delete is done: answered", _fault("cut-before", _TRIED)),
    ("cut-after", "The connection is cut after the delete is done: answered", _fault("cut-after", _TRIED)),
    ("slow", "The API server takes 2 s: answered", _fault("slow", _TRIED)),
    ("unreadable", "Unreadable records do not stop it", _unreadable),
    ("newer", "A command with an unknown field is done", _evicts("newer")),
    ("held", "An executor that knows brakes: what one holds is not deleted, and answered with heldBy", judge_hold),
    ("released", "An executor that knows brakes: the next attempt after the release is done", judge_release),
    ("nothing-lost", "Killed and restarted: no unanswered command is lost", _nothing_lost),
    ("not-twice", "Killed and restarted: no answered command is done again", _not_done_twice),
    ("stays", "It does not exit by itself", lambda evidence: evidence.process.stays()),
)

_RECOMMENDED: Final[tuple[tuple[str, str, _Judge], ...]] = (
    ("begins", "A report comes when it begins to act", _begins),
    ("few-tries", f"At most {MOST_TRIES} requests for one Evict that the API server refuses", _tries),
    ("taint-gone", "The taint is gone, though no Cancel came: not deleted", _says("untainted", _LEFT)),
    ("disruption-target", "The condition DisruptionTarget is set before the delete", _condition),
    ("new-token", "A replaced token is read again", _new_token),
    ("stops", "SIGTERM stops it", lambda evidence: evidence.process.stops()),
)

EXECUTOR_RULES: Final = conformance_rules(_REQUIRED, _RECOMMENDED)
"""In the order in which they are shown."""
