"""Writes messages as records: topic, key, value and headers.

The headers are the same for all messages of a kind, and one list: a list for each message cost a fifth of an outage's
time. What tells one message from another is in the value (docs/messages.md), so a consumer recognises a duplicate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evictstream.models.messages.codec import encode

if TYPE_CHECKING:
    from evictstream.models.eviction import Changes
    from evictstream.streams.engine.core.outbox import Headers, Outbox

_JSON: Final = ("content-type", b"application/json")

# Nobody may change these lists: every message of the kind has the same one, and the producer may rely on that.
COMMAND_HEADERS: Final[Headers] = [("type", b"io.evictstream.eviction-command.v1"), _JSON]
DECISION_HEADERS: Final[Headers] = [("type", b"io.evictstream.eviction-decision.v1"), _JSON]


class MessageWriter:
    """Writes commands and decisions into an outbox."""

    __slots__ = ("_commands_topic", "_decisions_topic")

    def __init__(self, commands_topic: str, decisions_topic: str) -> None:
        self._commands_topic = commands_topic
        self._decisions_topic = decisions_topic

    def put(self, changes: Changes, key: bytes, outbox: Outbox) -> None:
        """Add rows, then commands and decisions in the order in which they were decided."""
        for row, value in changes.rows:
            outbox.put(row, value)
        for command in changes.commands:
            outbox.send(self._commands_topic, key, encode(command), COMMAND_HEADERS)
        for decision in changes.decisions:
            outbox.send(self._decisions_topic, key, encode(decision), DECISION_HEADERS)
