"""Whether what was said about one pod can be explained by some order of what was heard (semantics.md 12.5 to 12.8).

The service takes in the records of a node, of a pod and of executors, each in its own order, interleaved in any way,
and looks at timers in between. Every such order leads through a graph of moments: how far each history was read, what
readers of the commands have been told by then. This walks the whole graph, carrying out the table of 12.6 at
each step, and keeps to the ways on which exactly the commands that were seen come out, none too early or with too
old a view. If no way is left at the end of everything, the one that came furthest says what is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tests.faults.numbers import SECOND_US, Numbers
from tests.faults.oracle.commands import Command
from tests.faults.oracle.decision import Due, Idle, decide
from tests.faults.oracle.histories import NodeState, PodState
from tests.faults.oracle.reading import Said
from tests.faults.oracle.waiting import Waiting, after_attempt, after_result

MILLISECOND_US = 1000


class Open(NamedTuple):
    """An eviction that is open.

    Attributes:
        eviction_id: as told, empty as long as nothing was told.
        due: what it is open for.
        waiting: for what, once it was issued; None before.
        is_done: it was issued and the pod left: nothing more happens.
    """

    eviction_id: str
    due: Due
    attempt: int = 0
    waiting: Waiting | None = None
    is_done: bool = False


class Moment(NamedTuple):
    """How far everything was taken in, and what is open then."""

    node: int
    pod: int
    results: int
    said: int
    open: Open | None


class Failure(NamedTuple):
    """Why no way leads on."""

    rule: str
    text: str


class Told(NamedTuple):
    """What is known about one pod after a run."""

    nodes: Sequence[NodeState]
    pods: Sequence[PodState]
    results: Sequence[Said]
    commands: Sequence[Command]


class Limits(NamedTuple):
    """What holds for all pods of a node.

    Attributes:
        numbers: the settings of the service.
        ended_at_us: when the run ended.
        early_us: how much before its deadline an eviction may be issued.
        silent_at_end: the cluster's feed was silent when the run ended, so evictions had to wait.
    """

    numbers: Numbers
    ended_at_us: int
    early_us: int
    silent_at_end: bool


class Course:
    """The search for one pod."""

    def __init__(self, told: Told, limits: Limits) -> None:
        """Prepare."""
        self._nodes, self._pods, self._results, self._commands = told
        numbers, self._ended_at_us, self._early_us, self._silent_at_end = limits
        self._numbers = numbers
        self._lag_us = int((numbers.lag_limit_seconds + numbers.clock_skew_limit_seconds) * SECOND_US)
        self._furthest: tuple[int, int] = (-1, -1)
        self._failure = Failure("unexplained", "nothing was tried")
        self._decisions: dict[tuple[int, int], Due | Idle] = {}

    def failure(self) -> Failure | None:
        """Walk; returns why there is no way, or None if there is one."""
        begin = Moment(0, 0, 0, 0, None)
        seen, left = {begin}, [begin]
        while left:
            moment = left.pop()
            if self._is_end(moment):
                return None
            for following in self._following(moment):
                if following not in seen:
                    seen.add(following)
                    left.append(following)
        return self._failure

    def _stuck(self, moment: Moment, rule: str, text: str) -> None:
        """Remember why the way that came furthest leads no further."""
        progress = (moment.said, moment.node + moment.pod + moment.results)
        if progress >= self._furthest:
            self._furthest, self._failure = progress, Failure(rule, text)

    def _decide(self, moment: Moment) -> Due | Idle:
        where = (moment.node, moment.pod)
        if where not in self._decisions:
            self._decisions[where] = decide(self._nodes[moment.node], self._pods[moment.pod])
        return self._decisions[where]

    def _is_end(self, moment: Moment) -> bool:
        """Whether everything was taken in and said, and nothing is owed that should have been done by now.

        What was appended within the slack before the end need not have been taken in.
        """
        limit_us = self._ended_at_us - int(self._numbers.slack_seconds * SECOND_US)
        for states, place in ((self._nodes, moment.node), (self._pods, moment.pod)):
            if place + 1 < len(states) and states[place + 1].append_at_us < limit_us:
                return False
        if moment.results < len(self._results) and self._results[moment.results].record.append_at_us < limit_us:
            return False
        if moment.said < len(self._commands):
            self._stuck(moment, "unfounded", f"{self._commands[moment.said]}: nothing that was heard explains it")
            return False
        opened = moment.open
        if opened is None or opened.is_done or self._silent_at_end:
            return True
        if opened.waiting is None:
            owed_us = self._owed_us(moment, opened.due)
            if owed_us < limit_us:
                self._stuck(moment, "not issued", f"{opened.due} was owed from {owed_us} on")
            return owed_us >= limit_us
        if opened.waiting.latest_us < limit_us:
            self._stuck(moment, "not repeated", f"attempt {opened.attempt}, {opened.waiting}")
        return opened.waiting.latest_us >= limit_us

    def _owed_us(self, moment: Moment, due: Due) -> int:
        """From when on it was owed: from the deadline, but not before all of its reasons had been appended."""
        known_us = max(self._nodes[moment.node].append_at_us, self._pods[moment.pod].append_at_us)
        return known_us if due.is_untolerated else max(due.deadline_us, known_us)

    def _following(self, moment: Moment) -> Iterator[Moment]:
        if moment.node + 1 < len(self._nodes):
            state = self._nodes[moment.node + 1]
            yield from self._take(moment, moment._replace(node=moment.node + 1), state.append_at_us, state.at_us)
        if moment.pod + 1 < len(self._pods):
            pod = self._pods[moment.pod + 1]
            yield from self._take(moment, moment._replace(pod=moment.pod + 1), pod.append_at_us, pod.at_us)
        if moment.results < len(self._results):
            said = self._results[moment.results]
            if self._was_there(moment, said.record.append_at_us):
                yield self._take_result(moment, said)
        if moment.said < len(self._commands) and self._commands[moment.said].action == "Evict":
            yield from self._issue(moment, self._commands[moment.said])

    def _was_there(self, moment: Moment, append_at_us: int) -> bool:
        """Whether a record was in the log when the next command was written: it cannot be its reason otherwise."""
        if moment.said == len(self._commands):
            return True
        return append_at_us <= self._commands[moment.said].at_us + MILLISECOND_US

    def _take(self, before: Moment, after: Moment, append_at_us: int, at_us: int) -> Iterator[Moment]:
        if not self._was_there(before, append_at_us):
            return
        decided, opened = self._decide(after), before.open
        is_gone = bool(self._pods[after.pod].absent)
        if opened is not None and opened.is_done:
            yield after._replace(open=None) if is_gone else after
        elif isinstance(decided, Idle):
            yield from self._end(after, decided, is_gone=is_gone)
        elif opened is None:
            yield from self._announce(after, Open("", decided), at_us)
        elif opened.waiting is None:
            moved = opened._replace(due=decided)
            has_moved = decided.deadline_us != opened.due.deadline_us
            # 12.6: for the same deadline nothing is said. That of what is untolerated moves with each edit to its time,
            # which is not followed here: coming from there it may have moved or not.
            edited_at_us = {self._nodes[before.node].at_us, self._pods[before.pod].at_us}
            if not has_moved or (opened.due.is_untolerated and decided.deadline_us in edited_at_us):
                yield after._replace(open=moved)
            if has_moved or decided.verdict != opened.due.verdict:
                yield from self._announce(after, moved, at_us)
        elif _is_ahead(decided, at_us) and decided.deadline_us > opened.waiting.issued_at_us:
            yield from self._announce(after, opened._replace(due=decided, waiting=None), at_us)
        else:
            yield after

    def _announce(self, after: Moment, opened: Open, at_us: int) -> Iterator[Moment]:
        """Say the deadline, if it lies ahead; what is due at once is not announced."""
        if not _is_ahead(opened.due, at_us):
            yield after._replace(open=opened)
            return
        if after.said == len(self._commands) or self._commands[after.said].action != "Schedule":
            self._stuck(after, "not announced", f"{opened.due} was to be announced{self._instead(after)}")
            return
        command = self._commands[after.said]
        wrong = self._names_otherwise(command, opened)
        if wrong:
            self._stuck(after, "unfounded", f"{command}: {wrong}")
            return
        yield after._replace(said=after.said + 1, open=opened._replace(eviction_id=command.eviction_id))

    def _end(self, after: Moment, idle: Idle, *, is_gone: bool) -> Iterator[Moment]:
        """Nothing is due any more: what was told is cancelled; what was issued, and the pod leaves, is done."""
        opened = after.open
        if opened is None:
            yield after
        elif opened.waiting is not None and idle.is_leaving:
            yield after._replace(open=None if is_gone else opened._replace(is_done=True))
        elif not opened.eviction_id:
            yield after._replace(open=None)
        elif after.said == len(self._commands) or self._commands[after.said].action != "Cancel":
            self._stuck(after, "not cancelled", f"{opened.due} ends ({_words(idle)}){self._instead(after)}")
        else:
            command = self._commands[after.said]
            wrong = _wrong_cancel(command, opened, idle)
            if wrong:
                self._stuck(after, "unfounded", f"{command}: {wrong}")
            else:
                yield after._replace(said=after.said + 1, open=None)

    def _instead(self, moment: Moment) -> str:
        if moment.said == len(self._commands):
            return ", nothing came"
        return f", instead came {self._commands[moment.said]}"

    def _names_otherwise(self, command: Command, opened: Open) -> str:
        """Say in what a command differs from what it has to say; empty if in nothing."""
        due = opened.due
        if opened.eviction_id and command.eviction_id != opened.eviction_id:
            return "begins another eviction while one is open"
        if command.attempt != opened.attempt + (command.action == "Evict"):
            return f"is not the attempt after {opened.attempt}"
        if (command.verdict, command.taint, command.window_us) != (due.verdict, due.taint, due.window_us):
            return f"has another reason than {due}"
        is_late = due.is_untolerated and due.window_us <= command.deadline_us <= command.issued_at_us
        if command.deadline_us != due.deadline_us and not is_late:
            return f"has another deadline than {due}"
        return ""

    def _take_result(self, moment: Moment, said: Said) -> Moment:
        after = moment._replace(results=moment.results + 1)
        opened = moment.open
        if opened is None or opened.waiting is None or opened.is_done:
            return after
        if (said.content["evictionId"], said.content["attempt"]) != (opened.eviction_id, opened.attempt):
            return after
        waiting = after_result(opened.waiting, said, opened.attempt, self._numbers)
        return after._replace(open=opened._replace(waiting=waiting))

    def _issue(self, moment: Moment, command: Command) -> Iterator[Moment]:
        """Let a timer issue what is owed now."""
        decided, opened = self._decide(moment), moment.open
        wrong = self._wrong_issue(moment, command, decided)
        if wrong is not None:
            self._stuck(moment, *wrong)
            return
        assert opened is not None
        assert isinstance(decided, Due)
        attempt = opened.attempt + 1
        waiting = after_attempt(command.issued_at_us, attempt, self._numbers)
        issued = Open(command.eviction_id, decided, attempt, waiting)
        yield moment._replace(said=moment.said + 1, open=issued)

    def _wrong_issue(self, moment: Moment, command: Command, decided: Due | Idle) -> Failure | None:
        opened = moment.open
        if opened is None or opened.is_done or isinstance(decided, Idle):
            why = _words(decided) if isinstance(decided, Idle) else "it is done"
            return Failure("unfounded", f"{command}: nothing was due ({why})")
        if not decided.is_untolerated and command.at_us + self._early_us < decided.deadline_us:
            return Failure("early", f"{command}: due at {decided.deadline_us}")
        wrong = self._names_otherwise(command, opened._replace(due=decided))
        if wrong:
            return Failure("unfounded", f"{command}: {wrong}")
        if opened.waiting is not None and command.issued_at_us < opened.waiting.earliest_us:
            return Failure("repeated too soon", f"{command}: {opened.waiting}")
        for states, place in ((self._nodes, moment.node), (self._pods, moment.pod)):
            if place + 1 < len(states) and states[place + 1].append_at_us < command.issued_at_us - self._lag_us:
                return Failure("view too old", f"{command}: {states[place + 1]} had been there for long")
        return None


def _is_ahead(due: Due, at_us: int) -> bool:
    return not due.is_untolerated and due.deadline_us > at_us


def _words(idle: Idle) -> str:
    return " or ".join(sorted(idle.why))


def _wrong_cancel(command: Command, opened: Open, idle: Idle) -> str:
    if command.eviction_id != opened.eviction_id:
        return "is of another eviction than the open one"
    is_there = command.taint in idle.keys
    if command.verdict not in idle.why or (command.verdict == "TaintRemoved" and is_there):
        return f"has to say {_words(idle)}"
    return "" if command.verdict != "Tolerated" or is_there else "the taint is gone"
