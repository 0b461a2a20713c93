"""Pauses of a worker's event loop, by the worker's own measure in its metrics."""

from __future__ import annotations

import collections
import urllib.request
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

from evictstream.streams.engine.core.waits import PAUSE_PROBE_SECONDS
from tests.harness.workers import WorkerProcess

NAME: Final = "evictstream_loop_pause_seconds_bucket"


class Pauses:
    """Counts pauses between two looks."""

    def __init__(self, worker: WorkerProcess) -> None:
        (served,) = worker.events("health endpoint started")
        self._url = f"http://{served['host']}:{served['port']}/metrics"
        self._before = self._buckets()

    def mark(self) -> None:
        """Reset the counts."""
        self._before = self._buckets()

    def longest_ms(self) -> float:
        """Give the upper bound of the longest pause since then, as fine as the buckets and the worker's looks are."""
        since = {bound: count - self._before[bound] for bound, count in self._buckets().items()}
        everything = max(since.values())
        return 1000 * (min(bound for bound, count in since.items() if count == everything) + PAUSE_PROBE_SECONDS)

    def _buckets(self) -> collections.Counter[float]:
        with urllib.request.urlopen(self._url) as answer:  # noqa: S310 - an address that our own worker has logged
            text = answer.read().decode()
        return collections.Counter(
            {
                float(sample.labels["le"]): int(sample.value)
                for family in text_string_to_metric_families(text)
                for sample in family.samples
                if sample.name == NAME
            }
        )
