"""What `python -m tests.faults` says and how it ends."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from evictstream.kit.oracle import Violation
from tests.faults.__main__ import main
from tests.faults.simulated.run import Outcome
from tests.faults.tally import Tally


def test_a_good_seed_exits_with_0_and_a_json_summary(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seed", "3", "--simulated", "1", "-o", "json"]) == 0
    summary = json.loads(capsys.readouterr().out)["simulated"]
    assert (summary["runs"], summary["failedSeeds"], summary["violations"]) == (1, [], {})


def test_only_one_kind_of_fault(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seed", "4", "--only", "network-cut", "-o", "json"]) == 0
    seen = json.loads(capsys.readouterr().out)["simulated"]["seen"]
    assert set(seen) - {"evictions", "published levels"} == {"network-cut"}


def test_an_unknown_fault_is_wrong_use(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--only", "earthquake"]) == 2
    assert "network-cut" in capsys.readouterr().err


def test_a_failed_seed_prints_the_command_that_repeats_it() -> None:
    tally = Tally("simulated", range(10, 20), repeat="--simulated 1")
    violation = Violation("early", "too soon", cluster="c0", node="n0", pod_uid="pod")
    lines = list(tally.take(Outcome(17, (violation,), Counter())))
    assert lines[0].endswith("make faults ARGS='--simulated 1 --seed 17'")
    assert lines[1].strip() == "early: c0/n0 pod: too soon"
    assert tally.summary()["failedSeeds"] == [17]
    assert "(seeds 10 to 19)" in tally.text()


def test_a_seed_without_counts_is_one_simulated_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seed", "0"]) == 0
    assert "1 schedules (seeds 0 to 0)" in capsys.readouterr().out


@pytest.mark.parametrize("counts", [["--real", "1"], ["--real", "1", "--simulated", "1"], []])
def test_one_fault_kind_is_refused_where_it_has_no_effect(
    capsys: pytest.CaptureFixture[str], counts: list[str]
) -> None:
    assert main(["--only", "network-cut", *counts]) == 2
    assert "--simulated" in capsys.readouterr().err
