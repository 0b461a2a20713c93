"""How a lane goes through its seeds when runs, or the broker itself, break. Nothing here needs a Kafka."""

from __future__ import annotations

import queue
from pathlib import Path
from typing import cast

import pytest

from evictstream.kit.oracle import Violation
from tests.faults.real import many
from tests.faults.real.arena import Arena, ArenaKind
from tests.faults.real.many import MOST_REPEATS, _Lane
from tests.faults.real.summary import Summary
from tests.faults.real.verdict import Outcome


class FakeArena:
    """A broker of one's own that has destroyed itself in each run, and cannot be renewed at first."""

    kind = ArenaKind.OWN
    lost_coordinator = "__consumer_offsets-7"

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.renewals = 0

    def renew(self) -> None:
        self.renewals += 1
        if self.renewals <= self.failures:
            raise OSError("no room for a new broker")


def run_lane(
    monkeypatch: pytest.MonkeyPatch, folder: Path, arena: FakeArena, seeds: int, rules: tuple[str, ...] = ()
) -> Summary:
    def run_schedule(seed: int, *_: object) -> Outcome:
        return Outcome(seed, ArenaKind.OWN, [Violation(rule, "") for rule in rules])

    monkeypatch.setattr(many, "run_schedule", run_schedule)
    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
    for seed in range(seeds):
        waiting.put(seed)
    summary = Summary(asked=seeds)
    _Lane(cast("Arena", arena), 0, waiting, folder, summary, seeds, lambda _line: None).run()
    return summary


def test_a_failed_broker_renewal_is_reported_and_the_lane_continues(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    summary = run_lane(monkeypatch, tmp_path, FakeArena(failures=1), seeds=3)
    assert [outcome.seed for outcome in summary.outcomes] == [0, 1, 2]
    assert [(one.seed, one.violations[0].rule) for one in summary.failed] == [(0, "run broke")]


def test_a_broker_that_can_never_be_renewed_fails_each_seed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    summary = run_lane(monkeypatch, tmp_path, FakeArena(failures=99), seeds=3)
    assert [outcome.seed for outcome in summary.failed] == [0, 1, 2]


@pytest.mark.parametrize(
    ("rules", "begun_again"),
    [
        ((), 0),
        (("not issued", "state: positions"), MOST_REPEATS),
        (("not issued", "early"), 0),
        (("sent twice",), 0),
        (("run broke",), 0),
    ],
)
def test_only_what_a_missing_coordinator_explains_is_begun_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, rules: tuple[str, ...], begun_again: int
) -> None:
    summary = run_lane(monkeypatch, tmp_path, FakeArena(failures=0), 1, rules)
    assert len(summary.begun_again) == begun_again
    assert [[violation.rule for violation in one.violations] for one in summary.outcomes] == [[*rules]]


def test_fewer_schedules_than_asked_for_is_a_failure() -> None:
    summary = Summary(asked=2, outcomes=[Outcome(0, ArenaKind.SHARED)])
    assert summary.has_failed
    assert any(line.startswith("not run: 1 of 2") for line in summary.lines())
    assert not Summary(asked=1, outcomes=summary.outcomes).has_failed


def test_ends_are_counted_by_their_reason() -> None:
    endings = [
        "w0 1 Kafka refused to write s1.commands: this user has no right to write",
        "w1 1 Kafka refused to write s2.decisions: this user has no right to write",
        'w0 0 {"level": "info", "event": "stopped"}',
        'w1 0 s2", "node": "n0"}',
    ]
    summary = Summary(asked=1, outcomes=[Outcome(0, ArenaKind.SHARED, endings=endings)])
    assert "workers ended: exit 0 (a log line) 2, exit 1 (Kafka refused to write) 2" in summary.lines()
