"""Who is silent: by examples, and against a model that looks at the whole past each time."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from evictstream.streams.member_beats import (
    BEAT_CHARS,
    BEAT_GAP_SECONDS,
    BEAT_LOOK_SECONDS,
    BEAT_SECONDS,
    LONGEST_CLOCK,
    LONGEST_MEMBER_ID,
    NO_BEAT_SECONDS,
    Beat,
    SilenceWatch,
    read_beat,
    with_beat,
)
from tests.harness.examples import examples

MEMBERS = ("a", "b")


@pytest.mark.parametrize("metadata", ["", "v1:AAAA"])
@pytest.mark.parametrize("member", ["evictstream-1", "a:b|b1:7:c", "ü", "x" * LONGEST_MEMBER_ID])
def test_a_beat_is_read_as_it_was_written(metadata: str, member: str) -> None:
    text = with_beat(metadata, Beat(member, (1 << 63) - 1))
    assert read_beat(text) == (metadata, Beat(member, (1 << 63) - 1))
    assert len(text) <= len(metadata) + BEAT_CHARS + len("|b1::")


def test_a_beat_may_name_its_clock() -> None:
    beat = Beat("a", 5, "clock")
    assert read_beat(with_beat("v1:AAAA", beat)) == ("v1:AAAA", beat)
    assert len(with_beat("", Beat("x" * LONGEST_MEMBER_ID, 1 << 63, "c" * LONGEST_CLOCK))) <= BEAT_CHARS
    assert with_beat("", Beat("a", 5, "c" * (LONGEST_CLOCK + 1))) == ""


def test_a_member_with_an_endless_id_has_no_beat() -> None:
    assert with_beat("v1:AAAA", Beat("x" * (LONGEST_MEMBER_ID + 1), 1)) == "v1:AAAA"


@pytest.mark.parametrize(
    "text", ["", "v1:AAAA", "|b1:", "|b1:7", "|b1:7:", "|b1:-7:a", "|b1:²:a", "|b1:" + "9" * 5_000 + ":a", "|b2:7:a"]
)
def test_what_is_no_beat_is_none(text: str) -> None:
    assert read_beat(text)[1] is None


@settings(max_examples=30)
@given(text=st.text(max_size=40))
def test_any_text_can_be_read(text: str) -> None:
    read_beat(text)


def looks(
    watch: SilenceWatch, begin: float, end: float, *beats: Beat, each: float = BEAT_LOOK_SECONDS
) -> frozenset[str]:
    """Look as often as a watcher does; returns what the last one found."""
    silent: frozenset[str] = frozenset()
    for number in range(int((end - begin) / each) + 1):
        at = begin + number * each
        silent = watch.look(beats, asked_at=at, answered_at=at)
    return silent


def test_one_that_stands_still_is_silent_after_its_time() -> None:
    watch = SilenceWatch()
    assert not looks(watch, 0.0, NO_BEAT_SECONDS - BEAT_LOOK_SECONDS, Beat("a", 1))
    assert looks(watch, NO_BEAT_SECONDS, NO_BEAT_SECONDS, Beat("a", 1)) == {"a"}


def test_a_beat_saves_only_its_own_member() -> None:
    watch = SilenceWatch()
    looks(watch, 0.0, 1.0, Beat("a", 1), Beat("b", 1))
    assert looks(watch, 1.25, 2.0, Beat("a", 1), Beat("b", 2)) == {"a"}


def test_the_newest_beat_of_a_member_counts() -> None:
    watch = SilenceWatch()
    looks(watch, 0.0, 1.0, Beat("a", 1), Beat("a", 5))
    assert looks(watch, 1.25, 2.0, Beat("a", 1), Beat("a", 5)) == {"a"}
    assert not looks(watch, 2.25, 2.5, Beat("a", 6), Beat("a", 5))


def test_a_watcher_that_was_away_finds_nobody_silent() -> None:
    watch = SilenceWatch()
    looks(watch, 0.0, 1.0, Beat("a", 1))
    assert not looks(watch, 21.0, 21.0 + NO_BEAT_SECONDS - BEAT_LOOK_SECONDS, Beat("a", 1))
    assert looks(watch, 21.0 + NO_BEAT_SECONDS, 21.0 + NO_BEAT_SECONDS, Beat("a", 1)) == {"a"}


def test_a_late_answer_says_nothing_about_the_wait_for_it() -> None:
    watch = SilenceWatch()
    looks(watch, 0.0, 1.0, Beat("a", 1))
    assert not watch.look([Beat("a", 1)], asked_at=1.25, answered_at=6.0)
    assert not looks(watch, 6.25, 7.25, Beat("a", 1))


def sent(at: float, clock: str = "here") -> Beat:
    return Beat("a", int(at * 1_000), clock)


@pytest.mark.parametrize(
    ("beat", "is_silent"),
    [
        pytest.param(sent(10.0 - BEAT_SECONDS - NO_BEAT_SECONDS), True, id="dead for long"),
        pytest.param(sent(10.1 - BEAT_SECONDS - NO_BEAT_SECONDS), False, id="perhaps only late"),
        pytest.param(sent(0.0, "there"), False, id="another machine"),
        pytest.param(sent(0.0, ""), False, id="a count"),
        pytest.param(sent(90.0), False, id="a clock that is ahead"),
    ],
)
def test_one_that_starts_knows_who_died_on_its_machine(beat: Beat, *, is_silent: bool) -> None:
    assert bool(SilenceWatch("here").look([beat], asked_at=10.0, answered_at=10.0)) is is_silent


def test_a_watcher_that_was_away_trusts_no_clock() -> None:
    watch = SilenceWatch("here")
    looks(watch, 0.0, 1.0, sent(1.0))
    assert not watch.look([sent(1.0)], asked_at=21.0, answered_at=21.0)


def test_after_a_restart_all_have_their_time_again() -> None:
    watch = SilenceWatch()
    looks(watch, 0.0, NO_BEAT_SECONDS, Beat("a", 1))
    watch.restart()
    assert not looks(watch, NO_BEAT_SECONDS + BEAT_LOOK_SECONDS, 2 * NO_BEAT_SECONDS, Beat("a", 1))


@settings(max_examples=40)
@given(phase=st.floats(0, BEAT_SECONDS), delay=st.floats(0, 0.2), dies_at=st.floats(2, 4))
def test_a_dead_member_is_found_in_time(phase: float, delay: float, dies_at: float) -> None:
    """The bound that takeovers are promised with, for any place of beats and looks to each other."""
    watch, found_at = SilenceWatch(), None
    for number in range(40):
        asked_at = number * (BEAT_LOOK_SECONDS + delay)
        count = int((min(asked_at, dies_at) - phase) // BEAT_SECONDS) + 1
        if watch.look([Beat("a", count)], asked_at=asked_at, answered_at=asked_at + delay):
            found_at = asked_at
            break
    assert found_at is not None
    assert found_at - dies_at >= NO_BEAT_SECONDS - BEAT_SECONDS
    assert found_at - dies_at <= NO_BEAT_SECONDS + 2 * (BEAT_LOOK_SECONDS + delay) + delay


class Look(NamedTuple):
    """One that was answered; `begins` is whether the time of all begins with it."""

    beats: dict[str, int]
    asked_at: float
    answered_at: float
    begins: bool


class WatchAgainstWholePast(RuleBasedStateMachine):
    """The model keeps all looks, and counts back from the last one."""

    def __init__(self) -> None:
        super().__init__()
        self.watch = SilenceWatch()
        self.past: list[Look] = []
        self.counts = dict.fromkeys(MEMBERS, 0)
        self.now = 0.0
        self.is_restarted = False

    @rule(member=st.sampled_from(MEMBERS))
    def beat(self, member: str) -> None:
        self.counts[member] += 1

    @rule()
    def restart(self) -> None:
        self.watch.restart()
        self.is_restarted = True

    @rule(
        pause=st.sampled_from([0.0, BEAT_LOOK_SECONDS, 0.5, BEAT_GAP_SECONDS, 0.8, 20.0]),
        delay=st.sampled_from([0.0, 0.01, 0.3, 2.0]),
        members=st.sets(st.sampled_from(MEMBERS)) | st.just(set(MEMBERS)),
        times=st.integers(1, 8),
    )
    def look(self, pause: float, delay: float, members: set[str], times: int) -> None:
        for _ in range(times):
            asked_at = self.now + pause
            answered_at = self.now = asked_at + delay
            beats = {member: self.counts[member] for member in members}
            gap = answered_at - self.past[-1].answered_at if self.past else 0.0
            begins = self.is_restarted or gap > BEAT_GAP_SECONDS
            self.past.append(Look(beats, asked_at, answered_at, begins))
            self.is_restarted = False
            found = self.watch.look(
                [Beat(member, count) for member, count in beats.items()], asked_at=asked_at, answered_at=answered_at
            )
            assert found == {member for member in members if self.is_silent(member)}

    def is_silent(self, member: str) -> bool:
        last = self.past[-1]
        first_answered_at = last.answered_at
        for look in reversed(self.past):
            if look.beats.get(member) != last.beats[member]:
                break
            first_answered_at = look.answered_at
            if look.begins:
                break
        return last.asked_at - first_answered_at >= NO_BEAT_SECONDS


TestWatchAgainstWholePast = WatchAgainstWholePast.TestCase
TestWatchAgainstWholePast.settings = settings(max_examples=examples(40), stateful_step_count=15, deadline=None)
