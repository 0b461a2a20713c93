"""Waits for topics that are about to be created, as at a first installation, where all programs start at once.

Only what is missing is waited for: nothing changes a topic that exists and does not fit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from typing import Final

import structlog

from evictstream.streams.broker.admin import TopicsReport, advice, check_topics
from evictstream.streams.broker.topic_specs import TopicSpec
from evictstream.streams.settings import Settings

log = structlog.get_logger(__name__)

MISSING_LOOK_SECONDS: Final = 1.0
"""Between two looks, each of which connects to Kafka and costs some milliseconds of it."""


class MissingTopics:
    """Decides after each look whether a service waits, and says so once in the log."""

    def __init__(
        self,
        settings: Settings,
        *,
        but: str | None = None,
        whole: Collection[str] = (),
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin to count `topics_wait_seconds`; `but` and `whole` are those of `TopicsReport.breaking_but`."""
        self._seconds = settings.topics_wait_seconds
        self._but = but
        self._whole = whole
        self._now = now
        self._give_up_at = now() + self._seconds
        self._is_told = False

    def may_come(self, report: TopicsReport) -> bool:
        """Whether a later look may find all as it must be: topics are missing, nothing else is wrong, time is left."""
        wrong = report.breaking_but(self._but, self._whole)
        if not wrong or any(one.what != "topic" for one in wrong):
            return False
        if self._now() + MISSING_LOOK_SECONDS > self._give_up_at:
            return False
        if not self._is_told:
            self._is_told = True
            missing = [one.topic for one in wrong]
            log.warning("waiting for topics", missing=missing, wait_seconds=self._seconds, next_step=advice(wrong))
        return True


def wait_for_topics(
    settings: Settings,
    specs: Sequence[TopicSpec],
    first: TopicsReport,
    *,
    is_stopped: Callable[[], bool],
    but: str | None = None,
    whole: Collection[str] = (),
) -> TopicsReport | None:
    """Look again, from a thread that may sleep, until nothing is missing or time is up.

    Args:
        settings: which Kafka.
        specs: of the topics that are waited for.
        first: what the first look has found.
        is_stopped: asked at each look.
        but: what may differ.
        whole: topics of which that may not differ either.

    Returns:
        what the last look has found; `None` if it was stopped meanwhile.

    Raises:
        TopicsDifferError: topics are still missing, or differ.
        BrokerError: Kafka refuses, or has gone meanwhile.
    """
    waiting, report = MissingTopics(settings, but=but, whole=whole), first
    while waiting.may_come(report):
        if is_stopped():
            return None
        time.sleep(MISSING_LOOK_SECONDS)
        report = check_topics(settings, specs)
    report.raise_if_breaking(but=but, whole=whole)
    return report
