"""Format and level of logs."""

from __future__ import annotations

from typing import Literal

from evictstream.streams.settings.group import SettingsGroup


class LoggingSettings(SettingsGroup):
    """Format and level of logs. They go to stderr; stdout is for results."""

    log_format: Literal["auto", "json", "console"] = "auto"
    """`auto` writes JSON unless stderr is a terminal."""

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Lowest level that is written. At `debug`, libraries that would quote whole records log from `info` on: no level
    writes the content of a record."""
