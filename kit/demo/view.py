"""Shows the story: a live view on a terminal, lines with times elsewhere."""

from __future__ import annotations

import collections
from typing import Protocol, TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from evictstream.kit.demo.board import Board, owed_us
from evictstream.models.instants import SECOND_US
from evictstream.streams.printing import one_line

REFRESH_US = 200_000
"""Between two pictures: countdowns in tenths look alive, and drawing costs a hundredth of a core."""

GATHER_US = 500_000
"""For how long commands are gathered into one line when there is no terminal."""

# Together with the head they fit into 24 lines.
DEADLINES_SHOWN = 6
COMMANDS_SHOWN = 7

NARROW = 104
"""Below that many columns zones and, on the right, nodes are left out; their pods are called after them."""

_STYLES = {"Schedule": "yellow", "Cancel": "green", "Evict": "red"}


class Show(Protocol):
    """Shows what happens, as it happens."""

    def begin(self, start_us: int) -> None:
        """Count seconds from here; microseconds since 1970."""

    def say(self, now_us: int, sentence: str) -> None:
        """Tell that something has happened."""

    def refresh(self, board: Board, now_us: int) -> None:
        """Show what has changed; called many times a second."""

    def close(self) -> None:
        """Leave the screen to others; may be called twice."""


def seconds_text(now_us: int, start_us: int | None) -> str:
    """Seconds since the recording began to play, before that a dash; eight characters."""
    return "       -" if start_us is None else f"{(now_us - start_us) / SECOND_US:6.1f} s"


def duration_text(seconds: float) -> str:
    """Say a duration as people do: milliseconds below one second."""
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.2f} s"


class PlainShow:
    """One line for each thing that happens, in the order in which it does."""

    def __init__(self, out: TextIO) -> None:
        """Write to `out`."""
        self._out = out
        self._start_us: int | None = None
        self._gathering: collections.Counter[tuple[str, str]] = collections.Counter()
        self._gathered_since_us = 0
        self._shown = 0

    def begin(self, start_us: int) -> None:
        """Count seconds from here."""
        self._start_us = start_us

    def say(self, now_us: int, sentence: str) -> None:
        """Write a line; commands that came before come before."""
        self._flush(now_us)
        print(one_line(f"{seconds_text(now_us, self._start_us)}  {sentence}"), file=self._out, flush=True)

    def refresh(self, board: Board, now_us: int) -> None:
        """Gather what is new, and write what was gathered for long enough."""
        total = board.totals.total()
        new = list(board.latest)[-(total - self._shown) :] if total > self._shown else []
        self._shown = total
        if new and not self._gathering:
            self._gathered_since_us = now_us
        self._gathering.update((seen.command["node"], seen.command["action"]) for seen in new)
        if now_us - self._gathered_since_us >= GATHER_US:
            self._flush(now_us)

    def close(self) -> None:
        """Write what is left."""
        self._flush(self._gathered_since_us)

    def _flush(self, now_us: int) -> None:
        nodes = sorted({node for node, _ in self._gathering})
        for node in nodes:
            parts = [
                f"{action} x {self._gathering[node, action]}" for action in _STYLES if (node, action) in self._gathering
            ]
            at = seconds_text(min(self._gathered_since_us, now_us), self._start_us)
            print(one_line(f"{at}  commands for {node}: {', '.join(parts)}"), file=self._out, flush=True)
        self._gathering.clear()


class LiveShow:
    """A picture that is drawn anew several times a second; what is said scrolls away above it."""

    def __init__(self, console: Console) -> None:
        """Draw on `console`."""
        self._console = console
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._start_us: int | None = None
        self._drawn_us = 0
        self._live.start()

    def begin(self, start_us: int) -> None:
        """Count seconds from here."""
        self._start_us = start_us

    def say(self, now_us: int, sentence: str) -> None:
        """Put a line above the picture."""
        self._console.print(Text(f"{seconds_text(now_us, self._start_us)}  {sentence}"))

    def refresh(self, board: Board, now_us: int) -> None:
        """Draw, if it is time to."""
        if now_us - self._drawn_us >= REFRESH_US:
            self._drawn_us = now_us
            self._live.update(self._picture(board, now_us), refresh=True)

    def _picture(self, board: Board, now_us: int) -> RenderableType:
        return picture(board, now_us, self._start_us, narrow=self._console.width < NARROW)

    def close(self) -> None:
        """Take the picture away."""
        self._live.stop()


