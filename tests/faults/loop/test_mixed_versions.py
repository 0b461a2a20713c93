"""The last release beside today's code: feed, worker and executor of both, each replaced by the other again and again.

`python -m tests.faults.loop.real --beside COMMIT` runs more seeds, against any commit.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from evictstream.streams.broker.locate import Broker
from tests.faults.loop.real import run_real
from tests.harness.other_version import last_release, version_of

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.kit]

SEEDS = (7, 8)
CHANGES = 3
"""At least so often a version has to have taken over from the other one."""


@pytest.mark.parametrize("seed", SEEDS)
def test_an_upgrade_and_the_way_back_break_no_promise(seed: int, kafka: Broker, tmp_path: Path) -> None:
    release = last_release()
    if release is None:
        pytest.skip("no history of git here")
    before = version_of(release, tmp_path / "beside")
    outcome = run_real(seed, kafka.bootstrap_servers, tmp_path / "run", beside=before, troubles=())
    assert outcome.violations == ()
    assert sum(outcome.seen[f"process: kill {name}"] for name in ("feed", "worker", "executor")) >= CHANGES
