"""What an executor has read and answered: which command of an eviction is the newest, and what was said to it.

A command may come more than once, and an old one after a newer: `evictionId`, `revision` and `attempt` together say
which one it is (docs/messages.md, "Rules for executors").
"""

from __future__ import annotations

import enum
from collections import OrderedDict
from typing import Final

import msgspec

from evictstream.models.instants import SECOND_US, instant_us
from evictstream.models.messages.command import EvictionCommand
from evictstream.models.messages.vocabulary import Action, Outcome

MOST_EVICTIONS: Final = 100_000
"""Evictions that are remembered, the newest ones: some 30 MB. What is forgotten is only looked at once more."""


class CommandAnswer(msgspec.Struct, frozen=True, gc=False):
    """What was done with an `Evict`."""

    outcome: Outcome
    reason: str


class Reading(enum.Enum):
    """What to do with a command that is not to be answered at once."""

    EVICT = "it is the newest: queue it; what waits of an earlier one is obsolete"
    WITHDRAW = "what waits of this eviction is obsolete"
    IGNORE = "nothing: it waits already, or changes nothing"


class _Eviction(msgspec.Struct, gc=False):
    revision: int
    attempt: int = 0
    is_cancelled: bool = False
    is_given_up: bool = False
    answer: CommandAnswer | None = None
    seen_at: float | None = None


class CommandLog:
    """The newest that is known of each eviction. Kept in memory alone: a restart begins with an empty one.

    Then the last look and the age limit protect what this log protects otherwise.
    """

    def __init__(self, *, oldest_seconds: float) -> None:
        """Begin with nothing.

        Args:
            oldest_seconds: an `Evict` that was issued longer ago is obsolete.
        """
        self._oldest_us = int(oldest_seconds * SECOND_US)
        self._evictions: OrderedDict[str, _Eviction] = OrderedDict()

    def read(self, command: EvictionCommand, now_us: int) -> CommandAnswer | Reading:
        """Take note of a command and say what follows."""
        if command.action is not Action.EVICT:
            return self._withdraw(command)
        known = self._known(command)
        if known.is_cancelled:
            return CommandAnswer(Outcome.OBSOLETE, "it was cancelled")
        if command.revision < known.revision:
            return CommandAnswer(Outcome.OBSOLETE, f"revision {known.revision} has come")
        if command.attempt < known.attempt:
            return CommandAnswer(Outcome.OBSOLETE, f"attempt {known.attempt} has come")
        if command.attempt == known.attempt and (known.answer is not None or not known.is_given_up):
            return known.answer or Reading.IGNORE
        known.revision, known.attempt, known.answer, known.is_given_up = command.revision, command.attempt, None, False
        if now_us - instant_us(command.issued_at) > self._oldest_us:
            return self.answer(command, CommandAnswer(Outcome.OBSOLETE, f"it was issued at {command.issued_at}"))
        return Reading.EVICT

    def first_seen(self, command: EvictionCommand, now: float) -> float:
        """Return when the first `Evict` of an eviction was read, monotonic seconds: now if this is the one."""
        known = self._known(command)
        if known.seen_at is None:
            known.seen_at = now
        return known.seen_at

    def note_answered(self, command: EvictionCommand) -> None:
        """Take note of a command that was read and answered before a restart, so that earlier ones are obsolete."""
        if command.action is not Action.EVICT:
            self._withdraw(command)
            return
        known = self._known(command)
        known.revision = max(known.revision, command.revision)
        known.attempt = max(known.attempt, command.attempt)

    def answer(self, command: EvictionCommand, answer: CommandAnswer) -> CommandAnswer:
        """Keep what was done with an `Evict`, and return it; it is the answer to each repeat."""
        known = self._evictions.get(command.eviction_id)
        if known is not None and known.attempt == command.attempt:
            known.answer = answer
        return answer

    def give_up(self, command: EvictionCommand) -> None:
        """Take note that an `Evict` was let go without an answer: when its command is read again it is to be done."""
        known = self._evictions.get(command.eviction_id)
        if known is not None and known.attempt == command.attempt:
            known.is_given_up = True

    def _withdraw(self, command: EvictionCommand) -> Reading:
        is_first = command.eviction_id not in self._evictions
        known = self._known(command)
        if command.action is Action.CANCEL:
            known.is_cancelled = True
            return Reading.WITHDRAW
        if command.revision <= known.revision and not is_first:
            return Reading.IGNORE
        known.revision = command.revision
        return Reading.WITHDRAW

    def _known(self, command: EvictionCommand) -> _Eviction:
        known = self._evictions.get(command.eviction_id)
        if known is None:
            known = self._evictions[command.eviction_id] = _Eviction(command.revision)
            if len(self._evictions) > MOST_EVICTIONS:
                self._evictions.popitem(last=False)
        else:
            self._evictions.move_to_end(command.eviction_id)
        return known
