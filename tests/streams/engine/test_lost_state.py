"""The guard against a lost changelog: no answer of the group's coordinator is not "nothing committed"."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import GroupCoordinatorNotAvailableError

from streams.engine import takeover
from streams.engine.config import EngineConfig
from streams.errors import StateMissingError

CONFIG = EngineConfig(
    application="app", bootstrap_servers="nowhere:1", security={}, inputs=("nodes",), changelog="log", partitions=1
)
FRESH: Any = [SimpleNamespace(partition=0)]


def ask(monkeypatch: pytest.MonkeyPatch, offsets: SimpleNamespace) -> None:
    async def nothing(_: object) -> None:
        pass

    async def send(_: object, request: object, node_id: int | None = None) -> SimpleNamespace:
        if type(request).__name__ == "FindCoordinatorRequest":
            return SimpleNamespace(error_code=0, coordinator_id=1)
        return offsets

    monkeypatch.setattr(AIOKafkaAdminClient, "start", nothing)
    monkeypatch.setattr(AIOKafkaAdminClient, "_send_request", send)

    async def run() -> None:
        await takeover._refuse_lost_state(FRESH, CONFIG)

    asyncio.run(run())


def test_committed_offsets_beside_an_empty_changelog_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(StateMissingError):
        ask(monkeypatch, SimpleNamespace(topics=[("nodes", [(0, 7, "", 0)])], error_code=0))


@pytest.mark.parametrize("code", [14, 16])
def test_a_coordinator_that_loads_or_has_moved_has_not_said_that_nothing_is_committed(
    code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """COORDINATOR_LOAD_IN_PROGRESS and NOT_COORDINATOR come as an error of the whole answer, without topics."""
    with pytest.raises(GroupCoordinatorNotAvailableError):  # the take-over is tried again
        ask(monkeypatch, SimpleNamespace(topics=[], error_code=code))
