"""What a step of the aggregate has changed, for the caller to write in one transaction."""

import enum
from collections.abc import Sequence
from typing import Final

import msgspec

from evictstream.models.messages.command import EvictionCommand
from evictstream.models.messages.decision import DecisionRecord


class Note(enum.StrEnum):
    """What became of an input, for counting."""

    CHANGED = "changed"
    """It has changed rows; there may be messages and wake-ups."""
    UNCHANGED = "unchanged"
    """It was news, but none that matters."""
    DUPLICATE = "duplicate"
    """It was known already, word for word."""
    STALE = "stale"
    """It was overtaken by what is known: an older version, a deleted UID, a result of an old attempt."""
    UNDECIDABLE = "undecidable"
    """It was news, but is beyond a limit: its pods are left alone. There may be rows, and messages that take back."""


class Changes(msgspec.Struct, frozen=True):
    """What has to be written and remembered after a step.

    Steps that write nothing return one of the constants below, so `changes is UNCHANGED` costs nothing and nothing is
    allocated for an event that changes nothing. `fire` may also return wake-ups alone, with the note `unchanged`.

    Attributes:
        note: what became of the input.
        rows: key and value, each key once; None deletes the row.
        commands: to executors, in the order of sending.
        decisions: records for people, in the order of deciding.
        wakeups: (instant in microseconds since 1970, UID of the pod or empty for the node itself). Earlier ones for the
            same UID may be dropped or kept: a stale wake-up does no harm.
    """

    note: Note
    rows: Sequence[tuple[bytes, bytes | None]] = ()
    commands: Sequence[EvictionCommand] = ()
    decisions: Sequence[DecisionRecord] = ()
    wakeups: Sequence[tuple[int, str]] = ()


UNCHANGED: Final = Changes(Note.UNCHANGED)
DUPLICATE: Final = Changes(Note.DUPLICATE)
STALE: Final = Changes(Note.STALE)
UNDECIDABLE: Final = Changes(Note.UNDECIDABLE)
