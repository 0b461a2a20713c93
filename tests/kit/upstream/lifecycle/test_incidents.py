"""The model beside recordings of a real control plane (Kubernetes v1.36.3, monitor period 2 s, grace period 10 s).

Fed with what kubelets reported, as recorded, the model has to find silent nodes, and to put and remove the taints of
the node lifecycle controller, within the monitor period of the recording. Three things that decide are not recorded:

- When rounds happen. `round_at` is a change that only a round makes; rounds are 2.002 s apart, because a round begins
  2 s after the end of the one before (`wait.UntilWithContext`), and the controller ran before the recording began.
- In which order a round goes through the nodes: a Go map's, so chance. The listed nodes are fed in the order in which
  they got their health taints.
- Node leases. A node whose heartbeats were not stopped renews its lease each second here, and at unknown moments there.

What is still more than a period apart is listed in `DIFFERENCES`, each with its reason.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import pytest

from evictstream.kit.upstream.lifecycle import (
    INSTANT,
    ClusterChange,
    ConditionsWritten,
    LifecycleClock,
    LifecycleSettings,
    NodeLifecycle,
    RequestPace,
    TaintsChanged,
    WatchedNode,
    WatchedPod,
)
from evictstream.kit.upstream.lifecycle.silence import STOPPED_REASON
from evictstream.models.kubernetes import NO_EXECUTE, NO_SCHEDULE
from tests.kit.upstream.lifecycle.recorded import (
    Recorded,
    Sight,
    Turn,
    instant_us,
    is_owned,
    read_recorded,
    recorded_turns,
    taint_text,
)

SECOND_US = 1_000_000
PERIOD_US = 2 * SECOND_US
PACE_US = 2_002_000
ROUNDS_BEFORE = 30


class Incident(NamedTuple):
    """Name of the folder, `--node-eviction-rate`, an instant at which a round was seen, turns of taints in it."""

    name: str
    rate: float
    round_at: str
    turns: int


INCIDENTS = [
    Incident("node-conditions", 0.1, "2026-11-21T10:14:31.498Z", 26),
    Incident("zone-dead", 0.1, "2026-11-21T10:15:43.037Z", 40),
    Incident("single-node-unreachable", 0.1, "2026-11-21T10:04:45.304Z", 4),
    Incident("single-node-unreachable-no-evictor", 0.1, "2026-11-21T11:20:52.170Z", 4),
    Incident("recovery-before-deadline", 0.1, "2026-11-21T10:05:59.473Z", 8),
    Incident("recovery-before-deadline-no-evictor", 0.1, "2026-11-21T11:22:06.220Z", 8),
    Incident("zone-outage-part-recovers", 100.0, "2026-11-21T11:17:29.377Z", 18),
    Incident("zone-outage-part-recovers-no-evictor", 100.0, "2026-11-21T11:19:15.294Z", 18),
    Incident("manual-taints", 0.1, "2026-11-21T10:10:41.500Z", 1),
    Incident("manual-taints-no-evictor", 0.1, "2026-11-21T11:23:00Z", 1),
    Incident("flapping-taints", 0.1, "2026-11-21T10:09:11.500Z", 0),
    Incident("flapping-taints-no-evictor", 0.1, "2026-11-21T11:16:00Z", 0),
]

LEASE = (
    "how long before the stop the last lease was renewed is not recorded; it decides in which of two rounds it counts"
)
THROTTLED = "written 4.4 s after its round began, at 20 requests per second: see `test_recorded_pace.py`"


def new(node: str, taint: str) -> Turn:
    return Turn(node, "+", taint)


DIFFERENCES: dict[str, dict[Turn, str]] = {
    "zone-dead": {
        new("n-015", "unreachable:NoSchedule"): THROTTLED,
        new("n-027", "unreachable:NoSchedule"): THROTTLED,
    },
    "zone-outage-part-recovers": {
        new("n-003", "unreachable:NoSchedule"): LEASE,
        new("n-003", "unreachable:NoExecute"): LEASE,
        new("n-006", "unreachable:NoExecute"): LEASE,
        new("n-012", "unreachable:NoExecute"): LEASE,
    },
    "zone-outage-part-recovers-no-evictor": {
        new("n-000", "unreachable:NoSchedule"): LEASE,
        new("n-000", "unreachable:NoExecute"): LEASE,
        new("n-012", "unreachable:NoExecute"): LEASE,
    },
}
"""Taints that come more than a period apart from the recording. Each has to be so, and by less than 3 periods."""


class Replay:
    """A recording that is fed to a model, event by event."""

    def __init__(
        self,
        incident: Incident,
        recorded: Recorded,
        *,
        finds_silence: bool,
        pace: RequestPace = INSTANT,
        pods_on_each: int = 0,
        ordered_by: str = NO_EXECUTE,
    ) -> None:
        self.lifecycle = NodeLifecycle(
            LifecycleSettings(
                monitor_period_us=PACE_US,
                monitor_grace_period_us=10 * SECOND_US,
                startup_grace_period_us=20 * SECOND_US,
                eviction_rate=incident.rate,
                reads_live_leases=False,  # Kubernetes 1.36
            )
        )
        first_us = recorded.sights[0].at_us
        phase_us = (instant_us(incident.round_at) - first_us) % PACE_US
        self.clock = LifecycleClock(self.lifecycle, first_us + phase_us - ROUNDS_BEFORE * PACE_US, pace)
        self.finds_silence = finds_silence
        self.pods_on_each = pods_on_each
        self.ordered_by = ordered_by
        self.silent: set[str] = set()
        self.changes: list[ClusterChange] = []

    def run(self, recorded: Recorded) -> None:
        """Play all events in the order of their times; heartbeats come first where times are equal."""
        first_us, last_us = recorded.sights[0].at_us, recorded.sights[-1].at_us
        steps: list[tuple[int, int, Sight | tuple[tuple[str, ...], bool] | None]] = [
            *((at_us, 0, (names, lives)) for at_us, names, lives in recorded.heartbeats),
            *((at_us, 1, None) for at_us in range(first_us, last_us, SECOND_US)),
            *((sight.at_us, 2, sight) for sight in in_order_of_tainting(recorded, self.ordered_by)),
        ]
        for at_us, _, step in sorted(steps, key=lambda one: one[:2]):
            self.changes += self.clock.advance(at_us - 1)
            if isinstance(step, Sight):
                self.see(step)
            elif step is None:
                self.renew_leases(at_us)
            else:
                self.silent = self.silent - set(step[0]) if step[1] else self.silent | set(step[0])
        self.changes += self.clock.advance(last_us)

    def renew_leases(self, at_us: int) -> None:
        for name in self.lifecycle.nodes:
            if not (self.finds_silence and name in self.silent):
                self.lifecycle.renew_lease(name, at_us)

    def see(self, sight: Sight) -> None:
        """Take everything from the recording but what the controller itself has written: that is the model's work."""
        if sight.node is None:
            self.lifecycle.delete_node(sight.name)
            return
        known: WatchedNode | None = self.lifecycle.nodes.get(sight.name)
        conditions = sight.node.conditions
        if self.finds_silence and known is not None and any(one.reason == STOPPED_REASON for one in conditions):
            conditions = known.conditions
        mine = tuple(taint for taint in (known or sight.node).taints if is_owned(taint))
        others = tuple(taint for taint in sight.node.taints if not is_owned(taint))
        node = dataclasses.replace(sight.node, conditions=conditions, taints=others + mine)
        if node != known:  # a node that is put anew during a round refuses the round's write
            self.changes += self.clock.put_node(node, sight.at_us)
        if known is None:
            for number in range(self.pods_on_each):
                self.clock.put_pod(WatchedPod("lab", f"p-{node.name}-{number}", node.name), sight.at_us)

    def turns(self) -> dict[Turn, list[int]]:
        """List when each taint came and went."""
        turns: dict[Turn, list[int]] = {}
        for change in self.changes:
            if isinstance(change, TaintsChanged):
                for sign, taints in (("+", change.added), ("-", change.removed)):
                    for taint in taints:
                        turns.setdefault(Turn(change.node, sign, taint_text(taint)), []).append(change.at_us)
        return turns


