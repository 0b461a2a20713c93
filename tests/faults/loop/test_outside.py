"""The whole loop on a real Kafka with one trouble from outside, again and again: no promise is broken.

`python -m tests.faults.loop.real` mixes them. Here a guard that is taken out shows itself in one run.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from evictstream.streams.broker.locate import Broker
from tests.faults.loop.outside import CACHE_STANDS
from tests.faults.loop.real import run_real

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.kit]

SEED = 1
PATIENCE_SECONDS = 120.0


def broken(kafka: Broker, folder: Path, *troubles: str) -> tuple[str, ...]:
    more = {"troubles": troubles, "patience_seconds": PATIENCE_SECONDS}
    outcome = run_real(SEED, kafka.bootstrap_servers, folder, **more)
    seen = {what: outcome.seen[f"outside: {what}"] for what in troubles}
    assert all(seen.values()), seen
    return outcome.violations


def test_unlike_executors_a_tenant_and_a_dead_cluster(kafka: Broker, tmp_path: Path) -> None:
    """They are there in each run."""
    assert broken(kafka, tmp_path) == ()


def test_credentials_that_are_replaced_or_fail(kafka: Broker, tmp_path: Path) -> None:
    assert broken(kafka, tmp_path, "token", "plugin fails") == ()


def test_a_watch_cache_that_stands_still(kafka: Broker, tmp_path: Path) -> None:
    assert broken(kafka, tmp_path, CACHE_STANDS) == ()


def test_transactions_that_are_left_open(kafka: Broker, tmp_path: Path) -> None:
    assert broken(kafka, tmp_path, "transaction") == ()


def test_records_that_explode(kafka: Broker, tmp_path: Path) -> None:
    assert broken(kafka, tmp_path, "giant") == ()
