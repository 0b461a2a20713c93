"""One simulated run: from a plan to what the oracle reads."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import logging
from collections import Counter
from collections.abc import Iterator, Sequence

import structlog

from evictstream.kit.oracle import Violation, judge
from evictstream.kit.oracle.reading import place
from evictstream.kit.oracle.records import (
    InputRecord,
    InputTopic,
    KeyedRecord,
    MessageRecord,
    OutputTopic,
)
from evictstream.streams.engine.core.engine_rows import POSITIONS_KEY, decode_positions
from evictstream.streams.partition.eviction_partition import EvictionPartition
from tests.faults.actor import ClusterActor
from tests.faults.braking import as_policy, held_by
from tests.faults.node_rows import check_nodes
from tests.faults.people import INCIDENTS, People
from tests.faults.plan import Change, FaultKind, Plan
from tests.faults.simulated.broker import Broker
from tests.faults.simulated.configs import CHANGELOG, INPUTS, OUTPUTS, engine_config, gate_limits, partition_config
from tests.faults.simulated.desk import SimulatedDesk
from tests.faults.simulated.group import Group
from tests.faults.simulated.log import Entry
from tests.faults.simulated.published import check_end, check_levels
from tests.faults.simulated.state import check_rows
from tests.faults.simulated.trouble import Trouble
from tests.faults.simulated.worker import Worker
from tests.faults.simulated.world import SECOND_US, World

MILLISECOND_US = 1000
SMALLEST_EARLY_US = 2_000  # append times are cut to milliseconds
READER_DELAY_US = 4_000


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a run.

    Attributes:
        seen: how often each fault struck, and how often something happened that the run is about.
    """

    seed: int
    violations: tuple[Violation, ...]
    seen: Counter[str]


