"""When a worker counts as stuck, and where it serves health and metrics."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from evictstream.streams.settings.group import SettingsGroup

_Seconds = Annotated[float, Field(gt=0)]


class HealthSettings(SettingsGroup):
    """Limits of the watchdog, and the address of health and metrics."""

    health_host: str = "127.0.0.1"
    """Address of `/livez`, `/readyz` and `/metrics`: loopback, since there is no authentication. In a pod or container
    that is probed or scraped from outside, use `::` behind a network policy: all its addresses of IPv6 and IPv4."""

    health_port: Annotated[int, Field(ge=0, le=65_535)] = 0
    """Port of the same; a port in use is an error. 0 takes a free one, named by a log line at start, so that two
    workers on one machine do not collide. Set it where something probes or scrapes."""

    stall_limit_seconds: Annotated[float, Field(ge=2)] = 60.0
    """A worker ends when its event loop, or its timers, which wait for nothing else, have stood still for longer. A
    takeover of a million pods has held the loop for four seconds; a new worker would only hold it again."""

    write_limit_seconds: _Seconds = 120.0
    """A worker ends when it has waited longer for an acknowledgement, a commit, or a batch on its way to its partition.
    Each of these times out after `transaction_timeout_seconds`, so this limit means that the time-out failed."""

    broker_silence_limit_seconds: _Seconds = 300.0
    """A worker ends when it has waited longer for a response to a fetch, for the group to confirm it, or to own its
    assigned partitions. Longer than a restart of all brokers; firing has stopped long before, and a new process
    connects afresh."""
