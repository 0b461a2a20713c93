"""Writes messages as records: topic, key, value and headers.

The headers are the same for all messages of a kind, and one list: a list for each message cost a fifth of an outage's
time. What tells one message from another is in the value (docs/messages.md), so a consumer recognises a duplicate.

Where one transaction has the `Due` and the `Issued` of an eviction, they are one record. Readers see both at the same
moment anyway, and an outage has one such pair for each untolerated pod.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from evictstream.models.messages.codec import encode
from evictstream.models.messages.decision import DecisionRecord
from evictstream.models.messages.vocabulary import DecisionKind

if TYPE_CHECKING:
    from evictstream.models.eviction import Changes
    from evictstream.models.eviction.cluster import Cluster
    from evictstream.streams.engine.core.outbox import Headers, Outbox

_DUE, _ISSUED = DecisionKind.DUE, DecisionKind.ISSUED
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

    def put(self, changes: Changes, outbox: Outbox, cluster: Cluster) -> None:
        """Add rows, then commands and decisions in the order in which they were decided. Executors wait for commands.

        Args:
            changes: of a step, or of one slice.
            outbox: takes them.
            cluster: gives the key, and the UID that commands name, if it is known.
        """
        key, cluster_uid = cluster.key, cluster.state.uid
        for row, value in changes.rows:
            outbox.put(row, value)
        for decided in changes.commands:
            command = msgspec.structs.replace(decided, cluster_uid=cluster_uid) if cluster_uid else decided
            outbox.send(self._commands_topic, key, encode(command), COMMAND_HEADERS, is_urgent=True)
        for decision in changes.decisions:
            kind = decision.decision
            if kind is _ISSUED:
                draft = outbox.drafts.get(decision.eviction_id)
                whole = None if draft is None else with_due(decision, draft.content)
                if whole is not None:
                    outbox.replace(decision.eviction_id, encode(whole))
                    continue
            elif kind is _DUE:
                value = encode(decision)
                outbox.send_draft(decision.eviction_id, decision, self._decisions_topic, key, value, DECISION_HEADERS)
                continue
            outbox.send(self._decisions_topic, key, encode(decision), DECISION_HEADERS)


def with_due(issued: DecisionRecord, due: object) -> DecisionRecord | None:
    """Join an `Issued` with the `Due` before it, or return `None` if that says anything that the other does not."""
    if (
        isinstance(due, DecisionRecord)
        and due.revision == issued.revision
        and due.deadline == issued.deadline
        and due.window_start == issued.window_start
        and due.outage_start == issued.outage_start
        and due.verdict is issued.verdict
        and due.taint == issued.taint
        and due.toleration == issued.toleration
        and due.node_uid == issued.node_uid
    ):
        return msgspec.structs.replace(issued, due_cause=due.cause, previous=due.previous, warnings=due.warnings)
    return None
