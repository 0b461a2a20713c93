"""How far a long command is: one line on a terminal's stderr, which is gone at the end; nothing where there is none."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Self, TypeVar

from evictstream.streams.printing import one_line

PROGRESS_SECONDS = 0.2
"""Between two updates; faster ones a person cannot read."""

RECORDS_BETWEEN_LOOKS = 5_000
"""Between two looks at the clock: to look at each record would take a tenth of a replay's time."""

_T = TypeVar("_T")


class ProgressLine:
    """A spinner, what is done, and what was said last; also a bar where the end is known. Use as a context manager."""

    def __init__(self, doing: str, *, total: int | None = None) -> None:
        """Take what is done, such as `replaying`, and of how many records at most."""
        from rich.progress import (
            BarColumn,
            Progress,
            SpinnerColumn,
            TaskProgressColumn,
            TextColumn,
            TimeRemainingColumn,
        )

        from evictstream.streams.cli.consoles import PrintableConsole

        self._doing = doing
        self._next_at = 0.0
        self._console = PrintableConsole(stderr=True, highlight=False, soft_wrap=True)
        bar = () if total is None else (BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
        columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), *bar)
        self._progress = Progress(*columns, console=self._console, transient=True, disable=not sys.stderr.isatty())
        self._task = self._progress.add_task(doing, total=total)

    def __enter__(self) -> Self:
        """Show it."""
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove it."""
        self.close()

    def close(self) -> None:
        """Remove it before the end; what is said afterwards stays."""
        self._progress.stop()

    def say(self, line: str) -> None:
        """Print a line that stays, above the progress or where there is none."""
        self._console.print(one_line(line), markup=False)

    def is_due(self) -> bool:
        """Whether `show` would show anything: there is a terminal, and the last update is long enough ago."""
        return not self._progress.disable and time.monotonic() >= self._next_at

    def show(self, count: int, what: str) -> None:
        """Show how many of what are done, if it is due; this also moves the bar."""
        if self.is_due():
            self._next_at = time.monotonic() + PROGRESS_SECONDS
            self._progress.update(self._task, completed=count, description=f"{self._doing}: {count:,} {what}")


def with_progress(records: Iterable[_T], doing: str, total: int | None = None) -> Iterable[_T]:
    """Pass records on, and show how many; a comparison reads them more than once."""
    return _shown(records, doing, total) if sys.stderr.isatty() else records


def _shown(records: Iterable[_T], doing: str, total: int | None) -> Iterator[_T]:
    with ProgressLine(doing, total=total) as line:
        for number, record in enumerate(records):
            if number % RECORDS_BETWEEN_LOOKS == 0:
                line.show(number, "records")
            yield record
