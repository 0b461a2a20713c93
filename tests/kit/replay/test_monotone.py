"""Policies only ever slow down, however many there are: random incidents under random policies.

Each incident is replayed without policies, under one that stands all the time, and under another one with it that
stands too, or comes, changes and goes. In a further run nothing is ever issued, so it says what each pod owes at each
instant, whatever has been issued. Half of the runs play an executor: an evicted pod goes a second later, and what the
recording says of it afterwards did not happen. In the others nothing is answered, so each eviction is repeated.

What holds of each run, whatever its policies:

- What was issued under several policies is right by each of them alone, as a naive reading of its page says.
- At every instant, what has been issued has been issued by then without policies too. Where nothing is answered, these
  are attempts: the n-th one of an eviction goes no sooner. Where an executor is played, these are pods. Without
  policies a pod goes with its first deadline; while a policy keeps it, that taint may go and another one come, with
  another deadline, which no run without policies can have.
- No deadline moves: each `Evict` has the deadline that its pod owes at that instant, and each pod gets all `Schedule`
  until it goes that it gets where nothing is ever issued. Where nothing is answered, all runs have the same ones.

What goes under P and Q is not compared with what goes under P: what Q holds leaves its turn under a limit of P to
another pod, which goes sooner.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from evictstream.kit.recordings.record import RecordedRecord
from evictstream.kit.replay.recorded_steering import RecordedSteering
from evictstream.kit.replay.replay import Replay
from evictstream.models.instants import instant_us
from evictstream.models.steering.policies import NO_POLICIES, Policies
from evictstream.streams.settings import Settings
from tests.harness.examples import examples
from tests.kit.replay.naive_policies import NaivePolicy, Said, Spec
from tests.kit.replay.steered_incidents import MILLISECOND_US, START_US, Incident, incidents
from tests.kit.replay.steering_policies import SPECS
from tests.models.steering.test_policies import policy_record, read_policies

SETTINGS: Final = Settings(partitions=1)
AFTER_SECONDS: Final = 60
"""As long as most windows, and holds."""
LONG_AFTER_SECONDS: Final = 700
"""Longer than deleted nodes count."""
NOTHING_GOES: Final = read_policies(policy_record("all", spec={"observe": True}), appended_us=0)
Place = tuple[str, int]  # a pod, and a deadline


class Run(NamedTuple):
    """What one run said.

    Attributes:
        said: decisions, in their order.
        scheduled: pod, deadline and when, of each `Schedule`.
    """

    said: list[Said]
    scheduled: list[tuple[Place, int]]

    def issued(self, *, by_pod: bool) -> dict[tuple[str, int], int]:
        """When each attempt of an eviction, or the first one of a pod, was issued."""
        found: dict[tuple[str, int], int] = {}
        attempts = Counter[str]()
        for one in self.said:
            if one.is_issue:
                whose = one.uid if by_pod else one.eviction
                attempts[whose] += 1
                if attempts[whose] == 1 or not by_pod:
                    found[whose, attempts[whose]] = one.at_us
        return found


def replayed(
    incident: Incident,
    policies: Policies,
    changes: Iterable[RecordedRecord] = (),
    *,
    plays_executor: bool,
    run_on_seconds: float = 0.0,
) -> Run:
    end_ms = incident.records[-1].timestamp + int(run_on_seconds * 1_000)
    in_time = (one for one in changes if one.timestamp <= end_ms)  # no run goes on for longer than the others
    records = sorted([*incident.records, *in_time], key=lambda one: one.timestamp)
    replay = Replay(SETTINGS, partitions=1, plays_executor=plays_executor, steering=RecordedSteering(policies))
    run = Run([], [])
    for message in sorted([*replay.run(records), *replay.run_on(run_on_seconds)]):
        if message.topic not in {"commands", "decisions"}:
            continue
        fields = json.loads(message.value)
        deadline_us = instant_us(fields["deadline"])
        if message.topic == "commands":
            if fields["action"] == "Schedule":
                run.scheduled.append(((fields["podUid"], deadline_us), message.at_us))
            continue
        run.said.append(
            Said(
                at_us=message.at_us,
                kind=fields["decision"],
                eviction=fields["evictionId"],
                uid=fields["podUid"],
                node=fields["node"],
                key=fields["taint"]["key"],
                deadline_us=deadline_us,
                owed_us=instant_us(fields["knownAt"]) if "knownAt" in fields else deadline_us,
            )
        )
    assert not replay.objections()
    return run


def revisions(specs: Sequence[tuple[int, Spec | None]]) -> list[RecordedRecord]:
    """The records of a policy `q` that comes, changes and goes: after how many seconds, and what it says then."""
    found: list[RecordedRecord] = []
    before: list[dict[str, Any]] = []
    at_ms = START_US // MILLISECOND_US
    for number, (seconds, spec) in enumerate(specs):
        at_ms += seconds * 1_000
        more: dict[str, Any] = {} if spec is None else {"spec": spec}
        value: bytes | None = policy_record("q", revision=number + 1, spreadSeconds=10, earlier=before, **more)
        if spec is None and number % 2:
            value = None  # the record itself is gone
        before = [] if spec is None else [{"spec": spec}]
        found.append(
            RecordedRecord(topic="policies", partition=0, offset=number, timestamp=at_ms, key=b"q", value=value)
        )
    return found


def owed(run: Run) -> Callable[[Said], int | None]:
    """Return what says which deadline an eviction had at an instant."""

    def at(issued: Said) -> int | None:
        said = [one for one in run.said if one.eviction == issued.eviction and one.at_us <= issued.at_us]
        return said[-1].deadline_us if said and said[-1].kind not in {"Cancelled", "Completed"} else None

    return at


def check(
    incident: Incident,
    p: Spec,
    q: Spec,
    q_comes: Sequence[tuple[int, Spec | None]],
    *,
    plays: bool,
    after: int = AFTER_SECONDS,
) -> None:
    play = partial(replayed, incident, plays_executor=plays, run_on_seconds=after)
    alone = read_policies(policy_record("p", spec=p), appended_us=0)
    both = read_policies(policy_record("q", spec=q), appended_us=0, before=alone)
    free, still = play(NO_POLICIES), replayed(incident, NOTHING_GOES, plays_executor=plays)
    owes, plain = owed(still), free.issued(by_pod=plays)
    runs = [
        (play(alone), [p]),
        (play(both), [p, q]),
        (play(alone, revisions(q_comes)), [p]),
        (free, []),
    ]
    event(f"issued without: {min(3, len(plain))}, under both: {min(3, len(runs[1][0].issued(by_pod=plays)))}")
    for run, specs in runs:
        for spec in specs:
            assert list(NaivePolicy(spec, incident, plays_executor=plays).objections(run.said)) == []
        issued = run.issued(by_pod=plays)
        for whose, at_us in issued.items():
            assert plain.get(whose, at_us + 1) <= at_us, "it goes sooner than without policies"
        for one in run.said:
            if one.is_issue:
                assert one.deadline_us == owes(one), "its deadline is another one than it owes"
                assert one.at_us >= one.owed_us
        left = {uid: at_us for (uid, _), at_us in issued.items()} if plays else {}
        owed_here = [place for place, at_us in still.scheduled if at_us <= left.get(place[0], at_us)]
        assert Counter(place for place, _ in run.scheduled) == Counter(owed_here), "a Schedule is missing"


CHANGES = st.lists(st.tuples(st.integers(1, 60), st.none() | SPECS), max_size=3)


@pytest.mark.slow
@given(incident=incidents(), p=SPECS, q=SPECS, q_comes=CHANGES, plays=st.booleans())
@settings(max_examples=examples(6))
def test_policies_only_hold_back(
    incident: Incident,
    p: Spec,
    q: Spec,
    q_comes: Any,
    plays: bool,  # noqa: FBT001
) -> None:
    check(incident, p, q, q_comes, plays=plays)


@pytest.mark.kit
@given(
    incident=incidents(changes=30),
    p=SPECS,
    q=SPECS,
    q_comes=CHANGES,
    plays=st.booleans(),
    after=st.sampled_from([AFTER_SECONDS] * 9 + [LONG_AFTER_SECONDS]),
)
@settings(max_examples=examples(300))
def test_many_policies_only_hold_back(
    incident: Incident,
    p: Spec,
    q: Spec,
    q_comes: Any,
    plays: bool,  # noqa: FBT001
    after: int,
) -> None:
    check(incident, p, q, q_comes, plays=plays, after=after)
