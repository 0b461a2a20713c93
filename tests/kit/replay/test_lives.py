"""Random lives beside Kubernetes' own controller: each difference has its row of semantics.md 13."""

from __future__ import annotations

from collections import Counter

import pytest

from evictstream.kit.replay.replay_report import report_of
from tests.kit.replay.lives import AFTER_SECONDS, PARTITIONS, draw_life

FEW = range(16)
MANY = tuple(range(start, start + 100) for start in range(100, 1_600, 100))


def unexplained(seeds: range) -> tuple[list[str], Counter[int | None]]:
    """Replay lives; returns what no row says, and how often each row was named."""
    missing, rows = [], Counter[int | None]()
    for seed in seeds:
        life = draw_life(seed)
        found = report_of(
            life.settings,
            lambda records=life.records: records,  # type: ignore[misc]
            partitions=PARTITIONS,
            plays_executor=life.plays_executor,
            run_on_seconds=AFTER_SECONDS,
            against="upstream",
        )
        for one in found.differences:
            row = None if one.reason is None else one.reason.row
            rows[row] += 1
            if row is None:
                missing.append(f"seed {seed}: {one}")
    return missing, rows


def test_each_difference_of_some_lives_has_its_row() -> None:
    missing, rows = unexplained(FEW)
    assert not missing, "\n".join(missing)
    assert len(rows) > 5  # the lives are such that both differ for many reasons


@pytest.mark.kit
@pytest.mark.parametrize("seeds", MANY, ids=lambda seeds: f"{seeds.start}-{seeds.stop - 1}")
def test_each_difference_of_many_lives_has_its_row(seeds: range) -> None:
    missing, _ = unexplained(seeds)
    assert not missing, "\n".join(missing)
