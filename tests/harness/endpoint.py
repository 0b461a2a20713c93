"""Asking a worker for its health and metrics, as a supervisor and a scraper do."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any, NamedTuple

from prometheus_client.parser import text_string_to_metric_families

from tests.harness.workers import WorkerProcess

POLL_SECONDS = 0.05
TIMEOUT_SECONDS = 5.0


class Answer(NamedTuple):
    """Status and JSON body."""

    status: int
    body: dict[str, Any]


class Probe:
    """The endpoint of one worker, wherever its log says that it is."""

    def __init__(self, worker: WorkerProcess) -> None:
        self._worker = worker
        worker.wait_for(lambda: worker.events("health endpoint started"), "endpoint")
        (told,) = worker.events("health endpoint started")
        self._base = f"http://{told['host']}:{told['port']}"

    def ask(self, path: str) -> Answer:
        """Ask once."""
        try:
            with urllib.request.urlopen(self._base + path, timeout=TIMEOUT_SECONDS) as answer:  # noqa: S310 - our own
                return Answer(answer.status, json.load(answer))
        except urllib.error.HTTPError as error:
            with error:
                return Answer(error.code, json.load(error))

    def wait_for(self, path: str, condition: Callable[[Answer], bool], seconds: float) -> Answer:
        """Ask until an answer is as wanted."""
        until = time.monotonic() + seconds
        while not condition(answer := self.ask(path)):
            assert time.monotonic() < until, f"{path} says {answer}"
            time.sleep(POLL_SECONDS)
        return answer

    def metrics(self) -> dict[tuple[str, ...], float]:
        """Scrape once: values by name and label values in the order of the labels' names."""
        with urllib.request.urlopen(f"{self._base}/metrics", timeout=TIMEOUT_SECONDS) as answer:  # noqa: S310 - as above
            text = answer.read().decode()
        return {
            (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }
