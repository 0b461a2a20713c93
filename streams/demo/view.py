"""Shows the story: a live view on a terminal, lines with times elsewhere."""

from __future__ import annotations

import collections
from typing import Protocol, TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from models.instants import MICROSECONDS_PER_SECOND
from streams.demo.board import Board
from streams.demo.oracle.rules import to_us

REFRESH_US = 200_000
"""Between two pictures: countdowns in tenths look alive, and drawing costs a hundredth of a core."""

GATHER_US = 500_000
"""For how long commands are gathered into one line when there is no terminal."""

DEADLINES_SHOWN = 6
COMMANDS_SHOWN = 8

_STYLES = {"Schedule": "yellow", "Cancel": "green", "Evict": "red"}


class Show(Protocol):
    """Where the story is told."""

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
    return "       -" if start_us is None else f"{(now_us - start_us) / MICROSECONDS_PER_SECOND:6.1f} s"


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
        print(f"{seconds_text(now_us, self._start_us)}  {sentence}", file=self._out, flush=True)

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
            print(f"{at}  commands for {node}: {', '.join(parts)}", file=self._out, flush=True)
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
            self._live.update(picture(board, now_us, self._start_us), refresh=True)

    def close(self) -> None:
        """Take the picture away."""
        self._live.stop()


def picture(board: Board, now_us: int, start_us: int | None) -> RenderableType:
    """Draw the board: head, nodes on the left, deadlines and commands on the right."""
    head = Table.grid(expand=True)
    head.add_column(ratio=1)
    head.add_column(justify="right", no_wrap=True)
    head.add_row(Text(board.phase, style="bold"), Text(seconds_text(now_us, start_us).strip(), style="bold"))
    head.add_row(Text(board.headline, style="dim"), "")
    for line in board.workers:
        head.add_row(Text(line, style="dim"), "")
    body = Table.grid(expand=True, padding=(0, 2))
    body.add_column(ratio=5)
    body.add_column(ratio=4)
    body.add_row(_nodes(board), Group(_deadlines(board, now_us), Text(), _commands(board)))
    return Panel(Group(head, Text(), body), title="evictstream", border_style="dim")


def _table(*columns: str) -> Table:
    return Table(*columns, box=None, pad_edge=False, header_style="dim", expand=True)


def _nodes(board: Board) -> RenderableType:
    table = _table("node", "zone", "NoExecute taints")
    for title in ("pending", "cancelled", "evicted"):
        table.add_column(title, justify="right")
    quiet = 0
    for line in sorted(board.nodes.values(), key=lambda line: (line.zone, line.name)):
        if line.is_quiet:
            quiet += 1
            continue
        taints = ", ".join(taint.rpartition("/")[2] for taint in line.taints)
        counts = [
            Text(str(count or ""), style=style)
            for count, style in zip(
                (line.pending, line.cancelled, line.evicted), ("yellow", "green", "red"), strict=True
            )
        ]
        table.add_row(line.name, line.zone, Text(taints, style="magenta"), *counts)
    totals = [str(len(board.pending)), str(board.totals["Cancel"]), str(sum(n.evicted for n in board.nodes.values()))]
    table.add_row(f"{quiet} quiet", "", "", *(Text(total, style="bold") for total in totals))
    return table


def _deadlines(board: Board, now_us: int) -> RenderableType:
    table = _table("next deadlines", "node")
    table.add_column("in", justify="right")
    soonest = sorted(board.pending.values(), key=lambda one: (one.deadline_us, one.pod))
    for one in soonest[:DEADLINES_SHOWN]:
        left = (one.deadline_us - now_us) / MICROSECONDS_PER_SECOND
        table.add_row(one.pod, one.node, Text(f"{left:.1f} s", style="red" if left < 0 else "yellow"))
    for _ in range(DEADLINES_SHOWN - len(soonest)):
        table.add_row("")
    return table


def _commands(board: Board) -> RenderableType:
    table = _table("last commands", "pod")
    table.add_column("late by", justify="right")
    for seen in list(board.latest)[-COMMANDS_SHOWN:]:
        command = seen.command
        late = (seen.at_us - to_us(command["deadline"])) / 1000 if command["action"] == "Evict" else None
        table.add_row(
            Text(command["action"], style=_STYLES.get(command["action"], "")),
            command["pod"],
            "" if late is None else f"{late:,.0f} ms",
        )
    for _ in range(COMMANDS_SHOWN - len(board.latest)):
        table.add_row("")
    return table
