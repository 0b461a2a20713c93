"""Every sentence of every story agrees with the records that it was told from, over random lives."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

import pytest

from evictstream.kit.oracle.reading import place
from evictstream.kit.oracle.records import InputRecord, InputTopic
from evictstream.kit.recordings.record import RecordedRecord
from evictstream.kit.replay.replay import Replay
from evictstream.kit.replay.story import SourcedDecision, Teller
from evictstream.kit.replay.virtual_partition import ReplayedMessage
from evictstream.models.messages.decision import decode_decision
from evictstream.streams.settings import Settings
from tests.faults.generate import generate
from tests.faults.objects import OUTCOMES, result
from tests.faults.plan import SIMULATED_KINDS, Change, FaultKind, Plan, Shape
from tests.faults.replayed.checks import inputs_of
from tests.faults.simulated.run import Simulation
from tests.kit.replay.story_inputs import Inputs
from tests.kit.replay.story_sentences import SENTENCES
from tests.kit.replay.story_truth import Truth

PLAYED = 3
SIMULATED: Final = (*range(4), 7)
REPLAYED: Final = (*range(14), 72, 102)
"""In the last two lives something is decided late, and issued at once."""
KINDS: Final = tuple(kind for kind in SIMULATED_KINDS if kind is not FaultKind.CLOCK_STEP)
"""A clock that steps names instants that no record has."""
LAG_US: Final = 20_000_000
"""Behind the log no worker of these runs is further."""


def settings_of(plan: Plan) -> Settings:
    return Settings.model_validate({**plan.numbers.settings(), "partitions": plan.shape.partitions})


class Topics:
    """Records that get their offsets as they come."""

    def __init__(self, partitions: int) -> None:
        self._partitions = partitions
        self._offsets = Counter[tuple[str, int]]()

    def record(
        self, topic: InputTopic, at_us: int, key: bytes, value: bytes | None, partition: int | None
    ) -> RecordedRecord:
        number = place(key, self._partitions) if partition is None else partition
        self._offsets[topic, number] += 1
        return RecordedRecord(
            topic=topic,
            partition=number,
            offset=self._offsets[topic, number],
            timestamp=-(-at_us // 1_000),
            key=key,
            value=value,
        )


def replayed(
    plan: Plan, records: Iterable[RecordedRecord], *, plays: bool = False
) -> tuple[list[SourcedDecision], list[ReplayedMessage]]:
    """What a replay decides, and the commands."""
    run = Replay(settings_of(plan), partitions=plan.shape.partitions, plays_executor=plays)
    messages = sorted([*run.run(records), *run.run_on(plan.shape.quiet_seconds)])
    told = [
        SourcedDecision(decode_decision(one.value), one.at_us, Teller.PLAYED if one.is_played else Teller.REPLAY)
        for one in messages
        if one.topic == "decisions"
    ]
    return told, [one for one in messages if one.topic == "commands"]


def answers(chance: random.Random, commands: Sequence[ReplayedMessage]) -> list[Change]:
    """Answers of an executor to some of the commands."""
    found = []
    for message in commands:
        command = json.loads(message.value)
        while command["action"] == "Evict" and chance.random() < 0.6:
            at_us = message.at_us + chance.randrange(3_000) * 1_000
            outcome = chance.choice(OUTCOMES)
            reason = chance.choice(["", "the node has no such taint", "500 from a webhook"])
            found.append(Change(at_us, "results", message.key, result(command, outcome, at_us, reason=reason)))
    return found


def lives(seed: int) -> tuple[Plan, list[RecordedRecord]]:
    """A plan, and its records with answers to what a replay issues."""
    plan = generate(seed)
    _, commands = replayed(plan, recorded(plan, plan.changes))
    changes = [*plan.changes, *answers(random.Random(seed), commands)]  # noqa: S311
    return plan, recorded(plan, sorted(changes, key=lambda change: change.at_us))


def recorded(plan: Plan, changes: Iterable[Change]) -> list[RecordedRecord]:
    topics = Topics(plan.shape.partitions)
    return [topics.record(one.topic, one.at_us, one.key, one.value, one.partition) for one in changes]


def truth_of(plan: Plan, records: Iterable[InputRecord], *, lag_us: int = 0, knows_states: bool = True) -> Truth:
    inputs = Inputs([*records], plan.numbers.limits(), plan.shape.partitions, lag_us=lag_us)
    return Truth(inputs, knows_states=knows_states)


@pytest.mark.slow
def test_every_sentence_of_a_replay_agrees_with_its_records() -> None:
    checked = Counter[str]()
    for seed in REPLAYED:
        plan, records = lives(seed)
        truth = truth_of(plan, inputs_of(records))
        truth.check(replayed(plan, records)[0])
        checked.update(truth.checked)
    # Of what is decided and issued in one transaction, and of brakes, which a replay does not know.
    assert set(SENTENCES) - set(checked) == {"at once, because", "held", "held on"}


def test_what_is_played_rests_on_no_record() -> None:
    tellers = Counter[Teller]()
    for seed in range(PLAYED):
        plan, records = lives(seed)
        told, _ = replayed(plan, records, plays=True)
        truth_of(plan, inputs_of(records), knows_states=False).check(told)
        tellers.update(one.teller for one in told)
    assert set(tellers) == {Teller.REPLAY, Teller.PLAYED}


@pytest.mark.slow
def test_every_sentence_of_a_service_agrees_with_its_records() -> None:
    """Its workers are killed, cut off and frozen, so they decide late: on what they have read, not on all there is."""
    checked = Counter[str]()
    for seed in SIMULATED:
        plan = generate(seed, Shape(kinds=KINDS))
        simulation = Simulation(plan)
        simulation.run()
        told = [
            SourcedDecision(decode_decision(one.value or b""), one.timestamp * 1_000, Teller.RECORDED)
            for one in simulation.entries("decisions")
        ]
        truth = truth_of(plan, simulation.inputs(), lag_us=LAG_US)
        truth.check(told)
        checked.update(truth.checked)
    assert {"at once, because", "issued", "came", "reports", "held", "held on"} <= set(checked)
