"""Rich's console for tables, progress and live views, whose texts cannot steer the terminal and show no secret."""

from __future__ import annotations

from collections.abc import Iterable
from typing import IO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from evictstream.streams.logs import without_secrets
from evictstream.streams.printing import printable


class PrintableConsole(Console):
    """Sends its own sequences to the terminal, and of the texts what can be printed."""

    @property
    def file(self) -> IO[str]:
        """Return the terminal's own stream, behind all that stand for it: a live view puts one more there."""
        stream = super().file
        while stream is not (behind := getattr(stream, "rich_proxied_file", stream)):
            stream = behind
        return stream

    @file.setter
    def file(self, new_file: IO[str]) -> None:
        self._file = new_file

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render, and clean what is text."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(without_secrets(segment.text)), segment.style)
