"""People who write policies with guards, and answer the incidents that they read (docs/policies.md#incidents).

They write as the commands do: a record says what earlier revisions did, and has all answers that there were.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from evictstream.kit.oracle import KeyedRecord
from evictstream.models.instants import moment_at
from evictstream.models.messages.codec import encode
from evictstream.models.messages.incident import IncidentAnswer, IncidentVerdict
from evictstream.models.messages.policy import Policy, PolicySpec
from evictstream.models.steering.policies import NO_POLICIES
from tests.faults.objects import Json
from tests.faults.plan import Plan, PolicyChange
from tests.faults.simulated.broker import Broker
from tests.faults.simulated.log import MILLISECOND_US, Entry
from tests.faults.simulated.world import SECOND_US, World

INCIDENTS: Final = "incidents"
MOST_ANSWERS: Final = 4  # to one incident; then nobody minds it any more


class People:
    """Writes policies with guards, each record as soon as the brokers take it.

    Attributes:
        written: what was appended to the topic.
    """

    def __init__(self, plan: Plan, world: World, broker: Broker, publish: Callable[[KeyedRecord], None]) -> None:
        self.written: list[KeyedRecord] = []
        self._plan = plan
        self._world = world
        self._broker = broker
        self._publish = publish
        self._policies = NO_POLICIES
        self._read: dict[int, int] = {}
        self._given: dict[str, int] = {}  # answers, by incident
        self._minded: set[tuple[str, int]] = set()

    def plan_policies(self) -> None:
        """Plan what is written whatever happens."""
        for change in self._plan.policies:
            self._at(change.at_us, lambda change=change: self._apply(change))  # type: ignore[misc]

    def look(self, partition: int) -> None:
        """Read what has been published, and mind the incidents that wait."""
        fetched = self._broker.log(INCIDENTS, partition).read(self._read.get(partition, 0), 1000, "read_committed")
        self._read[partition] = fetched.position
        for entry in fetched.records:
            incident = json.loads(entry.value or b"{}")
            if incident.get("state") == "Waiting":
                self._mind(incident)

    def _mind(self, incident: Json) -> None:
        """Decide what to say of an incident that waits, once each time that it does."""
        name = incident["id"]
        given = self._given.get(name, 0)
        if given >= MOST_ANSWERS or (name, given) in self._minded:
            return
        self._minded.add((name, given))
        chance = random.Random(f"answers {self._plan.seed} {name} {given}")
        draw, at_us = chance.random(), self._world.now_us + int(chance.uniform(0.2, 3.5) * SECOND_US)
        seconds = chance.choice([None, None, 1, 2, 4, 8])
        if draw < 0.2:
            return
        if draw < 0.65 or given:
            self._at(at_us, lambda: self._answer(incident, IncidentVerdict.APPROVED, seconds))
            return
        self._at(at_us, lambda: self._answer(incident, IncidentVerdict.REJECTED, None))
        if chance.random() < 0.5:
            at_us += int(chance.uniform(0.5, 4) * SECOND_US)
            self._at(at_us, lambda: self._answer(incident, IncidentVerdict.APPROVED, seconds))

    def _at(self, at_us: int, write: Callable[[], None]) -> None:
        """Write something at an instant, or as soon after it as the brokers take it."""

        def soon() -> None:
            if self._broker.down_until_us > self._world.now_us:
                self._world.at(self._broker.down_until_us, soon)
            else:
                write()

        self._world.at(at_us, soon)

    def _apply(self, change: PolicyChange) -> None:
        standing = self._policies.standing.get(change.name)
        spec = None if change.spec is None else msgspec.convert(change.spec, PolicySpec)
        answers = () if spec is None or standing is None else standing.kept_answers()
        self._append(change.name, spec, change.spread_seconds, answers)

    def _answer(self, incident: Json, verdict: IncidentVerdict, seconds: int | None) -> None:
        name, standing = incident["id"], self._policies.standing.get(incident["policy"])
        if standing is None or standing.policy.spec is None:
            return  # as the command: there is no such policy any more
        self._given[name] = self._given.get(name, 0) + 1
        expires_us = None if seconds is None else self._append_us() + seconds * SECOND_US
        answer = IncidentAnswer(
            incident=name,
            verdict=verdict,
            why="w",
            by="ben",
            answered_at=moment_at(self._world.now_us),
            expires_at=None if expires_us is None else moment_at(expires_us),
        )
        others = [one for one in standing.kept_answers() if one.incident != name]
        policy = standing.policy
        self._append(policy.name, policy.spec, policy.spread_seconds, (answer, *others))

    def _append_us(self) -> int:
        return self._world.now_us // MILLISECOND_US * MILLISECOND_US

    def _append(
        self, name: str, spec: PolicySpec | None, spread_seconds: int, answers: Sequence[IncidentAnswer]
    ) -> None:
        standing = self._policies.standing.get(name)
        policy = Policy(
            api_version="evictstream.io/v1",
            kind="Policy",
            name=name,
            revision=1 if standing is None else standing.policy.revision + 1,
            why="w",
            by="anna",
            applied_at=moment_at(self._world.now_us),
            spec=spec,
            spread_seconds=spread_seconds,
            earlier=() if standing is None else standing.replaced_by(spec, self._world.now_us),
            answers=tuple(answers),
        )
        record = KeyedRecord(append_at_us=self._append_us(), key=name.encode(), value=encode(policy))
        self._policies = self._policies.with_record(record.key, record.value, record.append_at_us // MILLISECOND_US)
        self.written.append(record)
        self._publish(record)

    def seen(self, incidents: list[Entry]) -> dict[str, int]:
        """Give what has happened, and how often."""
        counts = {
            "policies with guards": len(self.written),
            "incidents": len({entry.key for entry in incidents}),
            "incidents that ended": sum(entry.value is None for entry in incidents),
            "answers to incidents": sum(self._given.values()),
        }
        return {what: count for what, count in counts.items() if count}
