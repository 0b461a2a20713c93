"""Which command counts: each is done once, and none after a newer one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evictstream.models.execution import command_log
from evictstream.models.execution.command_log import CommandAnswer, CommandLog, Reading
from evictstream.models.instants import instant_text
from evictstream.models.messages.vocabulary import Action, Outcome
from tests.models.execution.samples import T0_US, command

DONE = CommandAnswer(Outcome.SUCCEEDED, "")
EVICT, SCHEDULE, CANCEL = Action.EVICT, Action.SCHEDULE, Action.CANCEL


def make_log() -> CommandLog:
    return CommandLog(oldest_seconds=3600)


def test_an_eviction_keeps_when_it_was_first_seen() -> None:
    log = make_log()
    log.read(command(), T0_US)
    assert log.first_seen(command(), 10.0) == 10.0
    log.read(command(attempt=2), T0_US)
    assert log.first_seen(command(attempt=2), 99.0) == 10.0


@pytest.mark.parametrize(
    ("before", "now", "follows"),
    [
        pytest.param([], (EVICT, 1, 1), Reading.EVICT, id="the first one is done"),
        pytest.param([(SCHEDULE, 1, 0)], (EVICT, 1, 1), Reading.EVICT, id="after its schedule"),
        pytest.param([(EVICT, 1, 1)], (EVICT, 1, 2), Reading.EVICT, id="a further attempt"),
        pytest.param([(EVICT, 1, 1)], (EVICT, 1, 1), Reading.IGNORE, id="a copy while it waits"),
        pytest.param([(EVICT, 1, 2)], (EVICT, 1, 1), Outcome.OBSOLETE, id="an earlier attempt"),
        pytest.param([(SCHEDULE, 2, 0)], (EVICT, 1, 1), Outcome.OBSOLETE, id="a lower revision"),
        pytest.param([(CANCEL, 1, 0)], (EVICT, 1, 1), Outcome.OBSOLETE, id="after its cancel"),
        pytest.param([(EVICT, 1, 1)], (CANCEL, 1, 1), Reading.WITHDRAW, id="a cancel"),
        pytest.param([(EVICT, 1, 1)], (SCHEDULE, 2, 1), Reading.WITHDRAW, id="a later deadline"),
        pytest.param([], (SCHEDULE, 1, 0), Reading.WITHDRAW, id="a first schedule"),
        pytest.param([(EVICT, 2, 1)], (SCHEDULE, 1, 0), Reading.IGNORE, id="an old schedule"),
        pytest.param([(EVICT, 1, 1), (SCHEDULE, 2, 1)], (EVICT, 2, 2), Reading.EVICT, id="due again"),
    ],
)
def test_a_command_after_others(
    before: list[tuple[Action, int, int]], now: tuple[Action, int, int], follows: Reading | Outcome
) -> None:
    log = make_log()
    for action, revision, attempt in before:
        log.read(command(action, revision=revision, attempt=attempt), T0_US)

    found = log.read(command(now[0], revision=now[1], attempt=now[2]), T0_US)

    assert (found.outcome if isinstance(found, CommandAnswer) else found) == follows


def test_an_answered_command_is_answered_again() -> None:
    log = make_log()
    log.read(command(), T0_US)
    log.answer(command(), DONE)

    assert log.read(command(), T0_US) == DONE


def test_an_abandoned_command_is_done_when_read_again() -> None:
    log = make_log()
    log.read(command(), T0_US)
    log.abandon(command())

    assert log.read(command(), T0_US) is Reading.EVICT
    assert log.read(command(), T0_US) is Reading.IGNORE


def test_an_abandoned_command_that_ends_is_not_done_again() -> None:
    log = make_log()
    log.read(command(), T0_US)
    log.abandon(command())
    log.answer(command(), DONE)

    assert log.read(command(), T0_US) == DONE


def test_an_answer_belongs_to_its_attempt() -> None:
    log = make_log()
    log.read(command(attempt=1), T0_US)
    log.read(command(attempt=2), T0_US)
    log.answer(command(attempt=1), DONE)

    assert log.read(command(attempt=2), T0_US) is Reading.IGNORE


def test_a_command_beyond_the_age_limit_is_obsolete() -> None:
    log = make_log()
    found = log.read(command(issued_at=instant_text(T0_US - 3601 * 1_000_000)), T0_US)

    assert isinstance(found, CommandAnswer)
    assert found.outcome is Outcome.OBSOLETE


@pytest.mark.parametrize(
    "answered", [pytest.param(command(CANCEL), id="cancel"), pytest.param(command(attempt=2), id="attempt")]
)
def test_commands_answered_before_a_restart_outdate_earlier_ones(answered: object) -> None:
    log = make_log()
    log.note_answered(answered)  # type: ignore[arg-type]  # the table's objects
    found = log.read(command(attempt=1), T0_US)

    assert isinstance(found, CommandAnswer)


def test_memory_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_log, "_MOST_EVICTIONS", 10)
    log = make_log()
    for number in range(30):
        log.read(command(pod=f"p-{number}"), T0_US)

    assert len(log._entries) == 10


@given(
    st.lists(st.tuples(st.sampled_from([EVICT, SCHEDULE, CANCEL]), st.integers(1, 3), st.integers(1, 4)), max_size=20)
)
def test_no_attempt_is_done_twice_nor_after_a_cancel(steps: list[tuple[Action, int, int]]) -> None:
    log = make_log()
    done: list[tuple[int, int]] = []
    is_cancelled = False
    for action, revision, attempt in steps:
        found = log.read(command(action, revision=revision, attempt=attempt), T0_US)
        is_cancelled |= action is CANCEL
        if found is Reading.EVICT:
            assert not is_cancelled
            done.append((attempt, revision))

    assert done == sorted(set(done))
