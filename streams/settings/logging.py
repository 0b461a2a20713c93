"""Format and level of logs."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from evictstream.streams.settings.group import SettingsGroup


class LoggingSettings(SettingsGroup):
    """Format and level of logs. They go to stderr; stdout is for results."""

    log_format: Literal["auto", "json", "console"] = "auto"
    """`auto` writes JSON unless stderr is a terminal."""

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Lowest level that is written. At `debug`, libraries that would quote whole records log from `info` on: no level
    writes the content of a record."""

    log_lines_limit: Annotated[int, Field(ge=0)] = 100
    """Most lines about single evictions and dead letters in ten seconds, for each event and, in an executor, for each
    cluster. More are counted, and one line has the counts. A line takes as long as deciding two evictions; 100 lines
    take some 30 ms. 0 writes only counts."""
