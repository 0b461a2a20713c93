"""When firing waits. A closed gate delays an eviction; it never drops one."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from evictstream.streams.settings.group import SettingsGroup

_Seconds = Annotated[float, Field(gt=0)]


class GateSettings(SettingsGroup):
    """Limits of the gates in front of the timer service."""

    feed_silence_limit_seconds: _Seconds = 60.0
    """A cluster that sends heartbeats waits when the latest one, on nodes or on pods, is older. Feeds send one every 10
    s; six lost ones are an outage, not a hiccup."""

    lag_limit_seconds: _Seconds = 10.0
    """A partition waits when it last had certainly applied all its inputs longer ago: the unread part may hold a
    cancellation. Ten seconds is a rebalance."""

    clock_skew_limit_seconds: _Seconds = 5.0
    """Firing waits when the worker's clock and the brokers' append times differ by more. A clock that is ahead by less
    fires early by as much; one that is behind only delays. Append times further ahead of both clocks count as now. NTP
    keeps machines within tenths of a second."""

    clock_jump_limit_seconds: _Seconds = 30.0
    """Firing waits when the worker's clock has jumped forward by more than this against the monotonic clock. A jump
    back only delays."""

    clock_jump_hold_seconds: _Seconds = 300.0
    """How long firing waits after such a jump."""
