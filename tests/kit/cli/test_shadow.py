"""`evictstream shadow` on recordings: what it prints and refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evictstream.kit.recordings.recording_folder import RecordingWriter
from tests.kit.cli.test_replay import INCIDENT, NOWHERE
from tests.kit.replay.recorded import PARTITIONS
from tests.kit.replay.test_shadow import BY_TAINT, decided, tainted
from tests.streams.cli.running import run


@pytest.fixture
def week(tmp_path: Path) -> Path:
    made = tainted(30).pod(12, 5).pod(40, 5, BY_TAINT).node(50, is_tainted=True)
    with RecordingWriter(tmp_path / "week", partitions=PARTITIONS) as writer:
        for record in (*made.records, *decided(made.records, 0)):
            writer.write(record)
    return tmp_path / "week"


def test_people_get_counts_and_each_difference(week: Path) -> None:
    result = run(NOWHERE, "shadow", str(week), "--allow", "listing")
    assert result.returncode == 0, result.stderr
    lines = result.stdout.decode().splitlines()
    assert lines[0].startswith("2023-11-14T22:13:20.000000Z to ")
    assert [line.split() for line in lines if line.startswith(("earlier", "ns/p"))] == [
        ["earlier", "1", "5", "its", "tolerations", "were", "edited"],
        ["ns/p", "n", "2023-11-14T22:13:35Z", "25.0", "s", "earlier", "5"],
    ]


def test_programs_get_all_as_json(week: Path) -> None:
    result = run(NOWHERE, "shadow", str(week), "--allow", "listing", "-o", "json")
    found = json.loads(result.stdout)
    assert (result.returncode, found["same"], found["clusters"]) == (0, 0, ["lab"])
    assert found["differences"] == [
        {
            "kind": "Earlier",
            "cluster": "lab",
            "pod": "ns/p",
            "podUid": "pod",
            "node": "n",
            "evictstreamAt": "2023-11-14T22:13:35.000000Z",
            "kubernetesAt": "2023-11-14T22:14:00.000000Z",
            "seconds": -25.0,
            "row": 5,
            "reason": "its tolerations were edited",
        }
    ]


def test_a_recording_without_a_listing_is_no_whole_answer(week: Path) -> None:
    result = run(NOWHERE, "shadow", str(week))
    assert (result.returncode, b"no listing of lab" in result.stderr) == (1, True)


def test_a_recording_without_decisions_is_refused() -> None:
    result = run(NOWHERE, "shadow", INCIDENT)
    assert (result.returncode, result.stdout) == (2, b"")
    assert b"has no decisions; make it with `evictstream record --outputs`" in result.stderr
