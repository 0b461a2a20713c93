"""Feeds that send heartbeats that count: when they were silent, nothing of their cluster may be issued.

The rule is the gate `feed` of docs/guarantees.md#when-firing-waits.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from evictstream.kit.oracle.commands import SeenCommand
from evictstream.kit.oracle.limits import OracleLimits
from evictstream.kit.oracle.reading import Statement
from evictstream.kit.oracle.records import Violation, shown


class FeedSilence:
    """Heartbeats by cluster."""

    def __init__(self, said: Iterable[Statement], limits: OracleLimits) -> None:
        self._beats: dict[str, dict[str, list[int]]] = defaultdict(lambda: {"nodes": [], "pods": []})
        self._silence_us = limits.feed_silence_us
        self._lag_us = limits.lag_us
        for statement in said:
            if statement.kind == "HEARTBEAT":
                self._beats[statement.cluster][statement.record.topic].append(statement.record.append_at_us)

    def is_silent(self, cluster: str, at_us: int) -> bool:
        """Whether the feed was silent at an instant, for whoever had read all that had been appended by then."""
        beats = self._beats.get(cluster)
        if beats is None:
            return False
        newest = [max((beat for beat in times_us if beat <= at_us), default=0) for times_us in beats.values()]
        return any(newest) and min(newest) < at_us - self._silence_us

    def check(self, commands: Iterable[SeenCommand]) -> Iterator[Violation]:
        """Find evictions that were issued while their feed was silent.

        They are judged by the newest heartbeats in the log, whether or not they had been read. Before the first
        heartbeat can be known to have been read, the feed counts as one that sends none.
        """
        for command in commands:
            issued_us, beats = command.issued_at_us, self._beats.get(command.cluster)
            if command.action != "Evict" or beats is None or issued_us == command.window_us:
                continue
            first_us = min((times_us[0] for times_us in beats.values() if times_us), default=issued_us)
            newest_us = [
                max((beat for beat in times_us if beat <= command.at_us), default=0) for times_us in beats.values()
            ]
            if first_us < issued_us - self._lag_us and min(newest_us) < issued_us - self._silence_us:
                text = f"{command}: newest heartbeats at {' and '.join(map(shown, newest_us))}"
                yield Violation(
                    "feed silent", text, cluster=command.cluster, node=command.node, pod_uid=command.pod_uid
                )
