"""What `python -m tests.faults` says and how it ends."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from tests.faults.__main__ import main
from tests.faults.oracle import Violation
from tests.faults.simulated.run import Outcome
from tests.faults.tally import Tally


def test_a_good_seed_ends_with_0_and_a_summary_for_machines(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seed", "3", "--simulated", "1", "-o", "json"]) == 0
    summary = json.loads(capsys.readouterr().out)["simulated"]
    assert (summary["runs"], summary["failedSeeds"], summary["violations"]) == (1, [], {})


def test_only_one_kind_of_fault(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seed", "3", "--only", "network-cut", "-o", "json"]) == 0
    seen = json.loads(capsys.readouterr().out)["simulated"]["seen"]
    assert set(seen) - {"evictions"} == {"network-cut"}


def test_an_unknown_fault_is_wrong_use(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--only", "earthquake"]) == 2
    assert "network-cut" in capsys.readouterr().err


def test_a_failed_seed_prints_itself_with_the_command_that_repeats_it() -> None:
    tally = Tally("simulated", repeat="python -m tests.faults --simulated 1 --seed")
    violation = Violation("early", "c0", "n0", "pod", "too soon")
    lines = list(tally.take(Outcome(17, (violation,), Counter())))
    assert lines[0].endswith("python -m tests.faults --simulated 1 --seed 17")
    assert lines[1].strip() == "early: c0/n0 pod: too soon"
    assert tally.summary()["failedSeeds"] == [17]
