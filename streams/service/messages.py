"""Writes messages as records: topic, key, value and CloudEvents headers (binary mode, version 1.0).

A `ce_id` follows from the content of the message, never from the time of sending, so a consumer recognises a duplicate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evictstream.models.messages.codec import encode

if TYPE_CHECKING:
    from evictstream.models.eviction import Changes
    from evictstream.streams.engine.core.outbox import Headers, Outbox

COMMAND_TYPE = b"io.evictstream.eviction-command.v1"
DECISION_TYPE = b"io.evictstream.eviction-decision.v1"
DEAD_LETTER_TYPE = b"io.evictstream.dead-letter.v1"

_SPEC = ("ce_specversion", b"1.0")
_JSON = ("content-type", b"application/json")


class MessageWriter:
    """Writes commands and decisions of one partition into its outbox."""

    __slots__ = ("_commands_topic", "_decisions_topic", "_source")

    def __init__(self, commands_topic: str, decisions_topic: str, source: str) -> None:
        """`source` is the `ce_source` of all messages."""
        self._commands_topic = commands_topic
        self._decisions_topic = decisions_topic
        self._source = ("ce_source", source.encode())

    def put(self, changes: Changes, key: bytes, outbox: Outbox) -> None:
        """Add rows, then commands and decisions in the order in which they were decided."""
        for row, value in changes.rows:
            outbox.put(row, value)
        for command in changes.commands:
            name = f"{command.eviction_id}.{command.revision}.{command.attempt}.{command.action}"
            headers = self._headers(name, COMMAND_TYPE, command.issued_at)
            outbox.send(self._commands_topic, key, encode(command), headers)
        for decision in changes.decisions:
            name = f"{decision.eviction_id}.{decision.revision}.{decision.attempt}.{decision.decision}"
            if decision.outcome is not None:
                name = f"{name}.{decision.outcome}"  # an attempt may be reported as failed, later as done
            headers = self._headers(name, DECISION_TYPE, decision.cause.at)
            outbox.send(self._decisions_topic, key, encode(decision), headers)

    def _headers(self, name: str, kind: bytes, at: str) -> Headers:
        return [
            _SPEC,
            ("ce_id", name.encode()),
            self._source,
            ("ce_type", kind),
            ("ce_time", at.encode()),
            _JSON,
        ]
