"""A bounded sample of what `make faults` runs: three dozen schedules under virtual time."""

from __future__ import annotations

import pytest

from tests.faults.plan import SIMULATED_KINDS
from tests.faults.simulated.many import simulate_many

BLOCKS, SEEDS_IN_BLOCK = 3, 12


@pytest.mark.slow
@pytest.mark.parametrize("block", [0, *(pytest.param(block, marks=pytest.mark.kit) for block in range(1, BLOCKS))])
def test_random_schedules(block: int) -> None:
    """Nothing lost, nothing twice, nothing early. Repeat one with `make faults ARGS='--seed N'`."""
    seeds = range(block * SEEDS_IN_BLOCK, (block + 1) * SEEDS_IN_BLOCK)
    outcomes = list(simulate_many(seeds, kinds=SIMULATED_KINDS, processes=1))
    assert {
        outcome.seed: [str(found) for found in outcome.violations] for outcome in outcomes if outcome.violations
    } == {}
    assert sum(outcome.seen["evictions"] for outcome in outcomes) > 0
