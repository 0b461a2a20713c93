"""Eviction commands as lines on a terminal, for output that has no end."""

from __future__ import annotations

import datetime as dt

from evictstream.models.kubernetes.taints import taint_text
from evictstream.models.messages.command import EvictionCommand
from evictstream.models.messages.vocabulary import Action
from evictstream.streams.cli.columns import Columns

TITLES = ("TIME", "ACTION", "CLUSTER", "POD", "NODE", "DEADLINE", "IN", "VERDICT", "TAINT", "TRY")

_WIDTHS = (23, 8, 8, 24, 12, 23, 8, 17, 0, 0)  # what most rows need, so that few shift the others


class ShownCommand(EvictionCommand, frozen=True, forbid_unknown_fields=False):
    """An eviction command, perhaps of a newer worker that writes more fields than this version knows."""


class CommandRows:
    """Formats one row after the other."""

    def __init__(self) -> None:
        self._columns = Columns(_WIDTHS)

    def titles(self) -> str:
        """Return the first line."""
        return self._columns.line(TITLES)

    def row(self, command: EvictionCommand, now: dt.datetime) -> str:
        """Return the line of a command as seen at `now`.

        The columns are when it was issued, what to do, where, by when (UTC), how far away that is, why, because of
        which taint, and attempt and revision.

        Raises:
            ValueError: an instant in it is none.
        """
        deadline = _instant(command.deadline)
        return self._columns.line(
            (
                _shown(_instant(command.issued_at)),
                command.action,
                command.cluster,
                f"{command.namespace}/{command.pod}",
                command.node,
                _shown(deadline),
                "-" if command.action is Action.CANCEL else distance((deadline - now).total_seconds()),
                command.reason.verdict,
                taint_text(command.reason.taint),
                f"{command.attempt}/{command.revision}",
            )
        )


def distance(seconds: float) -> str:
    """Write a time ahead as `4m58s`, one behind with a minus; two units at most, cut, not rounded."""
    left = abs(int(seconds))
    days, left = divmod(left, 86_400)
    hours, left = divmod(left, 3_600)
    minutes, left = divmod(left, 60)
    parts = [(days, "d"), (hours, "h"), (minutes, "m"), (left, "s")]
    first = next((index for index, (count, _) in enumerate(parts) if count), len(parts) - 1)
    sign = "-" if seconds <= -1 else ""
    return sign + "".join(f"{count}{unit}" for count, unit in parts[first : first + 2])


def _instant(text: str) -> dt.datetime:
    found = dt.datetime.fromisoformat(text)
    if found.tzinfo is None:
        raise ValueError("an instant has no zone")
    return found.astimezone(dt.UTC)


def _shown(instant: dt.datetime) -> str:
    return instant.strftime("%Y-%m-%d %H:%M:%S.") + f"{instant.microsecond // 1000:03d}"