class Simulation:
    """A plan being carried out."""

    def __init__(self, plan: Plan, workers: int | None = None, *, has_kip_890: bool = False) -> None:
        """Prepare a run; without `workers` chance says how many there are."""
        self.plan = plan
        self.world = World(plan.seed, plan.start_at_us)
        self.broker = Broker(self.world, plan.shape.partitions, has_kip_890=has_kip_890)
        self.broker.on_append = self._appended
        self.config = engine_config(plan)
        self.group = Group(self.world, plan.shape.partitions, int(self.config.session_timeout_seconds * SECOND_US))
        self.held: list[KeyedRecord] = []  # by brakes and policies
        self.brakes: list[KeyedRecord] = []
        self.policies: list[KeyedRecord] = []
        self.guarding: list[KeyedRecord] = []  # those that people write
        self.seen: Counter[str] = Counter()
        self._desk = SimulatedDesk(self.world, self.broker, self._written)
        self.people = People(plan, self._desk)
        self._service = partition_config(plan, self.world)
        self._actor = ClusterActor(plan)
        self._read: dict[int, int] = {}
        self._names = itertools.count()
        self.wanted_workers = workers or self.world.chance.choice([1, 2, 2])

    def run(self) -> Outcome:
        """Carry the plan out and judge what was written."""
        with _without_logs():
            for _ in range(self.wanted_workers):
                self.start_worker()
            for change in self.plan.changes:
                self.world.at(change.at_us, lambda change=change: self._append(change))  # type: ignore[misc]
            for brake in self.plan.brakes:
                self.world.at(brake.append_at_us, lambda brake=brake: self._brake(brake))  # type: ignore[misc]
            self.people.plan_policies()
            Trouble(self).plan_faults()
            self._compact_later()
            self.world.run_until(self.plan.end_at_us)
            violations = [*self._judge(), *self._unsettled(), *self._misremembered(), *self._misheard()]
            violations += self._mispublished()
            for worker in self.world.workers:
                worker.is_dead = True
                worker.loop.bury()
        self.seen["evictions"] += sum(json.loads(e.value or b"")["action"] == "Evict" for e in self.entries("commands"))
        self.seen.update(self._seen_of_guards())
        if self.broker.left_out:
            self.seen["markers left out"] += self.broker.left_out
        return Outcome(self.plan.seed, tuple(violations), self.seen)

    def start_worker(self) -> Worker:
        """Start one more worker."""
        worker = Worker(
            f"w{next(self._names)}",
            world=self.world,
            broker=self.broker,
            group=self.group,
            config=self.config,
            service=self._service,
            limits=gate_limits(self.plan),
            brakes=self.brakes,
            policies=self.policies,
            on_end=self._ended,
        )
        self.world.workers.append(worker)
        return worker

    def _ended(self, worker: Worker) -> None:
        """Supervise: start another worker in the place of one that ended."""
        worker.loop.bury()
        self.world.workers.remove(worker)
        if worker.crashed is not None:
            self.seen[f"crashed: {type(worker.crashed).__name__}"] += 1
        if len(self.world.workers) < self.wanted_workers:
            self.world.after(self.world.chance.uniform(0.3, 1.5), self._start_again)

    def _start_again(self) -> None:
        self.start_worker()

    def _append(self, change: Change) -> None:
        """Let a feed or an executor send a record, as soon as the brokers take it."""
        if self.broker.down_until_us > self.world.now_us:
            self.world.at(self.broker.down_until_us, lambda: self._append(change))
        elif self._actor.admit(change):
            partition = change.partition
            if partition is None:
                partition = place(change.key, self.plan.shape.partitions)
            self.broker.append(change.topic, partition, change.key, change.value)

    def _brake(self, record: KeyedRecord) -> None:
        """Let somebody write a record of a brake or a policy, as soon as the brokers take it."""
        now_us = self.world.now_us
        if self.broker.down_until_us > now_us:
            self.world.at(self.broker.down_until_us, lambda: self._brake(record))
        else:
            record = dataclasses.replace(record, append_at_us=now_us // MILLISECOND_US * MILLISECOND_US)
            self.held.append(record)
            policy = as_policy(record)
            if policy is None:
                self.brakes.append(record)
            else:
                self.policies.append(policy)
            self.seen["records of brakes" if policy is None else "records of policies"] += 1

    def _written(self, policy: KeyedRecord) -> None:
        """Take in what people have written."""
        self.policies.append(policy)
        self.guarding.append(policy)
        self.people.hear(policy)

    def _look(self, partition: int) -> None:
        """Let people read what has been published of incidents."""
        for entry in self._desk.new_incidents(partition):
            self.people.look(entry.value)

    def _seen_of_guards(self) -> dict[str, int]:
        entries = self.entries(INCIDENTS)
        counts = {
            "policies with guards": len(self.guarding),
            "incidents": len({entry.key for entry in entries}),
            "incidents that ended": sum(entry.value is None for entry in entries),
            "answers to incidents": self.people.answers,
        }
        return {what: count for what, count in counts.items() if count}

    def _appended(self, where: tuple[str, int]) -> None:
        """Wake readers: workers for inputs, the executor for commands."""
        topic, partition = where
        if topic in INPUTS:
            for worker in self.world.workers:
                if worker.is_running:
                    worker.fetching.wake()
        elif topic == INCIDENTS:
            self.world.at(self.world.now_us + READER_DELAY_US, lambda: self._look(partition))
        elif topic == "commands":
            self.world.at(self.world.now_us + READER_DELAY_US, lambda: self._execute(partition))

    def _execute(self, partition: int) -> None:
        fetched = self.broker.log("commands", partition).read(self._read.get(partition, 0), 1000, "read_committed")
        self._read[partition] = fetched.position
        for entry in fetched.records:
            command = json.loads(entry.value or b"")
            brake = held_by(self.brakes, command, self.world.now_us) if self.brakes else None
            if brake is not None:
                self.seen["held by the executor"] += command["action"] == "Evict"
            for change in self._actor.on_command(command, self.world.now_us, brake):
                self.world.at(change.at_us, lambda change=change: self._append(change))  # type: ignore[misc]

    def _compact_later(self) -> None:
        """Let the cleaner run now and then."""
        if self.world.chance.random() < 0.3:
            return

        def compact() -> None:
            for partition in range(self.plan.shape.partitions):
                self.broker.log(CHANGELOG, partition).compact()
            self.world.after(self.world.chance.uniform(1, 8), compact)

        self.world.after(3, compact)

    def _judge(self) -> list[Violation]:
        early_us = SMALLEST_EARLY_US
        if any(fault.kind is FaultKind.CLOCK_STEP for fault in self.plan.faults):
            early_us += int(self.plan.numbers.clock_skew_limit_seconds * SECOND_US)
        return judge(
            self.inputs(),
            [_message(topic, entry) for topic in OUTPUTS for entry in self.entries(topic)],
            ended_at_us=self.plan.end_at_us,
            partitions=self.plan.shape.partitions,
            limits=self.plan.numbers.limits(),
            early_us=early_us,
            may_forget=self.broker.fenced_again,
            brakes=self.held,
            policies=self.guarding,
            incidents=[_of_incident(entry) for entry in self.entries(INCIDENTS)],
        )

    def inputs(self) -> list[InputRecord]:
        """Everything that was appended to the inputs."""
        return [_input(topic, entry) for topic in INPUTS for entry in self.entries(topic)]

    def entries(self, topic: str) -> list[Entry]:
        """Everything in a topic that a `read_committed` reader finds."""
        return self.broker.entries(topic)

    def _rows(self, partition: int) -> Sequence[Entry]:
        return self._committed(CHANGELOG, partition)

    def _committed(self, topic: str, partition: int) -> Sequence[Entry]:
        return self.broker.log(topic, partition).read(0, 1 << 30, "read_committed").records

    def _positions(self, partition: int) -> dict[str, int]:
        latest = [row.value for row in self._rows(partition) if row.key == POSITIONS_KEY and row.value is not None]
        return decode_positions(latest[-1]) if latest else {}

    def _unsettled(self) -> list[Violation]:
        """After a quiet end all input is applied and committed."""
        found = []
        for partition in range(self.plan.shape.partitions):
            positions = self._positions(partition)
            for topic in INPUTS:
                log = self.broker.log(topic, partition)
                settled_us = self.plan.end_at_us - int(self.plan.numbers.slack_seconds * SECOND_US)
                due = [entry for entry in log.entries if entry.timestamp * MILLISECOND_US < settled_us]
                if due and positions.get(topic, 0) <= due[-1].offset:
                    text = f"{topic} at {positions.get(topic)}, record {due[-1].offset} is not taken in"
                    found.append(Violation("not settled", text, node=f"partition {partition}"))
        return found

    def _misheard(self) -> Iterator[Violation]:
        """The rows say of nodes what the input said."""
        partitions = range(self.plan.shape.partitions)
        table = {row.key or b"": row.value for partition in partitions for row in self._rows(partition)}
        yield from check_nodes(
            {key: value for key, value in table.items() if value is not None},
            self.inputs(),
            positions={partition: self._positions(partition) for partition in partitions},
            limits=self.plan.numbers.limits(),
            partitions=self.plan.shape.partitions,
        )

    def _misremembered(self) -> Iterator[Violation]:
        """The state in memory at the end is the state in the rows."""
        for worker in self.world.workers:
            for writer in worker.partitions.live() if worker.is_running and worker.numbers else ():
                if writer.committer.is_settled and isinstance(writer.logic, EvictionPartition):
                    loaded = EvictionPartition(writer.partition, self._service)
                    yield from check_rows(writer.logic, loaded, self._rows(writer.partition))
                    number, now_us = writer.partition, self.world.now_us + worker.clock_off_us
                    told = {topic: self._committed(topic, number) for topic in ("fleet", "clusters", "workloads")}
                    yield from check_end(writer.logic, loaded, told, now_us)

    def _mispublished(self) -> Iterator[Violation]:
        """What is published is possible at each moment."""
        for partition in range(self.plan.shape.partitions):
            yield from check_levels(self._committed("fleet", partition))


@contextlib.contextmanager
def _without_logs() -> Iterator[None]:
    """Log nothing during one run: thousands of runs would write too much."""
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    try:
        yield
    finally:
        structlog.configure(**before)


def _input(topic: InputTopic, entry: Entry) -> InputRecord:
    at_us = entry.timestamp * MILLISECOND_US
    return InputRecord(
        topic=topic,
        partition=entry.partition,
        offset=entry.offset,
        append_at_us=at_us,
        key=entry.key or b"",
        value=entry.value,
    )


def _message(topic: OutputTopic, entry: Entry) -> MessageRecord:
    at_us = entry.timestamp * MILLISECOND_US
    return MessageRecord(
        topic=topic,
        partition=entry.partition,
        offset=entry.offset,
        append_at_us=at_us,
        key=entry.key or b"",
        headers=dict(entry.headers),
        value=entry.value or b"",
    )


def _of_incident(entry: Entry) -> KeyedRecord:
    return KeyedRecord(append_at_us=entry.timestamp * MILLISECOND_US, key=entry.key or b"", value=entry.value)


def simulate(plan: Plan) -> Outcome:
    """Carry a plan out, with brokers that have KIP-890 for every other seed."""
    return Simulation(plan, has_kip_890=plan.seed % 2 == 1).run()
