"""A worker that finds the first batch fetched after SIGUSR1 damaged: `python -m tests.harness.damaged_worker`."""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING

from evictstream.streams.cli.main import run
from evictstream.streams.engine.kafka.fetched_batches import FetchedBatches

if TYPE_CHECKING:
    from aiokafka.record.default_records import DefaultRecordBatch

damages: list[int] = []
compared = FetchedBatches.is_intact


def is_intact(batches: FetchedBatches, batch: DefaultRecordBatch) -> bool:
    return compared(batches, batch) and not (damages and damages.pop())


if __name__ == "__main__":
    signal.signal(signal.SIGUSR1, lambda number, _: damages.append(number))
    FetchedBatches.is_intact = is_intact  # type: ignore[method-assign, assignment]
    sys.exit(run(["worker"]))
