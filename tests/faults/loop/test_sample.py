"""Some runs of the whole loop: the same each time, none with a violation, all of its troubles seen."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.faults.loop.run import run_loop

RUNS, SOME = 60, 8


def test_no_run_breaks_a_promise() -> None:
    assert [outcome for seed in range(SOME) if (outcome := run_loop(seed)).violations] == []


@pytest.mark.slow
def test_many_runs_see_every_trouble() -> None:
    outcomes = [run_loop(seed) for seed in range(RUNS)]

    assert [outcome for outcome in outcomes if outcome.violations] == []
    seen = sum((outcome.seen for outcome in outcomes), Counter[str]())
    troubles = ("new feed", "second feed", "restore", "rebuild", "second executor", "observer")
    assert all(seen[f"trouble: {what}"] for what in troubles)
    assert all(seen[f"brake: {what}"] for what in ("hold", "release", "remove"))
    assert seen["cluster: absurd"]
    assert seen["deletes"] > RUNS / 4


def test_a_seed_says_everything() -> None:
    assert run_loop(7) == run_loop(7)
