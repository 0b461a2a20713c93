"""People who write policies with guards, and answer the incidents that they read (docs/policies.md#incidents).

They write as the commands do: a record says what earlier revisions did, and has all answers that there were. What the
records go through is handed in: a simulated Kafka or a real one.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from typing import Final, Protocol

import msgspec

from evictstream.kit.oracle import KeyedRecord
from evictstream.models.instants import moment_at
from evictstream.models.messages.codec import encode
from evictstream.models.messages.incident import IncidentAnswer, IncidentVerdict
from evictstream.models.messages.policy import Policy, PolicySpec
from evictstream.models.steering.policies import NO_POLICIES
from tests.faults.objects import Json
from tests.faults.plan import SECOND_US, Plan, PolicyChange

MILLISECOND_US: Final = 1000
INCIDENTS: Final = "incidents"
MOST_ANSWERS: Final = 4  # to one incident; then people leave it


class Desk(Protocol):
    """Where people see the time, and write to the topic of policies."""

    @property
    def now_us(self) -> int:
        """Microseconds since 1970."""

    def at(self, at_us: int, write: Callable[[], None]) -> None:
        """Let somebody write at an instant, or as soon after it as the brokers take it and all before is read back."""

    def append(self, key: bytes, value: bytes) -> None:
        """Write a record; `People.hear` gets it once it stands there."""


class People:
    """Writes policies with guards, each record when those before have been read back."""

    def __init__(self, plan: Plan, desk: Desk) -> None:
        self._plan = plan
        self._desk = desk
        self._policies = NO_POLICIES
        self._given: dict[str, int] = {}  # answers, by incident
        self._minded: set[tuple[str, int]] = set()

    @property
    def answers(self) -> int:
        """How many answers they have given."""
        return sum(self._given.values())

    def plan_policies(self) -> None:
        """Plan what is written whatever happens."""
        for change in self._plan.policies:
            self._desk.at(change.at_us, lambda change=change: self._apply(change))  # type: ignore[misc]

    def hear(self, record: KeyedRecord) -> None:
        """Take in what they have written, as it was appended."""
        self._policies = self._policies.with_record(record.key, record.value, record.append_at_us // MILLISECOND_US)

    def look(self, published: bytes | None) -> None:
        """Read a record of the topic of incidents, and mind the incident if it waits."""
        incident = json.loads(published or b"{}")
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
        draw, at_us = chance.random(), self._desk.now_us + int(chance.uniform(0.2, 3.5) * SECOND_US)
        seconds = chance.choice([None, None, 1, 2, 4, 8])
        if draw < 0.2:
            return
        if draw < 0.65 or given:
            self._desk.at(at_us, lambda: self._answer(incident, IncidentVerdict.APPROVED, seconds))
            return
        self._desk.at(at_us, lambda: self._answer(incident, IncidentVerdict.REJECTED, None))
        if chance.random() < 0.5:
            at_us += int(chance.uniform(0.5, 4) * SECOND_US)
            self._desk.at(at_us, lambda: self._answer(incident, IncidentVerdict.APPROVED, seconds))

    def _apply(self, change: PolicyChange) -> None:
        standing = self._policies.standing.get(change.name)
        spec = None if change.spec is None else msgspec.convert(change.spec, PolicySpec)
        answers = () if spec is None or standing is None else standing.kept_answers()
        self._append(change.name, spec, change.spread_seconds, answers)

    def _answer(self, incident: Json, verdict: IncidentVerdict, seconds: int | None) -> None:
        name, standing = incident["id"], self._policies.standing.get(incident["policy"])
        if standing is None or standing.policy.spec is None:
            return  # as the command: there is no such policy any more
        now_us = self._desk.now_us
        expires_us = None if seconds is None else (now_us // MILLISECOND_US + seconds * 1000) * MILLISECOND_US
        answer = IncidentAnswer(
            incident=name,
            verdict=verdict,
            why="w",
            by="ben",
            answered_at=moment_at(now_us),
            expires_at=None if expires_us is None else moment_at(expires_us),
        )
        others = [one for one in standing.kept_answers() if one.incident != name]
        policy = standing.policy
        self._append(policy.name, policy.spec, policy.spread_seconds, (answer, *others))
        self._given[name] = self._given.get(name, 0) + 1

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
            applied_at=moment_at(self._desk.now_us),
            spec=spec,
            spread_seconds=spread_seconds,
            earlier=() if standing is None else standing.replaced_by(spec, self._desk.now_us),
            answers=tuple(answers),
        )
        self._desk.append(name.encode(), encode(policy))
