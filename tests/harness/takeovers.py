"""Takes partitions over without a service, for tests of the engine."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable
from typing import Any

from evictstream.streams.engine.clock import SYSTEM_CLOCK
from evictstream.streams.engine.core.config import EngineConfig
from evictstream.streams.engine.core.logic import LogicFactory
from evictstream.streams.engine.core.takeover import Takeover, take_over
from evictstream.streams.engine.kafka.clients import KafkaClients
from evictstream.streams.errors import PartitionLostError
from tests.harness.offset_logic import OffsetLogic


async def take_over_once(
    config: EngineConfig, numbers: Iterable[int] = (0,), new_logic: LogicFactory[Any] = OffsetLogic
) -> list[Takeover[Any]]:
    """Take partitions over."""
    return await take_over(numbers, config=config, new_logic=new_logic, kafka=KafkaClients(config), clock=SYSTEM_CLOCK)


async def taken_over(
    config: EngineConfig, numbers: Iterable[int] = (0,), new_logic: LogicFactory[Any] = OffsetLogic
) -> list[Takeover[Any]]:
    """Take partitions over, as often as brokers that have just started want to be asked."""
    while True:
        with contextlib.suppress(PartitionLostError):
            return await take_over_once(config, numbers, new_logic)
        await asyncio.sleep(0.5)
