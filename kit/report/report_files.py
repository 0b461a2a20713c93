"""The files that a replay's report is written to."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from evictstream.kit.report.timeline import TimelineCollector
from evictstream.streams.errors import WrongUseError

if TYPE_CHECKING:
    from evictstream.kit.recordings.record import RecordedRecord
    from evictstream.kit.replay.replay_report import ReplayReport
    from evictstream.kit.replay.virtual_partition import ReplayedMessage

PICTURE_FORMATS: Final = (".svg", ".png")


class ReportFiles:
    """Collects while a replay runs what a page and a picture show, and writes them at its end.

    The plotting libraries are an extra of the package, and are imported only here.
    """

    def __init__(self, *, page: Path | None, picture: Path | None) -> None:
        """Take the files; None leaves one out.

        Raises:
            WrongUseError: a plotting library is missing, a folder too, or a picture's name says no format.
        """
        if picture is not None and picture.suffix not in PICTURE_FORMATS:
            problem = f"{picture} is neither .svg nor .png"
            raise WrongUseError(problem, next_step="name a file that ends in one of them")
        for path, library in ((page, "bokeh"), (picture, "matplotlib")):
            if path is None:
                continue
            if importlib.util.find_spec(library) is None:
                raise WrongUseError(f"{library} is not installed", next_step="pip install 'evictstream[report]'")
            if not path.parent.is_dir():
                raise WrongUseError(f"{path.parent} is no folder", next_step="make it, or name another one")
        self._page, self._picture = page, picture
        self._collector = None if page is None and picture is None else TimelineCollector()
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
        """Write the files; earlier ones under their names are replaced.

        Raises:
            WrongUseError: one cannot be written.
        """
        if self._collector is None:
            return
        timeline = self._collector.timeline(report.evictions)
        try:
            if self._page is not None:
                from evictstream.kit.report.page import page  # noqa: PLC0415 - an extra, and slow to import

                self._page.write_text(page(timeline, report, title=title), encoding="utf-8")
            if self._picture is not None:
                from evictstream.kit.report.picture import write_picture  # noqa: PLC0415 - the same

                write_picture(timeline, self._picture, title=title)
        except OSError as error:
            raise WrongUseError(f"{error.filename} cannot be written: {error.strerror}") from error
