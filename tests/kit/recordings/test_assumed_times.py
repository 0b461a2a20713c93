"""Times for what kubectl records without any."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from evictstream.kit.inputs.opening import live
from evictstream.kit.recordings import Entry
from evictstream.kit.recordings.assumed_times import AssumedTimes, latest_instant_us
from evictstream.kit.recordings.input_files import InputFiles
from evictstream.models.instants import instant_text, instant_us
from evictstream.streams.errors import WrongUseError
from tests.streams.feed.samples import kubectl_line, line, node, pod

EARLY, LATE, LATEST = (f"2026-11-21T10:00:0{second}Z" for second in (1, 5, 9))


def timed(found: dict[str, Any], created: str, **metadata: object) -> dict[str, Any]:
    return found | {"metadata": found["metadata"] | {"creationTimestamp": created} | metadata}


@pytest.mark.parametrize(
    "found",
    [
        pytest.param({"metadata": {"creationTimestamp": LATE}}, id="creation"),
        pytest.param({"metadata": {"managedFields": [{"time": EARLY}, {"time": LATE}]}}, id="managed-fields"),
        pytest.param({"spec": {"taints": [{"key": "node.kubernetes.io/x", "timeAdded": LATE}]}}, id="health-taint"),
        pytest.param({"status": {"conditions": [{"lastHeartbeatTime": LATE}]}}, id="heartbeat"),
        pytest.param({"status": {"conditions": [{"lastTransitionTime": LATE}]}}, id="transition"),
        pytest.param({"status": {"startTime": LATE}}, id="start"),
        pytest.param(
            {"status": {"containerStatuses": [{"state": {"running": {"startedAt": LATE}}}]}}, id="running-container"
        ),
        pytest.param(
            {"status": {"initContainerStatuses": [{"lastState": {"terminated": {"finishedAt": LATE}}}]}},
            id="ended-container",
        ),
        pytest.param(
            {"metadata": {"deletionTimestamp": "2026-11-21T10:00:35Z", "deletionGracePeriodSeconds": 30}},
            id="deletion-lies-ahead-by-its-grace-period",
        ),
    ],
)
def test_instants_that_are_over(found: dict[str, Any]) -> None:
    early = {"metadata": {"creationTimestamp": EARLY} | found.get("metadata", {})}
    latest_us = latest_instant_us(msgspec.Raw(json.dumps(found | early).encode()))
    assert latest_us == instant_us(LATE)


@pytest.mark.parametrize(
    "found",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"metadata": {"creationTimestamp": "soon"}}, id="no-instant"),
        pytest.param({"metadata": {"creationTimestamp": 7}}, id="wrong-type"),
        pytest.param({"spec": {"taints": [{"key": "lab/k", "timeAdded": LATE}]}}, id="time-that-anybody-may-write"),
    ],
)
def test_objects_that_tell_no_time(found: dict[str, Any]) -> None:
    assert latest_instant_us(msgspec.Raw(json.dumps(found).encode())) is None


class TestFiles:
    def write(self, path: Path, *lines: bytes) -> str:
        path.write_bytes(b"".join(lines))
        return str(path)

    def read(self, *names: str, listed_at_us: int | None = None) -> tuple[AssumedTimes, list[tuple[str, str]]]:
        files = InputFiles(live(names))
        times = AssumedTimes(files.latest_listed_us() if listed_at_us is None else listed_at_us)
        with files.opened(times) as items:
            found = [
                (json.loads(bytes(item.object))["metadata"]["name"], instant_text(item.observed_at_us or 0)[11:19])
                for item in items
                if isinstance(item, Entry)
            ]
        return times, found

    def test_events_are_never_before_the_one_before(self, tmp_path: Path) -> None:
        name = self.write(
            tmp_path / "nodes",
            kubectl_line(timed(node("a"), LATE)),
            kubectl_line(timed(node("b"), EARLY)),
            kubectl_line(node("c")),
        )
        times, found = self.read(name)
        assert found == [("a", "10:00:05"), ("b", "10:00:05"), ("c", "10:00:05")]
        assert (times.events, times.listed, times.listed_at_us) == (3, 0, None)

    def test_files_are_joined_by_assumed_times(self, tmp_path: Path) -> None:
        nodes = self.write(
            tmp_path / "nodes", kubectl_line(timed(node("a"), EARLY)), kubectl_line(timed(node("c"), LATEST))
        )
        pods = self.write(tmp_path / "pods", kubectl_line(timed(pod("b"), LATE)))
        assert [name for name, _ in self.read(nodes, pods)[1]] == ["a", "b", "c"]

    def test_recorded_times_stay(self, tmp_path: Path) -> None:
        name = self.write(tmp_path / "f", line(timed(node("a"), LATEST), EARLY), kubectl_line(timed(pod("b"), LATE)))
        times, found = self.read(name)
        assert found == [("a", "10:00:01"), ("b", "10:00:05")]
        assert times.events == 1

    def test_lists_are_one_state_of_their_latest_instant(self, tmp_path: Path) -> None:
        listed = [json.dumps({"kind": "List", "items": [one]}, indent=4).encode() for one in (
            timed(node("a"), EARLY), timed(pod("b"), LATE)
        )]  # fmt: skip
        one, two = self.write(tmp_path / "nodes", listed[0]), self.write(tmp_path / "pods", listed[1])
        watch = self.write(tmp_path / "watch", kubectl_line(timed(node("c"), LATEST)))
        times, found = self.read(watch, one, two)
        assert sorted(found) == [("a", "10:00:05"), ("b", "10:00:05"), ("c", "10:00:09")]
        assert found[-1][0] == "c"
        assert (times.listed, times.events) == (2, 1)

    def test_a_given_instant_counts_for_lists(self, tmp_path: Path) -> None:
        name = self.write(tmp_path / "f", json.dumps({"kind": "List", "items": [node("a")]}).encode())
        assert self.read(name, listed_at_us=instant_us(LATEST))[1] == [("a", "10:00:09")]

    @pytest.mark.parametrize("data", [kubectl_line(node()), json.dumps({"kind": "List", "items": [node()]}).encode()])
    def test_without_any_time_it_is_wrong_use(self, data: bytes, tmp_path: Path) -> None:
        with pytest.raises(WrongUseError, match="no time was recorded"):
            self.read(self.write(tmp_path / "f", data))
