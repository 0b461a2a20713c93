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

SEED = 7


def test_an_upgrade_and_the_way_back_break_no_promise(kafka: Broker, tmp_path: Path) -> None:
    release = last_release()
    if release is None:
        pytest.skip("no history of git here")
    outcome = run_real(SEED, kafka.bootstrap_servers, tmp_path / "run", beside=version_of(release, tmp_path / "beside"))
    assert outcome.violations == ()
    assert sum(outcome.seen[f"process: kill {name}"] for name in ("feed", "worker", "executor")) >= 2