def in_order_of_tainting(recorded: Recorded, effect: str) -> list[Sight]:
    """Reorder the listed nodes, which were all observed at one instant; what follows stays as it is."""
    turns = recorded_turns(recorded.sights).items()
    came = {turn.node: times[0] for turn, times in turns if turn.sign == "+" and turn.taint.endswith(effect)}
    listed = [sight for sight in recorded.sights if sight.at_us == recorded.sights[0].at_us]
    later = list(recorded.sights[len(listed) :])
    return sorted(listed, key=lambda sight: came.get(sight.name, recorded.sights[-1].at_us)) + later


def apart_us(wanted: list[int], seen: list[int]) -> int:
    """Name the longest time between a recorded turn and ours; they have to be equally many."""
    assert len(wanted) == len(seen), (wanted, seen)
    return max(abs(one - other) for one, other in zip(wanted, seen, strict=True))


@pytest.mark.parametrize("incident", INCIDENTS, ids=[incident.name for incident in INCIDENTS])
def test_recorded_reports_bring_the_recorded_taints(incident: Incident) -> None:
    recorded = read_recorded(incident.name)
    replay = Replay(incident, recorded, finds_silence=True)
    replay.run(recorded)
    expected, got = recorded_turns(recorded.sights), replay.turns()
    assert sum(len(times) for times in expected.values()) == incident.turns
    assert expected.keys() == got.keys()
    differing = {turn for turn in got if apart_us(expected[turn], got[turn]) > PERIOD_US}
    assert differing == DIFFERENCES.get(incident.name, {}).keys()
    assert all(apart_us(expected[turn], got[turn]) < 3 * PERIOD_US for turn in differing)


