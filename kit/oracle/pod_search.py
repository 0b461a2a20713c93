"""Whether some order of the inputs explains the commands about one pod (semantics.md 12.5 to 12.8).

The service takes in the records of a node, of a pod and of executors, each in its own order, interleaved in any way,
and looks at timers in between. Every such order leads through a graph of moments: how far each history was read, what
readers of the commands have been told by then. This walks the whole graph, carrying out the table of 12.6 at
each step, and keeps to the ways on which exactly the commands that were seen come out, none too early, none with too
old a view and, if promptness is asked for, none too late. If no way is left at the end of everything, the one that came
furthest says what is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from evictstream.kit.oracle.attempts import AttemptWait, after_attempt, after_result
from evictstream.kit.oracle.commands import SeenCommand
from evictstream.kit.oracle.decision import MayStay, MustLeave
from evictstream.kit.oracle.histories import HeardNode, HeardPod
from evictstream.kit.oracle.obligations import Obligations, OpenEviction, PodLog, PodMoment, RunFacts
from evictstream.kit.oracle.reading import Statement
from evictstream.kit.oracle.records import shown

_MILLISECOND_US = 1000  # append times are cut to milliseconds, so a command may seem older than its reason


class DeadEnd(NamedTuple):
    """Why no way leads on."""

    rule: str
    text: str


class PodSearch:
    """The search for one pod."""

    def __init__(self, log: PodLog, facts: RunFacts) -> None:
        self._nodes, self._pods, self._results, self._commands = log.nodes, log.pods, log.results, log.commands
        self._facts, self._limits, self._promptness = facts, facts.limits, facts.promptness
        self._obligations = Obligations(log, facts)
        self._lag_us = facts.limits.lag_us + facts.limits.clock_skew_us
        self._furthest: tuple[int, int] = (-1, -1)
        self._rule = "unexplained"
        self._text: tuple[object, ...] = ("nothing was tried",)

    def dead_end(self) -> DeadEnd | None:
        """Walk; returns why there is no way, or None if there is one."""
        begin = PodMoment(node=0, pod=0, results=0, commands_taken=0, open=None)
        seen, left = {begin}, [begin]
        while left:
            moment = left.pop()
            if self._is_end(moment):
                return None
            following = list(self._following(moment))
            left += [each for each in following if each not in seen]
            seen.update(following)
            if not following and moment.commands_taken < len(self._commands) and _progress(moment) > self._furthest:
                command = self._commands[moment.commands_taken]
                self._stuck(moment, "unfounded", command, ": nothing that had been appended by then explains it")
        return DeadEnd(self._rule, "".join(map(str, self._text)))

    def _stuck(self, moment: PodMoment, rule: str, *text: object) -> bool:
        """Remember why the way that came furthest leads no further; the text is put together once, at the end.

        Returns:
            Always False, for those who answer whether a way leads on.
        """
        progress = _progress(moment)
        if progress >= self._furthest:
            self._furthest, self._rule, self._text = progress, rule, text
        return False

    def _is_end(self, moment: PodMoment) -> bool:
        """Whether everything was taken in and said, and nothing is owed that should have been done by now."""
        if any(self._obligations.is_long_ago(append_at_us) for append_at_us in self._obligations.unheard_us(moment)):
            return False
        if moment.commands_taken < len(self._commands):
            return self._stuck(
                moment, "unfounded", self._commands[moment.commands_taken], ": nothing that was heard explains it"
            )
        opened = moment.open
        if opened is None or opened.is_done or self._facts.silent_at_end:
            return True
        if opened.waiting is not None:
            decided = self._obligations.decide(moment)  # the next attempt is for what is a reason now
            due = opened.due if isinstance(decided, MayStay) else decided
            waiting, held = opened.waiting, self._obligations.held_us(moment, opened.waiting)
            if self._obligations.is_only_observed(moment, waiting):
                return True
            is_missing = self._obligations.is_owed_for_long(moment, due, max((waiting.latest_us, *held)))
            return not is_missing or self._stuck(moment, "not repeated", "attempt ", opened.attempt, ", ", waiting)
        owed_us = self._obligations.owed_us(moment, opened.due) if self._promptness is None else opened.owed_us
        is_missing = self._obligations.is_owed_for_long(moment, opened.due, owed_us)
        return not is_missing or self._stuck(moment, "not issued", opened.due, " was owed from ", shown(owed_us), " on")

    def _is_prompt(self, moment: PodMoment, after: PodMoment, command: SeenCommand, since_us: int) -> bool:
        """Whether a command came soon enough after its reason, and after all that had to be taken in before it.

        Args:
            moment: before the reason was taken in.
            after: with it.
            command: the command.
            since_us: when the reason was there.
        """
        if self._promptness is None:
            return True
        if self._promptness.is_late(since_us, command.at_us):
            return self._stuck(moment, "late", command, " was owed from ", shown(since_us), " on")
        unheard_us = min(self._obligations.unheard_us(after), default=command.at_us)
        if self._promptness.is_late(unheard_us, command.at_us) or (
            command.action == "Evict" and command.at_us - unheard_us > self._promptness.view_us
        ):
            return self._stuck(
                moment, "view too old", command, ": the record of ", shown(unheard_us), " says otherwise"
            )
        return True

    def _following(self, moment: PodMoment) -> Iterator[PodMoment]:
        if moment.node + 1 < len(self._nodes):
            node = self._nodes[moment.node + 1]
            yield from self._take(moment, moment._replace(node=moment.node + 1), node)
        if moment.pod + 1 < len(self._pods):
            pod = self._pods[moment.pod + 1]
            yield from self._take(moment, moment._replace(pod=moment.pod + 1), pod)
        if moment.results < len(self._results):
            result = self._results[moment.results]
            if self._may_take(moment, result.record.append_at_us):
                yield self._take_result(moment, result)
        if moment.commands_taken < len(self._commands) and self._commands[moment.commands_taken].action == "Evict":
            yield from self._issue(moment, self._commands[moment.commands_taken])

    def _may_take(self, moment: PodMoment, append_at_us: int) -> bool:
        """Whether a record can be what was taken in next.

        It was in the log when the next command was written: it cannot be its reason otherwise. If promptness is asked
        for, whatever came much earlier was taken in before, and nothing had been owed for long when it came.
        """
        if (
            moment.commands_taken < len(self._commands)
            and append_at_us > self._commands[moment.commands_taken].at_us + _MILLISECOND_US
        ):
            return False
        if self._promptness is None:
            return True
        if self._promptness.is_late(min(self._obligations.unheard_us(moment)), append_at_us):
            return False
        decided, opened = self._obligations.decide(moment), moment.open
        if opened is None or opened.is_done or isinstance(decided, MayStay):
            return True
        owed_us = self._obligations.next_owed_us(moment, decided, opened)
        owed_us = self._obligations.free_since_us(moment, decided, owed_us, append_at_us)
        is_late = self._promptness.is_late(owed_us, append_at_us)
        return not is_late or self._stuck(
            moment, "late", decided, " was owed from ", shown(owed_us), " on, and not issued by ", shown(append_at_us)
        )

    def _take(self, before: PodMoment, after: PodMoment, state: HeardNode | HeardPod) -> Iterator[PodMoment]:
        if not self._may_take(before, state.append_at_us):
            return
        for following in self._taken(after, state.at_us):
            if following.commands_taken == before.commands_taken or self._is_prompt(
                before, after, self._commands[before.commands_taken], state.append_at_us
            ):
                yield following

    def _taken(self, after: PodMoment, at_us: int) -> Iterator[PodMoment]:
        """Decide again after a record, and give the consequences."""
        decided, opened = self._obligations.decide(after), after.open
        is_gone = bool(self._pods[after.pod].absent)
        if opened is not None and opened.is_done and self._is_back(after):
            yield from self._taken(after._replace(open=None), at_us)
        elif opened is not None and opened.is_done:
            yield after._replace(open=None) if is_gone else after
        elif isinstance(decided, MayStay):
            yield from self._end(after, decided, is_gone=is_gone)
        elif opened is None:
            owed_us = self._obligations.still_owed_us(after, decided, None)
            yield from self._announce(after, OpenEviction("", decided, owed_us=owed_us), at_us)
        elif opened.waiting is None:
            moved = opened._replace(due=decided, owed_us=self._obligations.still_owed_us(after, decided, opened))
            if decided.deadline_us == opened.due.deadline_us:  # 12.6: the same deadline causes no command
                yield after._replace(open=moved)
            else:
                yield from self._announce(after, moved, at_us)
        elif _is_ahead(decided, at_us) and decided.deadline_us > opened.waiting.issued_at_us:
            owed_us = self._obligations.still_owed_us(after, decided, opened)
            yield from self._announce(after, opened._replace(due=decided, waiting=None, owed_us=owed_us), at_us)
        else:
            yield after

    def _is_back(self, after: PodMoment) -> bool:
        """Whether by a later epoch the pod has not left after all (12.3): it may be evicted again."""
        decided = self._obligations.decide(after)
        return self._pods[after.pod].is_restored and not (isinstance(decided, MayStay) and decided.is_leaving)

    def _announce(self, after: PodMoment, opened: OpenEviction, at_us: int) -> Iterator[PodMoment]:
        """Say the deadline, if it lies ahead; what is due at once is not announced."""
        if not _is_ahead(opened.due, at_us):
            yield after._replace(open=opened)
            return
        if after.commands_taken == len(self._commands) or self._commands[after.commands_taken].action != "Schedule":
            self._stuck(after, "not announced", opened.due, " had to be announced, ", *self._instead(after))
            return
        command = self._commands[after.commands_taken]
        wrong = _differs(command, opened)
        if wrong:
            self._stuck(after, "unfounded", command, ": ", wrong, opened.due)
            return
        yield after._replace(
            commands_taken=after.commands_taken + 1, open=opened._replace(eviction_id=command.eviction_id)
        )

    def _end(self, after: PodMoment, idle: MayStay, *, is_gone: bool) -> Iterator[PodMoment]:
        """Nothing is due any more: cancel an announced eviction; an issued one is done if the pod leaves."""
        opened = after.open
        if opened is None:
            yield after
        elif opened.waiting is not None and idle.is_leaving:
            yield after._replace(open=None if is_gone else opened._replace(is_done=True))
        elif not opened.eviction_id:
            yield after._replace(open=None)
        elif after.commands_taken == len(self._commands) or self._commands[after.commands_taken].action != "Cancel":
            ended = (opened.due, " had to be cancelled (", idle, "), ")
            self._stuck(after, "not cancelled", *ended, *self._instead(after))
        else:
            command = self._commands[after.commands_taken]
            wrong = _wrong_cancel(command, opened, idle)
            if wrong:
                self._stuck(after, "unfounded", command, ": ", wrong)
            else:
                yield after._replace(commands_taken=after.commands_taken + 1, open=None)

    def _instead(self, moment: PodMoment) -> tuple[object, ...]:
        if moment.commands_taken == len(self._commands):
            return ("and no command followed",)
        return ("and the next command is ", self._commands[moment.commands_taken])

    def _take_result(self, moment: PodMoment, result: Statement) -> PodMoment:
        after = moment._replace(results=moment.results + 1)
        opened = moment.open
        if opened is None or opened.waiting is None or opened.is_done or result.kind == "Report":
            return after
        if (result.content["evictionId"], result.content["attempt"]) != (opened.eviction_id, opened.attempt):
            return after
        waiting = after_result(opened.waiting, result, opened.attempt, self._limits)
        return after._replace(open=opened._replace(waiting=waiting))

    def _issue(self, moment: PodMoment, command: SeenCommand) -> Iterator[PodMoment]:
        """Let a timer issue what is owed now."""
        decided, opened = self._obligations.decide(moment), moment.open
        if opened is None or opened.is_done or isinstance(decided, MayStay):
            why = decided if isinstance(decided, MayStay) else "it is done"
            self._stuck(moment, "unfounded", command, ": nothing was due (", why, ")")
        elif self._may_issue(moment, command, decided, opened._replace(due=decided)):
            attempt = opened.attempt + 1
            waiting = after_attempt(command.issued_at_us, attempt, self._limits)
            issued = OpenEviction(command.eviction_id, decided, attempt, waiting)
            yield moment._replace(commands_taken=moment.commands_taken + 1, open=issued)

    def _may_repeat(self, moment: PodMoment, command: SeenCommand, waiting: AttemptWait) -> bool:
        if command.issued_at_us < waiting.earliest_us:
            return self._stuck(moment, "repeated too soon", command, ": ", waiting)
        if self._obligations.is_only_observed(moment, waiting):
            return self._stuck(moment, "repeated though observed", command, ": no executor that acts has reported")
        held = self._obligations.held_us(moment, waiting)
        if held and command.issued_at_us < held[-1]:
            return self._stuck(moment, "repeated too soon", command, ": in a queue until ", shown(held[-1]))
        return True

    def _may_issue(self, moment: PodMoment, command: SeenCommand, due: MustLeave, opened: OpenEviction) -> bool:
        if not due.is_untolerated and command.at_us + self._facts.early_us < due.deadline_us:
            return self._stuck(moment, "early", command, ": due at ", shown(due.deadline_us))
        wrong = _differs(command, opened)
        if wrong:
            return self._stuck(moment, "unfounded", command, ": ", wrong, due)
        if self._obligations.is_held(moment, due, opened, command):
            return self._stuck(moment, "issued though held", command, ": a brake or a guard holds it")
        if opened.waiting is not None and not self._may_repeat(moment, command, opened.waiting):
            return False
        for states, place in ((self._nodes, moment.node), (self._pods, moment.pod)):
            if place + 1 < len(states) and states[place + 1].append_at_us < command.issued_at_us - self._lag_us:
                return self._stuck(moment, "view too old", command, ": ", states[place + 1], " had been there for long")
        if moment.results < len(self._results):
            result = self._results[moment.results]
            if result.record.append_at_us < command.issued_at_us - self._lag_us:
                return self._stuck(moment, "view too old", command, ": ", result.content, " had been there for long")
        owed_us = self._obligations.next_owed_us(moment, due, opened)
        since_us = self._obligations.free_since_us(moment, due, owed_us, command.at_us)
        return self._promptness is None or self._is_prompt(moment, moment, command, since_us)


def _progress(moment: PodMoment) -> tuple[int, int]:
    return moment.commands_taken, moment.node + moment.pod + moment.results


def _is_ahead(due: MustLeave, at_us: int) -> bool:
    return not due.is_untolerated and due.deadline_us > at_us


def _differs(command: SeenCommand, opened: OpenEviction) -> str:
    """Say how a command differs from what it has to say, up to what that is; empty if in nothing."""
    due = opened.due
    if opened.eviction_id and command.eviction_id != opened.eviction_id:
        return "begins another eviction while one is open: "
    if command.attempt != opened.attempt + (command.action == "Evict"):
        return f"is not the attempt after {opened.attempt} of "
    if (command.verdict, command.taint, command.window_us) != (due.verdict, due.taint, due.window_us):
        return "has another reason than "
    if command.deadline_us != due.deadline_us:
        return "has another deadline than "
    return ""


def _wrong_cancel(command: SeenCommand, opened: OpenEviction, idle: MayStay) -> str:
    if command.eviction_id != opened.eviction_id:
        return "is of another eviction than the open one"
    is_there = command.taint in idle.keys
    if command.verdict not in idle.why or (command.verdict == "TaintRemoved" and is_there):
        return f"has to say {idle}"
    return "" if command.verdict != "Tolerated" or is_there else "the taint is gone"
