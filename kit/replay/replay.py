"""A whole recording through the service's logic: every partition for itself, in bounded memory.

Two runs over the same records give the same messages, byte for byte, however many records are taken at once.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from evictstream.kit.recordings.record import INPUT_ROLES, STEERING_ROLES, RecordedRecord
from evictstream.kit.replay.pod_observer import PodObserver
from evictstream.kit.replay.recorded_steering import RecordedSteering
from evictstream.kit.replay.simulated_executor import SimulatedExecutor
from evictstream.kit.replay.standing_holds import StandingHold
from evictstream.kit.replay.virtual_partition import FoundIncident, ReplayedMessage, VirtualPartition
from evictstream.models.eviction.cluster import EpochBegun
from evictstream.streams.settings import Settings
from evictstream.streams.worker.service_config import partition_config

CHUNK_RECORDS: Final = 10_000
"""Records held at once, 30 MB of large ones."""


class Replay:
    """One run.

    Attributes:
        records: taken so far.
        first_us: time of the first record; None before it.
        last_us: latest time of a record so far, microseconds since 1970.
        epochs: that clusters have begun so far.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        partitions: int,
        plays_executor: bool,
        observer: PodObserver | None = None,
        steering: RecordedSteering | None = None,
    ) -> None:
        """Know nothing yet.

        Args:
            settings: whose rules and limits count; names of topics do not.
            partitions: of the topics that were recorded.
            plays_executor: each `Evict` succeeds and its pod goes; else results are those of the recording.
            observer: looks at the pods that it wants to, after each record about them.
            steering: brakes and policies at the beginning; None for those of the recording alone.
        """
        own = settings.model_copy(update={"topic_prefix": "", "partitions": partitions})
        config = partition_config(own, settings.max_record_bytes)
        self.epochs: list[EpochBegun] = []
        self._config = dataclasses.replace(config, on_epoch=self.epochs.append)
        self._steering = RecordedSteering() if steering is None else steering
        self._plays_executor = plays_executor
        self._observer = observer
        self._partitions: dict[int, VirtualPartition] = {}
        self.records = 0
        self.first_us: int | None = None
        self.last_us = 0

    @property
    def set_back(self) -> int:
        """Records whose time lay before that of an earlier one of their partition."""
        return sum(partition.set_back for partition in self._partitions.values())

    def run(self, records: Iterable[RecordedRecord], *, chunk: int = CHUNK_RECORDS) -> Iterator[ReplayedMessage]:
        """Take records, each partition's in the order in which they are to be applied; outputs are passed over.

        Messages come by partition within each chunk; sorted, they are the same for every `chunk`.
        """
        kept = (record for record in records if record.topic in INPUT_ROLES or self._steering.wants(record))
        while taken := list(itertools.islice(kept, chunk)):
            inputs = [record for record in taken if record.topic in INPUT_ROLES]
            if self.first_us is None and inputs:
                self.first_us = inputs[0].appended_us
            self.records += len(inputs)
            self.last_us = max((self.last_us, *(record.appended_us for record in inputs)))
            parts: dict[int, list[RecordedRecord]] = {
                number: [] for number in sorted({*self._partitions, *(record.partition for record in inputs)})
            }
            for record in taken:
                for number in parts if record.topic in STEERING_ROLES else (record.partition,):
                    parts[number].append(record)
            for number, part in parts.items():
                yield from self._partition(number).take(part)
            for record in taken:
                if record.topic in STEERING_ROLES:  # for partitions that begin later
                    self._steering.take(record)

    def run_on(self, seconds: float = 0.0) -> Iterator[ReplayedMessage]:
        """Let all partitions come to the time of the latest record, and so much further, with nothing new."""
        to_us = self.last_us + int(seconds * 1_000_000)
        for _, partition in sorted(self._partitions.items()):
            yield from partition.advance(to_us)

    def held_back(self) -> Counter[str]:
        """Count what is held now, by the ids of brakes and by `policy/NAME`."""
        counts: Counter[str] = Counter()
        for partition in self._partitions.values():
            for (holder, _), waiting in partition.held_back().items():
                counts[holder] += waiting.count
        return counts

    def holds(self) -> Iterator[StandingHold]:
        """Give the evictions that are held now."""
        return itertools.chain.from_iterable(partition.holds() for partition in self._partitions.values())

    @property
    def is_steered(self) -> bool:
        """Whether a brake or policy has stood."""
        return self._steering.is_any

    def objections(self) -> list[str]:
        """Say which recorded brakes and policies cannot be read: the service would evict nothing until they are."""
        return self._steering.objections()

    def incidents(self) -> list[FoundIncident]:
        """List the incidents that there were, the oldest first."""
        found = itertools.chain.from_iterable(partition.incidents() for partition in self._partitions.values())
        return sorted(found, key=lambda one: (one.incident.opened_us, one.incident.id))

    def addresses(self) -> Iterator[str]:
        """Give NAMESPACE/NAME of each pod that is known now."""
        return itertools.chain.from_iterable(partition.addresses() for partition in self._partitions.values())

    def _partition(self, number: int) -> VirtualPartition:
        if number not in self._partitions:
            executor = SimulatedExecutor(fails_one_in=0) if self._plays_executor else None
            self._partitions[number] = VirtualPartition(
                number, self._config, executor, self._observer, steering=self._steering.copy()
            )
        return self._partitions[number]
