"""A few schedules on real Kafka in each test run; `make faults` runs hundreds."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.log import InputRecord, MessageRecord
from tests.faults.real.kept import keep, load
from tests.faults.real.many import run_many

FIRST_SEED = 20
COUNT = 3  # two on a shared broker, one on a broker of its own; all at once, some 45 s


@pytest.mark.kafka
@pytest.mark.slow
def test_nothing_lost_nothing_twice_nothing_early() -> None:
    lines: list[str] = []
    summary = run_many(COUNT, FIRST_SEED, tell=lines.append)
    assert len(summary.outcomes) == COUNT
    assert not summary.failed, "\n".join(lines)
    assert sum(outcome.evicts for outcome in summary.outcomes) > 0, "nothing was at stake"
    assert sum(len(outcome.faults) for outcome in summary.outcomes) >= COUNT


def test_a_kept_log_is_the_one_that_was_judged(tmp_path: Path) -> None:
    inputs = [InputRecord("pods", 1, 7, 1_700_000_000_000_000, b"c0/\xffn", None)]
    messages = [MessageRecord("commands", 0, 3, 1_700_000_000_001_000, b"c0/n", {"ce_id": b"\x00a"}, b"{}")]
    keep(tmp_path, inputs, messages, {"seed": 4})
    assert load(tmp_path) == (inputs, messages, {"seed": 4})
