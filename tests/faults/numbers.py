"""The numbers that a run gives to the service and to the oracle, one source for both.

They are shorter than the defaults, so that retries, silences and outages fit into some seconds.
"""

from __future__ import annotations

from dataclasses import dataclass

from evictstream.kit.oracle import OracleLimits

SECOND_US = 1_000_000
REPORT_SILENCE_SECONDS = 30.0  # not a setting


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """Settings of the service under torture, in seconds; each field is the setting of the same name.

    `slack_seconds` alone is ours: how long after its time the oracle waits for what is owed.
    """

    outage_gap_seconds: float = 2.0
    retry_base_seconds: float = 0.5
    retry_ceiling_seconds: float = 4.0
    result_silence_seconds: float = 3.0
    success_grace_seconds: float = 5.0
    accepted_silence_seconds: float = 5.0
    accepted_limit_seconds: float = 9.0
    remember_deleted_seconds: float = 3600.0
    max_event_delay_seconds: float = 3.0
    feed_silence_limit_seconds: float = 4.0
    lag_limit_seconds: float = 3.0
    clock_skew_limit_seconds: float = 1.0
    clock_jump_limit_seconds: float = 3.0
    clock_jump_hold_seconds: float = 3.0
    max_object_bytes: int = 20_000
    slack_seconds: float = 8.0
    built_in: str | None = None  # patterns of clusters

    def settings(self) -> dict[str, float | str | None]:
        """Give the settings of the service, by name."""
        return {name: getattr(self, name) for name in self.__slots__ if name != "slack_seconds"}

    def limits(self) -> OracleLimits:
        """Give the oracle the same numbers."""

        def us(seconds: float) -> int:
            return int(seconds * SECOND_US)

        return OracleLimits(
            outage_gap_us=us(self.outage_gap_seconds),
            retry_base_us=us(self.retry_base_seconds),
            retry_ceiling_us=us(self.retry_ceiling_seconds),
            result_silence_us=us(self.result_silence_seconds),
            success_grace_us=us(self.success_grace_seconds),
            accepted_silence_us=us(self.accepted_silence_seconds),
            accepted_limit_us=us(self.accepted_limit_seconds),
            report_silence_us=us(REPORT_SILENCE_SECONDS),
            max_event_delay_us=us(self.max_event_delay_seconds),
            feed_silence_us=us(self.feed_silence_limit_seconds),
            lag_us=us(self.lag_limit_seconds),
            clock_skew_us=us(self.clock_skew_limit_seconds),
            max_object_bytes=self.max_object_bytes,
            slack_us=us(self.slack_seconds),
            built_in=() if self.built_in is None else tuple(self.built_in.split(",")),
        )


NUMBERS = Numbers()