def picture(board: Board, now_us: int, start_us: int | None, *, narrow: bool = False) -> RenderableType:
    """Draw the board: head, nodes on the left, deadlines and commands on the right."""
    head = Table.grid(expand=True)
    head.add_column(ratio=1, no_wrap=True)
    head.add_column(justify="right", no_wrap=True)
    head.add_row(Text(board.phase, style="bold"), Text(seconds_text(now_us, start_us).strip(), style="bold"))
    for line in (board.headline, *board.workers):
        head.add_row(Text(line, style="dim"), "")
    body = Table.grid(expand=True, padding=(0, 3, 0, 0))
    body.add_column()
    body.add_column(ratio=1)
    right = Group(_deadlines(board, now_us, narrow=narrow), Text(), _commands(board))
    body.add_row(_nodes(board, narrow=narrow), right)
    return Panel(Group(head, Text(), body), title="evictstream", border_style="dim")


def _table() -> Table:
    return Table(box=None, pad_edge=False, header_style="dim", padding=(0, 1, 0, 0))


def _nodes(board: Board, *, narrow: bool) -> RenderableType:
    table = _table()
    table.add_column("node", width=8, no_wrap=True)
    if not narrow:
        table.add_column("zone", width=5, no_wrap=True)
    table.add_column("taints", width=12 if narrow else 22, no_wrap=True)
    titles = ("pend", "canc", "evict") if narrow else ("pending", "cancelled", "evicted")
    for title, style in zip(titles, ("yellow", "green", "red"), strict=True):
        table.add_column(title, justify="right", width=len(title), style=style)
    lines = sorted(board.nodes.values(), key=lambda line: (line.zone, line.name))
    for line in lines:
        if not line.is_quiet:
            taints = Text(", ".join(taint.rpartition("/")[2] for taint in line.taints), style="magenta")
            counts = (str(count or "") for count in (line.pending, line.cancelled, line.evicted))
            table.add_row(line.name, *(() if narrow else (line.zone,)), taints, *counts)
    quiet = sum(line.is_quiet for line in lines)
    totals = (len(board.pending), board.totals["Cancel"], sum(line.evicted for line in lines))
    table.add_row(f"{quiet} quiet", *(() if narrow else ("",)), "", *map(str, totals))
    return table


def _deadlines(board: Board, now_us: int, *, narrow: bool) -> RenderableType:
    table = _table()
    table.add_column("due in", justify="right", width=8)
    table.add_column("pod", no_wrap=True)
    if not narrow:
        table.add_column("on", no_wrap=True)
    soonest = sorted(board.pending.values(), key=lambda one: (one.deadline_us, one.pod))
    for one in soonest[:DEADLINES_SHOWN]:
        left = (one.deadline_us - now_us) / SECOND_US
        text = Text(f"{left:.1f} s", style="red" if left < 0 else "yellow")
        table.add_row(text, one.pod, *(() if narrow else (one.node,)))
    for _ in range(DEADLINES_SHOWN - len(soonest)):
        table.add_row("")
    return table


def _commands(board: Board) -> RenderableType:
    table = _table()
    table.add_column("last", width=8)
    table.add_column("commands", no_wrap=True)
    table.add_column("late by", justify="right", no_wrap=True)
    for seen in list(board.latest)[-COMMANDS_SHOWN:]:
        command = seen.command
        late = (seen.at_us - owed_us(command, board.plans)) / SECOND_US
        table.add_row(
            Text(command["action"], style=_STYLES.get(command["action"], "")),
            command["pod"],
            duration_text(late) if command["action"] == "Evict" else "",
        )
    for _ in range(COMMANDS_SHOWN - len(board.latest)):
        table.add_row("")
    return table
