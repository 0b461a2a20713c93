"""The newest command of each eviction, and its answer: which commands still count.

A command may be read more than once, and an old one after a newer one. `evictionId`, `revision` and `attempt` together
identify it (docs/messages.md, "Rules for executors").
"""

from __future__ import annotations

import enum
from collections import OrderedDict
from typing import Final

import msgspec

from evictstream.models.instants import SECOND_US, instant_us
from evictstream.models.messages.command import EvictionCommand
from evictstream.models.messages.vocabulary import Action, Outcome

_MOST_EVICTIONS: Final = 100_000
"""Evictions that are remembered, the newest ones: some 30 MB. One that was forgotten only gets one more last look."""


class CommandAnswer(msgspec.Struct, frozen=True, gc=False):
    """The outcome of an `Evict`, its reason, and, of `Held`, the id of the brake."""

    outcome: Outcome
    reason: str
    held_by: str | None = None


class Reading(enum.Enum):
    """What to do with a command that is not answered at once."""

    EVICT = "the newest: queue it; an earlier one that waits is obsolete"
    WITHDRAW = "an earlier one that waits is obsolete"
    IGNORE = "already queued, or no effect"


class _Entry(msgspec.Struct, gc=False):
    revision: int
    attempt: int = 0
    is_cancelled: bool = False
    is_abandoned: bool = False
    answer: CommandAnswer | None = None
    seen_at: float | None = None


class CommandLog:
    """The newest command of each eviction, in memory only: a restart begins with an empty log.

    After a restart the last look and the age limit protect from commands that no longer count.
    """

    def __init__(self, *, oldest_seconds: float) -> None:
        """Begin with an empty log.

        Args:
            oldest_seconds: an `Evict` that was issued longer ago is obsolete.
        """
        self._oldest_us = int(oldest_seconds * SECOND_US)
        self._entries: OrderedDict[str, _Entry] = OrderedDict()

    def read(self, command: EvictionCommand, now_us: int) -> CommandAnswer | Reading:
        """Record a command, and return its answer or what to do with it."""
        if command.action is not Action.EVICT:
            return self._withdraw(command)
        entry = self._entry(command)
        if entry.is_cancelled:
            return CommandAnswer(Outcome.OBSOLETE, "it was cancelled")
        if command.revision < entry.revision:
            return CommandAnswer(Outcome.OBSOLETE, f"revision {entry.revision} has come")
        if command.attempt < entry.attempt:
            return CommandAnswer(Outcome.OBSOLETE, f"attempt {entry.attempt} has come")
        if command.attempt == entry.attempt and (entry.answer is not None or not entry.is_abandoned):
            return entry.answer or Reading.IGNORE
        entry.revision, entry.attempt, entry.answer, entry.is_abandoned = command.revision, command.attempt, None, False
        if now_us - instant_us(command.issued_at) > self._oldest_us:
            return self.answer(command, CommandAnswer(Outcome.OBSOLETE, f"it was issued at {command.issued_at}"))
        return Reading.EVICT

    def first_seen(self, command: EvictionCommand, now: float) -> float:
        """Return when the first `Evict` of an eviction was read, monotonic seconds: `now` if this is the first.

        Those that a brake held do not count: nobody has asked a disruption budget for them.
        """
        entry = self._entry(command)
        if entry.seen_at is None:
            entry.seen_at = now
        return entry.seen_at

    def note_answered(self, command: EvictionCommand) -> None:
        """Record a command that was answered before a restart, so that earlier ones are obsolete."""
        if command.action is not Action.EVICT:
            self._withdraw(command)
            return
        entry = self._entry(command)
        entry.revision = max(entry.revision, command.revision)
        entry.attempt = max(entry.attempt, command.attempt)

    def answer(self, command: EvictionCommand, answer: CommandAnswer) -> CommandAnswer:
        """Keep the answer to an `Evict`, and return it; each copy of the command gets the same answer."""
        entry = self._entries.get(command.eviction_id)
        if entry is not None and entry.attempt == command.attempt:
            entry.answer = answer
            if answer.outcome is Outcome.HELD:
                entry.seen_at = None
        return answer

    def abandon(self, command: EvictionCommand) -> None:
        """Record that an `Evict` was dropped without an answer: the command is queued if it is read again."""
        entry = self._entries.get(command.eviction_id)
        if entry is not None and entry.attempt == command.attempt:
            entry.is_abandoned = True

    def _withdraw(self, command: EvictionCommand) -> Reading:
        is_first = command.eviction_id not in self._entries
        entry = self._entry(command)
        if command.action is Action.CANCEL:
            entry.is_cancelled = True
            return Reading.WITHDRAW
        if command.revision <= entry.revision and not is_first:
            return Reading.IGNORE
        entry.revision = command.revision
        return Reading.WITHDRAW

    def _entry(self, command: EvictionCommand) -> _Entry:
        entry = self._entries.get(command.eviction_id)
        if entry is None:
            entry = self._entries[command.eviction_id] = _Entry(command.revision)
            if len(self._entries) > _MOST_EVICTIONS:
                self._entries.popitem(last=False)
        else:
            self._entries.move_to_end(command.eviction_id)
        return entry
