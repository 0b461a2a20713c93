"""The table of `evictstream commands`: its columns, and its lines, one for each eviction command."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from evictstream.models.instants import instant_text, microseconds
from evictstream.models.kubernetes.taints import taint_text
from evictstream.models.messages.command import EvictionCommand
from evictstream.models.messages.vocabulary import Action
from evictstream.streams.cli.columns import GAP, Columns


class CommandColumn(NamedTuple):
    """One column of the table.

    Attributes:
        title: its title.
        width: characters that most cells need, so that few rows widen it; 0 where no column of fixed place follows.
        cell: the text for a command as seen at an instant.
    """

    title: str
    width: int
    cell: Callable[[EvictionCommand, dt.datetime], str]


class CommandRows:
    """Formats rows as they come."""

    def __init__(self, terminal: int | None = None) -> None:
        """Show all columns, or those that fit into 80 where a `terminal` has so few that rows would break."""
        self._shown = COMMAND_COLUMNS if terminal is None or terminal >= WIDE_TERMINAL else NARROW_COLUMNS
        self._columns = Columns([column.title for column in self._shown], [column.width for column in self._shown])

    def titles(self) -> str:
        """Return the line of titles."""
        return self._columns.titles()

    def cells(self, command: EvictionCommand, now: dt.datetime) -> list[str]:
        """Return the cells of a command as seen at `now`.

        Raises:
            ValueError: one of its instants is malformed or has no zone.
        """
        return [column.cell(command, now) for column in self._shown]

    def lines(self, rows: Sequence[Sequence[str]]) -> Iterator[str]:
        """Yield the lines of rows that are printed together, and titles where they are needed."""
        return self._columns.lines(rows)


def distance(seconds: float) -> str:
    """Format a time ahead as `4m58s`, a past one with a minus; at most two units, cut, not rounded."""
    left = abs(int(seconds))
    days, left = divmod(left, 86_400)
    hours, left = divmod(left, 3_600)
    minutes, left = divmod(left, 60)
    parts = [(days, "d"), (hours, "h"), (minutes, "m"), (left, "s")]
    first = next((index for index, (count, _) in enumerate(parts) if count), len(parts) - 1)
    sign = "-" if seconds <= -1 else ""
    return sign + "".join(f"{count}{unit}" for count, unit in parts[first : first + 2])


def _instant(text: str) -> dt.datetime:
    instant = dt.datetime.fromisoformat(text)
    if instant.tzinfo is None:
        raise ValueError("an instant has no zone")
    return instant.astimezone(dt.UTC)


def _shown(text: str) -> str:
    """Write an instant as all commands and topics do, whatever zone its writer chose."""
    return instant_text(microseconds(_instant(text)))


def _until(command: EvictionCommand, now: dt.datetime) -> str:
    deadline = _instant(command.deadline)
    return "-" if command.action is Action.CANCEL else distance((deadline - now).total_seconds())


COMMAND_COLUMNS: Final = (
    CommandColumn("TIME", 27, lambda command, _: _shown(command.issued_at)),
    CommandColumn("ACTION", 8, lambda command, _: command.action),
    CommandColumn("CLUSTER", 8, lambda command, _: command.cluster),
    CommandColumn("POD", 24, lambda command, _: f"{command.namespace}/{command.pod}"),
    CommandColumn("NODE", 12, lambda command, _: command.node),
    CommandColumn("DEADLINE", 27, lambda command, _: _shown(command.deadline)),
    CommandColumn("IN", 8, _until),  # how far away the deadline is
    CommandColumn("VERDICT", 17, lambda command, _: command.reason.verdict),
    CommandColumn("TRY", 0, lambda command, _: f"{command.attempt}/{command.revision}"),
    CommandColumn("TAINT", 0, lambda command, _: taint_text(command.reason.taint)),  # of any length, so the last
)

_BY_TITLE: Final = {column.title: column for column in COMMAND_COLUMNS}

NARROW_COLUMNS: Final = (
    CommandColumn("TIME", 8, lambda command, _: f"{_instant(command.issued_at):%H:%M:%S}"),
    *(_BY_TITLE[title] for title in ("ACTION", "POD", "NODE", "IN")),
)
"""Without the cluster, the reason and the instants, which `-o json` has."""

WIDE_TERMINAL: Final = sum(column.width + len(GAP) for column in COMMAND_COLUMNS)
"""From here on rows have room but for long names."""
