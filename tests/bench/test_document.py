from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench.document import BEGIN, END, PATH, write
from tests.bench.figures import Bound, Figure, Goal
from tests.bench.peers.comparing import limit, ratio
from tests.bench.peers.programs import FAUST, OURS, STREAMS, STREAMS_EXACTLY_ONCE

RATES = {OURS: [300.0, 330.0, 270.0], STREAMS: [200.0, 220.0, 300.0], STREAMS_EXACTLY_ONCE: [100.0], FAUST: [8.0]}


def test_figures_replace_only_the_text_between_the_markers(tmp_path: Path) -> None:
    path = tmp_path / "performance.md"
    path.write_text(f"# Before\n{BEGIN}\nold\n{END}\nafter\n", encoding="utf-8")
    compared = ratio("steady", "events", "k/s", RATES, STREAMS, Goal(Bound.AT_LEAST, 1.2))
    alone = Figure("timers", "lateness", "ms", (12.0, 14.0, 11.0), Goal(Bound.BELOW, 10.0), {"p50_ms": 1.5})
    write([compared, alone], {"memory": "not done after 9 s\nmore"}, others_share=0.014, path=path)
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[:2] == ["# Before", BEGIN]
    assert lines[-2:] == [END, "after"]
    assert "old" not in lines
    assert "| events, k/s | 300 |  | 220 | 100 | 8 |" in lines
    assert "- events, k/s: ours 270 to 330, ks 200 to 300, ks-eos 100, faust 8" in lines
    assert "- lateness: 12.0 ms (11.0 to 14.0, p50_ms 1.5)" in lines
    assert "No figures of memory: not done after 9 s" in lines


def test_a_measure_with_two_goals_has_one_row_without_goals(tmp_path: Path) -> None:
    path = tmp_path / "performance.md"
    path.write_text(f"{BEGIN}\n{END}\n", encoding="utf-8")
    fast = ratio("steady", "events", "k/s", RATES, STREAMS, Goal(Bound.AT_LEAST, 1.2))
    least = ratio("steady-one", "events, one worker", "k/s", RATES, STREAMS, Goal(Bound.AT_LEAST, 9.0))
    write([fast, least], {}, others_share=None, path=path)
    text = path.read_text(encoding="utf-8")
    assert text.count("| events") == 1
    assert "MISSED" not in text
    assert "at least" not in text.replace("at least once", "")


def test_a_ratio_is_the_median_of_each_rounds_own() -> None:
    figure = ratio("steady", "events", "k/s", RATES, STREAMS, Goal(Bound.AT_LEAST, 1.2))
    assert figure.rounds == (1.5, 1.5, 0.9)
    assert figure.value == 1.5
    assert figure.is_met


def test_a_limit_is_for_ours_alone() -> None:
    figure = limit("latency", "taint to command", "ms", {OURS: [9.0], STREAMS: [20.0]}, Goal(Bound.BELOW, 10.0))
    assert figure.value == 9.0
    assert figure.is_met


def test_a_document_without_markers_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "performance.md"
    path.write_text("words\n", encoding="utf-8")
    with pytest.raises(ValueError, match="has lost its markers"):
        write([], {}, others_share=None, path=path)


def test_the_real_document_has_the_markers() -> None:
    text = PATH.read_text(encoding="utf-8")
    assert text.count(BEGIN) == text.count(END) == 1
