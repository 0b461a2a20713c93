"""What an engine of one test is told: topics of its own, declared."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from evictstream.streams.broker.admin import declare_topics
from evictstream.streams.broker.embedded import EmbeddedBroker
from evictstream.streams.engine.core.config import EngineConfig
from evictstream.streams.settings import Settings
from evictstream.streams.worker.service_config import engine_config


@pytest.fixture(scope="module")
def three_nodes() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(nodes=3) as broker:
        yield broker


@pytest.fixture
def config(settings: Settings) -> EngineConfig:
    declare_topics(settings).raise_if_breaking()
    return engine_config(settings)