@pytest.mark.parametrize("incident", INCIDENTS, ids=[incident.name for incident in INCIDENTS])
def test_no_schedule_taints_follow_recorded_conditions_at_once(incident: Incident) -> None:
    """With the Unknown of silent nodes as recorded too, no round is needed; the recorded writes waited for quota."""
    recorded = read_recorded(incident.name)
    replay = Replay(incident, recorded, finds_silence=False)
    replay.run(recorded)
    got = replay.turns()
    for turn, times in recorded_turns(recorded.sights).items():
        if turn.taint.endswith(NO_SCHEDULE):
            assert apart_us(times, got[turn]) <= SECOND_US


@pytest.mark.parametrize("incident", INCIDENTS, ids=[incident.name for incident in INCIDENTS])
def test_silent_nodes_are_found_when_they_were(incident: Incident) -> None:
    """Times of writing Unknown, and the conditions written, against the recorded ones."""
    recorded = read_recorded(incident.name)
    replay = Replay(incident, recorded, finds_silence=True)
    replay.run(recorded)
    expected: dict[str, list[tuple[int, list[tuple[str, str, str]]]]] = {}
    silent: set[str] = set()
    for sight in recorded.sights:
        conditions = () if sight.node is None else sight.node.conditions
        is_silent = any(one.reason == STOPPED_REASON for one in conditions)
        if is_silent and sight.name not in silent:
            told = sorted((one.type, one.status, one.reason) for one in conditions)
            expected.setdefault(sight.name, []).append((sight.at_us, told))
        (silent.add if is_silent else silent.discard)(sight.name)
    written = [change for change in replay.changes if isinstance(change, ConditionsWritten)]
    assert sorted(change.node for change in written) == sorted(name for name, times in expected.items() for _ in times)
    for name, times in expected.items():
        mine = [change for change in written if change.node == name]
        for (at_us, told), change in zip(times, mine, strict=True):
            assert abs(at_us - change.at_us) < 3 * PERIOD_US  # `DIFFERENCES` says how much more than one
            assert sorted((one.type, one.status, one.reason) for one in change.conditions) == told


@pytest.mark.parametrize("incident", INCIDENTS, ids=[incident.name for incident in INCIDENTS])
def test_taints_of_others_are_never_touched(incident: Incident) -> None:
    recorded = read_recorded(incident.name)
    replay = Replay(incident, recorded, finds_silence=True)
    replay.run(recorded)
    changes = [change for change in replay.changes if isinstance(change, TaintsChanged)]
    assert all(is_owned(taint) for change in changes for taint in (*change.added, *change.removed))
