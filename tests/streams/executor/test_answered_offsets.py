"""What was answered survives a restart in the commit, whatever the order of answers."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evictstream.streams.executor import answered_offsets
from evictstream.streams.executor.answered_offsets import MOST_AHEAD, AnsweredOffsets
from evictstream.streams.member_beats import BEAT_CHARS

LARGEST_METADATA = 4096  # a broker's default for offset.metadata.max.bytes


@given(st.integers(0, 2**60), st.lists(st.integers(0, 200), max_size=100))
def test_a_restart_knows_what_was_answered(first: int, offsets: list[int]) -> None:
    before = AnsweredOffsets(first)
    for offset in offsets:
        before.add(first + offset)
    after = AnsweredOffsets(before.first_open, before.metadata())

    answered = {first + offset for offset in offsets}
    assert before.first_open not in answered
    assert {offset for offset in range(first, first + 201) if offset in after} == answered


@pytest.mark.parametrize("step", [1, 2, 3, 7])
def test_the_metadata_fits_into_a_commit(step: int) -> None:
    found = AnsweredOffsets(0)
    for offset in range(1, MOST_AHEAD + 500, step):
        found.add(offset)

    assert len(found.metadata()) + BEAT_CHARS <= LARGEST_METADATA
    assert found.is_far() is (step == 1)


def test_other_clusters_records_hold_up_no_reading() -> None:
    found = AnsweredOffsets(0)
    found.pass_over(1, 10 * MOST_AHEAD)
    found.add(10 * MOST_AHEAD)
    assert not found.is_far()
    assert found.first_open == 0
    found.add(0)
    assert found.first_open == 10 * MOST_AHEAD + 1


@given(st.lists(st.sampled_from(["open", "answered", "passed"]), max_size=60), st.randoms())
def test_the_first_open_offset_is_found_whatever_lies_between(kinds: list[str], chance: Random) -> None:
    found = AnsweredOffsets(0)
    for offset, kind in enumerate(kinds):
        if kind == "passed":
            found.pass_over(offset, offset + 1)
    answered = [offset for offset, kind in enumerate(kinds) if kind == "answered"]
    chance.shuffle(answered)
    for offset in answered:
        found.add(offset)

    assert found.first_open == next((offset for offset, kind in enumerate(kinds) if kind == "open"), len(kinds))


def test_what_does_not_fit_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answered_offsets, "MOST_BITS", 16)
    found = AnsweredOffsets(0)
    found.add(1)
    found.add(100)

    assert [offset for offset in range(200) if offset in AnsweredOffsets(0, found.metadata())] == [1]


@pytest.mark.parametrize("metadata", ["", "other", "v1:", "v1:%%%", "v1:AAA"])
def test_metadata_of_another_program_counts_as_nothing(metadata: str) -> None:
    found = AnsweredOffsets(5, metadata)

    assert found.first_open == 5
    assert 6 not in found
