"""A schedule on a real Kafka, as `make faults` runs hundreds of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from evictstream.kit.oracle.records import InputRecord, KeyedRecord, MessageRecord
from tests.faults.real.kept import keep, load
from tests.faults.real.many import run_many
from tests.faults.real.reading import Log

FIRST_SEED = 21
COUNT = 1  # on a broker of its own, so that all kinds of faults are possible; with policies that guard


@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.kit
def test_nothing_lost_nothing_twice_nothing_early() -> None:
    lines: list[str] = []
    summary = run_many(COUNT, FIRST_SEED, tell=lines.append)
    assert len(summary.outcomes) == COUNT
    assert not summary.failed, "\n".join(lines)
    assert sum(outcome.evicts for outcome in summary.outcomes) > 0, "nothing was at stake"
    assert all(outcome.steering["records of policies that guard"] for outcome in summary.outcomes)
    assert sum(len(outcome.faults) for outcome in summary.outcomes) >= COUNT


def test_a_kept_log_is_the_one_that_was_judged(tmp_path: Path) -> None:
    inputs = [
        InputRecord(topic="pods", partition=1, offset=7, append_at_us=1_700_000_000_000_000, key=b"c0\xff", value=None)
    ]
    messages = [
        MessageRecord(
            topic="commands",
            partition=0,
            offset=3,
            append_at_us=1_700_000_000_001_000,
            key=b"c0",
            headers={"ce_id": b"\x00a"},
            value=b"{}",
        )
    ]
    brakes = [KeyedRecord(append_at_us=1_700_000_000_002_000, known_at_us=1_700_000_000_900_000, key=b"b0", value=None)]
    log = Log(inputs, messages, brakes, [], [KeyedRecord(append_at_us=3_000, key=b"i", value=b"{}")])
    keep(tmp_path, log, {"seed": 4})
    assert load(tmp_path) == (log, {"seed": 4})
