"""`evictstream commands`: follow the eviction commands."""

from __future__ import annotations

import datetime as dt
import shutil
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from evictstream.models.messages.vocabulary import Action
from evictstream.streams.cli.global_options import global_options
from evictstream.streams.cli.output import OUTPUT_FORMATS, OutputFormat, warn
from evictstream.streams.cli.stop_signals import StopSignals
from evictstream.streams.cli.topic_times import read_start
from evictstream.streams.errors import ExitCode
from evictstream.streams.feed.cluster_names import check_cluster_name
from evictstream.streams.printing import printable_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from evictstream.models.messages.command import EvictionCommand
    from evictstream.streams.broker.follow import FollowedRecord

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


@app.command()
def commands(
    context: typer.Context,
    start: Annotated[
        str,
        typer.Option(
            "--from",
            help="Start: beginning, now, 5m for five minutes ago, or a time such as 2026-11-21T02:15:00Z.",
            metavar="WHEN",
        ),
    ] = "now",
    cluster: Annotated[
        str | None, typer.Option(help="Only this cluster.", metavar="NAME", parser=check_cluster_name)
    ] = None,
    node: Annotated[str | None, typer.Option(help="Only this node.", metavar="NAME")] = None,
    action: Annotated[
        list[Action] | None,
        typer.Option(
            help="Only this kind of command; repeatable.", metavar="schedule|evict|cancel", case_sensitive=False
        ),
    ] = None,
    maximum: Annotated[
        int | None, typer.Option("--max", help="Exit after so many commands.", min=1, metavar="NUMBER")
    ] = None,
    idle_seconds: Annotated[
        float | None,
        typer.Option(
            help="Exit when all is read and no command has arrived for so long. Default: never.",
            min=0,
            metavar="SECONDS",
        ),
    ] = None,
    output: Annotated[
        OutputFormat | None,
        typer.Option(
            "--output", "-o", help="Default: text on a terminal, otherwise JSON lines.", metavar=OUTPUT_FORMATS
        ),
    ] = None,
) -> ExitCode:
    """Follow the eviction commands, until stopped.

    On a terminal, one row per command: time of issue, action, pod, node and time left; with 150 columns or more also
    cluster, deadline, reason, and attempt/revision. Times are UTC. Otherwise, or with `-o json`, the messages
    themselves, one per line. Only committed messages are shown; no offsets are committed. Unreadable records are
    reported on stderr.

    Exits with 0, also after Ctrl-C or SIGTERM, or when the reader of the pipe has exited.

    Examples:

    * `evictstream commands --cluster prod-eu-1 --action Evict`
    * `evictstream commands --from beginning --idle-seconds 2 -o json | jq -c .pod`
    """
    from evictstream.streams.broker.follow import follow

    options = global_options(context)
    as_text = sys.stdout.isatty() if output is None else output is OutputFormat.TEXT
    options.wants_json = not as_text
    begin = read_start(start)
    settings = options.settings
    show = _Show(settings.commands_topic, as_text=as_text, maximum=maximum, wanted=_wanted(cluster, node, action))
    with (
        StopSignals() as stop_signals,
        follow(
            settings,
            settings.commands_topic,
            begin,
            is_stopped=lambda: stop_signals.is_stopped() or show.is_full,
            idle_seconds=idle_seconds,
        ) as batches,
    ):
        show.begin()
        for batch in batches:
            show.batch(batch)
        show.end()
    return ExitCode.DONE


def _wanted(cluster: str | None, node: str | None, actions: list[Action] | None) -> Callable[[EvictionCommand], bool]:
    return lambda command: (
        (cluster is None or command.cluster == cluster)
        and (node is None or command.node == node)
        and (not actions or command.action in actions)
    )


class _Show:
    """Writes the wanted commands to stdout, up to a maximum."""

    def __init__(
        self, topic: str, *, as_text: bool, maximum: int | None, wanted: Callable[[EvictionCommand], bool]
    ) -> None:
        import msgspec

        from evictstream.models.messages.command import EvictionCommand
        from evictstream.streams.cli.command_rows import CommandRows

        self._topic = topic
        terminal = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        self._rows = CommandRows(terminal) if as_text else None
        self._has_titles = False
        self._cells: list[list[str]] = []
        self._left = maximum
        self._wanted = wanted
        self._decoder = msgspec.json.Decoder(EvictionCommand)

    @property
    def is_full(self) -> bool:
        return self._left == 0

    def begin(self) -> None:
        """Give a terminal its titles at once; in a pipe the first rows say how wide they are."""
        if sys.stdout.isatty():
            self.end()

    def end(self) -> None:
        """Print the titles if there are none yet."""
        if self._rows is not None and not self._has_titles:
            self._write(self._rows.titles().encode())
            sys.stdout.buffer.flush()
            self._has_titles = True

    def batch(self, records: Iterable[FollowedRecord]) -> None:
        for record in records:
            if self.is_full:
                break
            try:
                is_wanted = self._take(record.value)
            except (ValueError, RecursionError) as error:
                warn(f"{self._topic}, {record.place} cannot be read: {error}")
                continue
            if is_wanted and self._left is not None:
                self._left -= 1
        if self._rows is not None and self._cells:
            for line in self._rows.lines(self._cells):
                self._write(line.encode())
            self._has_titles = True
            self._cells.clear()
        sys.stdout.buffer.flush()

    def _take(self, value: bytes | None) -> bool:
        """Write a message, or keep its row, if it is wanted. Raises `ValueError` if it cannot be read."""
        import msgspec

        from evictstream.models.messages.command import COMMAND_KIND
        from evictstream.models.messages.envelope import DECODE_ERRORS, unreadable

        if value is None:
            raise ValueError("no value")
        try:
            command = self._decoder.decode(value)
        except DECODE_ERRORS as error:
            raise unreadable(error) from error
        if command.kind != COMMAND_KIND:
            raise ValueError("not an eviction command")
        if not self._wanted(command):
            return False
        if self._rows is not None:
            self._cells.append(self._rows.cells(command, dt.datetime.now(dt.UTC)))
            return True
        # Another producer may have written line breaks, which would look like two records to a program, or what steers
        # a terminal.
        whole = value if min(value) >= ord(" ") else msgspec.json.format(value, indent=-1)
        self._write(printable_json(whole.decode(errors="replace")).encode())
        return True

    @staticmethod
    def _write(line: bytes) -> None:
        sys.stdout.buffer.write(line + b"\n")
