"""What one partition is about to write: rows and messages.

The logic of a partition fills an outbox while it applies records and fires timers; the partition writer empties it into
one Kafka transaction. A row that is written twice before the transaction begins is sent once, with its last value:
readers of the changelog see the state after a transaction, never in the middle of one.
"""

from __future__ import annotations

from typing import Final, NamedTuple

Headers = list[tuple[str, bytes]]

NO_HEADERS: Final[Headers] = []


class Message(NamedTuple):
    """One record for an output topic; the partition is always the writer's own number.

    Attributes:
        key: of the record.
        value: of the record.
        headers: of the record.
        is_tombstone: whether it deletes what has its key, and has no value.
    """

    key: bytes
    value: bytes
    headers: Headers
    is_tombstone: bool = False


class Draft(NamedTuple):
    """A message that a later one of the same transaction may replace.

    Attributes:
        topic: where it goes.
        place: its place among the messages of that topic.
        content: what it says, for whoever decides whether to replace it.
    """

    topic: str
    place: int
    content: object


class Outbox:
    """Rows by key (`None` deletes) and messages by topic, in the order in which they were added.

    Attributes:
        drafts: messages that may still be replaced, by a name of the logic's.
        rows: the newest value of each changed row.
        messages: for each topic its messages in order.
        size_bytes: bytes added so far; a row that was written twice counts twice.
        entries: rows and messages added so far; a row that was written twice counts twice.
        is_urgent: whether there is a message that somebody acts on.
    """

    __slots__ = ("_aside", "drafts", "entries", "is_urgent", "messages", "rows", "size_bytes")

    def __init__(self) -> None:
        self.drafts: dict[str, Draft] = {}
        self.rows: dict[bytes, bytes | None] = {}
        self.messages: dict[str, list[Message]] = {}
        self.size_bytes = 0
        self.entries = 0
        self.is_urgent = False
        self._aside: Outbox | None = None

    def __bool__(self) -> bool:
        """Whether there is anything to write."""
        return self.entries > 0

    def take(self) -> Outbox:
        """Move everything into a new outbox and return it. This one is empty afterwards and can be filled again.

        Drafts stay as they are: what is taken can be replaced no more.
        """
        taken = Outbox()
        taken.rows, taken.messages = self.rows, self.messages
        taken.size_bytes, taken.entries = self.size_bytes, self.entries
        self.rows, self.messages = {}, {}
        self.drafts = {}
        self.size_bytes = self.entries = 0
        self.is_urgent = False
        return taken

    @property
    def is_in_step(self) -> bool:
        """Whether a step has put something aside."""
        return self._aside is not None

    def aside(self) -> Outbox:
        """Return where a step of several parts writes until it is whole. `take` leaves that."""
        if self._aside is None:
            self._aside = Outbox()
        return self._aside

    def end_step(self) -> None:
        """Add what was held aside behind what is here: the step is whole."""
        aside, self._aside = self._aside, None
        if aside is not None:
            self._absorb(aside)

    def _absorb(self, other: Outbox) -> None:
        self.rows.update(other.rows)
        for name, (topic, place, content) in other.drafts.items():
            self.drafts[name] = Draft(topic, place + len(self.messages.get(topic, ())), content)
        for topic, messages in other.messages.items():
            self.messages.setdefault(topic, []).extend(messages)
        self.size_bytes += other.size_bytes
        self.entries += other.entries
        self.is_urgent |= other.is_urgent

    def put(self, key: bytes, value: bytes | None) -> None:
        """Write a row, or delete it with `None`."""
        self.rows[key] = value
        self.entries += 1
        self.size_bytes += len(key) + (len(value) if value is not None else 0)

    def send(self, topic: str, key: bytes, value: bytes, headers: Headers, *, is_urgent: bool = False) -> None:
        """Add a message for an output topic; one that is not urgent waits for its transaction as rows do."""
        self.messages.setdefault(topic, []).append(Message(key, value, headers))
        self.entries += 1
        self.size_bytes += len(key) + len(value)
        self.is_urgent |= is_urgent

    def retract(self, topic: str, key: bytes) -> None:
        """Add a tombstone for a compacted output topic: what has the key is deleted there."""
        self.messages.setdefault(topic, []).append(Message(key, b"", NO_HEADERS, is_tombstone=True))
        self.entries += 1
        self.size_bytes += len(key)

    def send_draft(self, name: str, content: object, topic: str, key: bytes, value: bytes, headers: Headers) -> None:
        """Add a message that `replace` may replace as long as it is here."""
        self.send(topic, key, value, headers)
        self.drafts[name] = Draft(topic, len(self.messages[topic]) - 1, content)

    def replace(self, name: str, value: bytes) -> None:
        """Give a draft another value. It keeps its place, and is no draft any more."""
        topic, place, _ = self.drafts.pop(name)
        messages = self.messages[topic]
        before = messages[place]
        messages[place] = Message(before.key, value, before.headers)
        self.size_bytes += len(value) - len(before.value)
