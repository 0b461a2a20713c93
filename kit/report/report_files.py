"""The page that a replay's report is written to."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from evictstream.kit.report.timeline import TimelineCollector
from evictstream.streams.errors import WrongUseError

if TYPE_CHECKING:
    from evictstream.kit.recordings.record import RecordedRecord
    from evictstream.kit.replay.replay_report import ReplayReport
    from evictstream.kit.replay.virtual_partition import ReplayedMessage


class ReportFile:
    """Collects while a replay runs what its page shows, and writes it at its end.

    The plotting library is an extra of the package, and is imported only here.
    """

    def __init__(self, page: Path | None) -> None:
        """Take the file; None writes nothing.

        Raises:
            WrongUseError: the plotting library is missing, or the folder.
        """
        if page is not None:
            if importlib.util.find_spec("bokeh") is None:
                raise WrongUseError("bokeh is not installed", next_step="pip install 'evictstream[report]'")
            if not page.parent.is_dir():
                raise WrongUseError(f"{page.parent} is not a folder", next_step="create it, or name another folder")
        self._page = page
        self._collector = None if page is None else TimelineCollector()
        self._is_read = False

    def watched(self, records: Iterable[RecordedRecord]) -> Iterable[RecordedRecord]:
        """Pass records on; those of the first reading are noted."""
        if self._collector is None or self._is_read:
            return records
        self._is_read = True
        return self._collector.watched(records)

    def take(self, message: ReplayedMessage) -> None:
        """Note a message of the replay."""
        if self._collector is not None:
            self._collector.take(message)

    def write(self, report: ReplayReport, *, title: str) -> None:
        """Write the file; an earlier one under its name is replaced.

        Raises:
            WrongUseError: it cannot be written.
        """
        if self._collector is None or self._page is None:
            return
        from evictstream.kit.report.page import page  # noqa: PLC0415 - an extra, and slow to import

        try:
            self._page.write_text(page(self._collector.timeline(report.evictions), report, title=title), "utf-8")
        except OSError as error:
            raise WrongUseError(f"{error.filename} cannot be written: {error.strerror}") from error
