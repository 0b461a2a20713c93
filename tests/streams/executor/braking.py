"""Brakes that a test sets, as a `BrakesReader` has them."""

from __future__ import annotations

import time
from typing import Any

from evictstream.models.steering.brakes import NO_BRAKES, Brakes
from evictstream.streams.broker.kafka_time import KafkaTime
from evictstream.streams.executor.cluster_brakes import UNBRAKED, ClusterBrakes
from tests.models.steering.test_brakes import record

CLUSTER = "c1"


class SetBrakes:
    """All brakes, which the test sets and removes.

    Attributes:
        unknown: why they are not known; None while they are.
        kafka_time: what the test notes of it.
    """

    def __init__(self) -> None:
        self.brakes: Brakes = NO_BRAKES
        self.unknown: str | None = None
        self.kafka_time = KafkaTime()

    def objection(self) -> str | None:
        return self.unknown or self.brakes.objection()

    def set(self, brake_id: str = "b1", *, appended_us: int | None = None, **fields: Any) -> None:
        at_us = time.time_ns() // 1_000 if appended_us is None else appended_us
        self.brakes = self.brakes.with_record(brake_id.encode(), record(brake_id, **fields), at_us // 1_000)

    def remove(self, brake_id: str = "b1") -> None:
        self.brakes = self.brakes.with_record(brake_id.encode(), None, 0)

    def of_cluster(self) -> ClusterBrakes:
        return ClusterBrakes(self, CLUSTER)


def unbraked() -> ClusterBrakes:
    return ClusterBrakes(UNBRAKED, CLUSTER)
