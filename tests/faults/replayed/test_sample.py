"""A bounded sample of what `make faults` replays, and what it has to find."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.faults.replayed.life import draw_life
from tests.faults.replayed.many import replay_many

SEEDS = range(16, 36)
"""Some in which each fault shows that `tests/mutations/windows.py` plants."""


@pytest.mark.slow
def test_random_lives_are_replayed_as_the_oracle_says() -> None:
    """Repeat one with `make faults ARGS='--replayed 1 --seed N'`."""
    outcomes = list(replay_many(SEEDS, processes=1))
    assert {one.seed: [str(found) for found in one.violations] for one in outcomes if one.violations} == {}
    seen = sum((one.seen for one in outcomes), Counter[str]())
    assert min(seen["evictions played"], seen["commands beside recorded results"]) > len(SEEDS)


def test_the_same_seed_gives_the_same_life() -> None:
    assert draw_life(7) == draw_life(7)
    assert draw_life(7) != draw_life(8)


def test_no_two_changes_are_whole_seconds_apart() -> None:
    """Repeated records aside, which change nothing."""
    for seed in SEEDS:
        firsts = {record.value: record.timestamp % 1_000 for record in reversed(draw_life(seed).records)}
        assert len(set(firsts.values())) == len(firsts)
