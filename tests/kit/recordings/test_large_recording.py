"""A recording may be larger than memory: what a replay needs grows with the objects, not with the events."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench.replaying import replay_files, write_recording

NODES = 40
GROWS_AT_MOST_BYTES = 12_000_000
"""Blocks of files that are longer, and chance; fifty thousand records kept would be four times that."""


@pytest.mark.slow
def test_memory_does_not_grow_with_the_recording(tmp_path: Path) -> None:
    peaks = []
    for name, events in (("short", 20_000), ("long", 70_000)):
        write_recording(tmp_path / name, events, nodes=NODES)
        run = replay_files(tmp_path / name)
        assert run.records == events
        assert run.evictions > 0
        peaks.append(run.peak_bytes)
    assert peaks[1] - peaks[0] < GROWS_AT_MOST_BYTES
