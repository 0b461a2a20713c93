"""One executor of the cluster `c1` in the test's process, the commands that it gets, and what it answers."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from evictstream.models.messages.command import EvictionCommand
from evictstream.models.messages.result import RESULT_KIND
from evictstream.models.messages.vocabulary import Action
from evictstream.streams.executor.eviction import ExecutorMode
from evictstream.streams.executor.orders import ClusterOrder, ExecutionOptions
from evictstream.streams.kubernetes.access import ClusterAccess
from evictstream.streams.settings import Settings
from tests.harness.executing import executing
from tests.harness.reading import Seen, TopicReader
from tests.streams.executor.conftest import command_now

PATIENCE_SECONDS = 40.0


def command(action: Action = Action.EVICT, pod: str = "a", **changes: Any) -> EvictionCommand:
    """Return one that was issued now."""
    return command_now(pod, action, **changes)


def run(settings: Settings, access: ClusterAccess, mode: ExecutorMode = ExecutorMode.DELETE, **options: Any) -> Any:
    order = ClusterOrder(name="c1", access=access, mode=mode)
    return executing(
        settings, [order], ExecutionOptions(**({"group": f"{settings.application_id}-executor"} | options))
    )


def results_in(seen: list[Seen]) -> list[Seen]:
    """Leave out reports of what waits."""
    return [one for one in seen if one.value["kind"] == RESULT_KIND]


def said(seen: list[Seen]) -> list[tuple[str, int, str]]:
    return sorted((one.value["pod"], one.value["attempt"], one.value["outcome"]) for one in results_in(seen))


def wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)


def wait_for_results(results: TopicReader, count: int) -> list[tuple[str, int, str]]:
    return said(results.wait_for(lambda seen: len(results_in(seen)) >= count, f"{count} results", PATIENCE_SECONDS))
