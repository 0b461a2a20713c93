from __future__ import annotations

import gzip
import json
import os
import pty
import signal
from pathlib import Path

import msgspec
import pytest

from evictstream.streams.broker.admin import declare_topics
from evictstream.streams.broker.feed_states import FeedState
from evictstream.streams.broker.follow import FollowedRecord
from evictstream.streams.broker.ports import free_ports
from evictstream.streams.feed.publisher import open_publisher
from evictstream.streams.settings import Settings
from tests.streams.cli.running import read_terminal, run, started, wait_until
from tests.streams.feed.reading import read
from tests.streams.feed.samples import kubectl_line, line, node, pod

START, LATER, FAR = "2026-11-21T10:00:00Z", "2026-11-21T10:00:01Z", "2026-11-21T12:00:00Z"


@pytest.fixture
def declared(settings: Settings) -> Settings:
    declare_topics(settings)
    return settings


def inputs(settings: Settings) -> list[tuple[str, FollowedRecord]]:
    """What is on nodes and pods."""
    found = read(settings, settings.nodes_topic, settings.pods_topic)
    return [(topic, record) for topic, records in found.items() for record in records]


def objects_of(settings: Settings) -> dict[str, dict[str, object]]:
    """Values on the topics by name of the object."""
    values = [json.loads(record.value or b"") for _, record in inputs(settings)]
    return {value["object"]["metadata"]["name"]: value for value in values}


def test_our_format(declared: Settings, tmp_path: Path) -> None:
    recording = tmp_path / "incident.jsonl.gz"
    recording.write_bytes(gzip.compress(line(node(), START) + line(pod(), LATER) + b'{"type":"BOOKMARK"}\n'))
    result = run(declared, "import", str(recording), "--pace", "fast", "-o", "json")
    assert result.returncode == 0
    assert json.loads(result.stdout) == {
        "isComplete": True,
        "nodes": 1,
        "pods": 1,
        "skipped": {"BOOKMARK": 1},
        "unreadable": 0,
        "endedWatches": [],
        "clusters": ["lab"],
        "firstObservedAt": "2026-11-21T10:00:00.000000Z",
        "lastObservedAt": "2026-11-21T10:00:01.000000Z",
    }
    assert b"recorded times are old" in result.stderr
    assert [(topic, record.key) for topic, record in inputs(declared)] == [
        (declared.nodes_topic, b"lab"),
        (declared.pods_topic, b"lab"),
    ]
    partitions = {record.partition for _, record in inputs(declared)}
    assert len(partitions) == 1


def test_what_kubectl_prints_two_files(declared: Settings, tmp_path: Path) -> None:
    nodes, pods = tmp_path / "nodes.json", tmp_path / "pods.json"
    nodes.write_bytes(kubectl_line(node("a")) + kubectl_line(node("b"), "DELETED"))
    pods.write_bytes(json.dumps({"type": "ADDED", "object": pod()}, indent=2).encode())
    result = run(declared, "import", "--cluster", "lab", str(nodes), str(pods))
    assert result.returncode == 0
    assert [row.split()[-1] for row in result.stdout.decode().splitlines()] == ["events", "2", "1", "0", "lab"]
    assert b"no recorded times" in result.stderr
    found = objects_of(declared)
    assert {name: value["type"] for name, value in found.items()} == {"a": "ADDED", "b": "DELETED", "p-1": "ADDED"}
    assert all("observedAt" not in value for value in found.values())


def test_trim(declared: Settings, tmp_path: Path) -> None:
    recording = tmp_path / "r"
    recording.write_bytes(kubectl_line(node()))
    result = run(declared, "import", "--cluster", "lab", "--trim", str(recording))
    assert result.returncode == 0
    assert objects_of(declared)["n-1"]["object"] == {
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {"name": "n-1", "uid": "uid-n-1", "resourceVersion": "7", "labels": {"a": "b"}, "annotations": {}},
        "spec": {},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }


def test_an_audit_log_after_a_list(declared: Settings, tmp_path: Path) -> None:
    listed = tmp_path / "nodes.json"
    listed.write_text(json.dumps({"kind": "List", "items": [node("listed")]}, indent=4))
    log = Path(__file__).parents[3] / "examples" / "audit-log" / "audit.jsonl.gz"
    arguments = ("--cluster", "lab", "--pace", "fast", "--restamp", "-o", "json", str(listed), str(log))
    result = run(declared, "import", *arguments)
    assert result.returncode == 0
    counts = json.loads(result.stdout)
    assert counts["skipped"]["audit: dry runs"] == 1
    assert objects_of(declared)["listed"]["type"] == "ADDED"
    assert objects_of(declared)["n-2"]["type"] == "DELETED"


def test_restamped_and_paced(declared: Settings) -> None:
    data = line(node("a"), START) + line(node("b"), LATER)
    result = run(declared, "import", "--restamp", "--pace", "2x", "-", stdin=data)
    assert result.returncode == 0
    assert b"append times count" in result.stderr
    first, second = sorted((record for _, record in inputs(declared)), key=lambda record: record.timestamp_ms)
    assert 400 <= second.timestamp_ms - first.timestamp_ms < 20_000
    times = [json.loads(record.value or b"")["observedAt"] for record in (first, second)]
    assert times[0][:2] == "20"
    assert times[0] > START
    assert times[0][17:] != times[1][17:]


def test_flaws_are_reported_by_line_and_the_rest_goes_on(declared: Settings) -> None:
    data = line(node("a"), START) + b"broken\n" + kubectl_line({"kind": "Lease"}) + line(node("b"), START)
    result = run(declared, "import", "--cluster", "lab", "-", "-o", "json", stdin=data)
    assert result.returncode == 1
    told = result.stderr.decode().splitlines()
    assert told[-3:-1] == [
        "evictstream: 1 line cannot be read, stdin, line 2: not JSON",
        "evictstream: 1 line cannot be read, stdin, line 3: its object is neither a Node nor a Pod",
    ]
    assert "--allow unreadable accepts this" in told[-1]
    assert (json.loads(result.stdout)["unreadable"], json.loads(result.stdout)["isComplete"]) == (2, True)
    assert set(objects_of(declared)) == {"a", "b"}


def test_many_lines_with_one_problem_are_said_once(declared: Settings) -> None:
    result = run(declared, "import", "--cluster", "lab", "-", "-o", "json", "--allow", "unreadable", stdin=b"{]\n" * 50)
    assert (result.returncode, json.loads(result.stdout)["unreadable"]) == (0, 50)
    assert [line for line in result.stderr.decode().splitlines() if "cannot be read" in line] == [
        "evictstream: 50 lines cannot be read, stdin, line 1: not JSON"
    ]


class TestLiveWatch:
    @pytest.mark.parametrize(
        ("stdin", "kinds", "told"),
        [
            pytest.param(kubectl_line(node()), ["Node"], "the watch of nodes of lab has ended (stdin)", id="of nodes"),
            pytest.param(b"", [], "ended before its first event: nothing of lab was imported", id="without a word"),
        ],
    )
    def test_its_end_is_1_and_says_what_is_not_known(
        self, stdin: bytes, kinds: list[str], told: str, declared: Settings
    ) -> None:
        result = run(declared, "import", "--cluster", "lab", "-", "-o", "json", stdin=stdin)
        assert result.returncode == 1
        assert json.loads(result.stdout)["endedWatches"] == [{"source": "stdin", "kinds": kinds}]
        (said,) = [each for each in result.stderr.decode().splitlines() if told in each]
        assert "evictions of lab go on by what was known last" in said
        assert len(inputs(declared)) == len(kinds)

    def test_a_finished_recording_of_kubectl_on_stdin_is_0(self, declared: Settings, tmp_path: Path) -> None:
        recording = tmp_path / "r"
        recording.write_bytes(kubectl_line(node()))
        with (
            recording.open("rb") as file,
            started(declared, "import", "--cluster", "lab", "-", "-o", "json", stdin=file.fileno()) as process,
        ):
            stdout, _ = process.communicate(timeout=60)
        assert process.returncode == 0
        assert (json.loads(stdout)["nodes"], json.loads(stdout)["endedWatches"]) == (1, [])

    def test_a_recording_with_times_through_a_pipe_is_0(self, declared: Settings) -> None:
        result = run(declared, "import", "-", "-o", "json", stdin=line(node(), START))
        assert (result.returncode, json.loads(result.stdout)["endedWatches"]) == (0, [])


class TestWrongUse:
    @pytest.mark.parametrize(
        ("arguments", "stdin", "told"),
        [
            pytest.param(["-"], kubectl_line(node()), "name it with --cluster", id="no-cluster"),
            pytest.param(["-", "--cluster", "a/b"], b"", "cannot be the name of a cluster", id="bad-cluster"),
            pytest.param(["-", "--pace", "soon"], b"", "is not a pace", id="bad-pace"),
            pytest.param(["/nowhere/at/all"], b"", "cannot open /nowhere/at/all", id="no-file"),
            pytest.param([], b"", "Missing argument", id="no-argument"),
        ],
    )
    def test_is_2_and_sends_nothing(self, arguments: list[str], stdin: bytes, told: str, declared: Settings) -> None:
        result = run(declared, "import", *arguments, stdin=stdin)
        assert result.returncode == 2
        assert told in result.stderr.decode()
        assert result.stdout == b""
        assert inputs(declared) == []


def test_missing_topics_are_one_line_and_1(settings: Settings) -> None:
    result = run(settings, "import", "-", stdin=line(node(), START))
    assert result.returncode == 1
    assert result.stderr.decode().count("\n") == 1
    assert f"{settings.nodes_topic} is missing" in result.stderr.decode()
    assert result.stdout == b""


def test_nobody_there_is_one_line_and_1() -> None:
    (port,) = free_ports(1)
    settings = Settings(bootstrap_servers=f"127.0.0.1:{port}")
    result = run(settings, "-s", "admin_timeout_seconds=1", "import", "-", stdin=line(node(), START))
    assert result.returncode == 1
    assert result.stderr.decode().startswith(f"evictstream: no Kafka answered at 127.0.0.1:{port}")
    assert result.stderr.decode().count("\n") == 1


class TestStopped:
    @pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
    def test_while_it_waits_for_the_next_turn(
        self, number: signal.Signals, code: int, declared: Settings, tmp_path: Path
    ) -> None:
        recording = tmp_path / "r"
        recording.write_bytes(line(node("a"), START) + line(node("b"), FAR))
        with started(declared, "import", str(recording), "-o", "json") as process:
            wait_until(lambda: len(inputs(declared)) == 1)
            process.send_signal(number)
            stdout, stderr = process.communicate(timeout=30)
        assert process.returncode == code
        assert b"Traceback" not in stderr
        assert (json.loads(stdout)["nodes"], json.loads(stdout)["isComplete"]) == (1, False)
        assert set(objects_of(declared)) == {"a"}

    def test_while_it_waits_for_input(self, declared: Settings) -> None:
        with started(declared, "import", "--cluster", "lab", "-", "-o", "json") as process:
            assert process.stdin is not None
            process.stdin.write(kubectl_line(node("a")))
            process.stdin.flush()
            wait_until(lambda: len(inputs(declared)) == 1)  # so a live watch can be piped in, too
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=30) == 143
            assert process.stdout is not None
            assert json.loads(process.stdout.read())["nodes"] == 1


def test_progress_on_a_terminal(declared: Settings) -> None:
    ours, theirs = pty.openpty()
    try:
        with started(declared, "import", "--restamp", "-", stderr=theirs) as process:
            os.close(theirs)
            stdout, _ = process.communicate(line(node("a"), START) + line(node("b"), LATER), timeout=30)
        shown = read_terminal(ours)
    finally:
        os.close(ours)
    assert process.returncode == 0
    assert b"importing" in shown
    assert b"1 events, recorded until 2026-11-21T10:00:00.000000Z" in shown
    assert b"importing" not in stdout


def test_a_cluster_that_is_fed_is_refused_unless_asked_for(declared: Settings, tmp_path: Path) -> None:
    with open_publisher(declared, also=[declared.feeds_topic]) as publisher:
        state = FeedState(cluster_uid="uid", epoch=0, resource_version=1)
        publisher.send(declared.feeds_topic, b"lab", msgspec.json.encode(state), partition=0)
        publisher.flush()
    recording = tmp_path / "r"
    recording.write_bytes(line(node(), START))
    result = run(declared, "import", "--restamp", str(recording))
    assert (result.returncode, result.stdout) == (1, b"")
    assert b"lab is a cluster that a feed follows" in result.stderr
    assert inputs(declared) == []
    assert run(declared, "import", "--restamp", "--cluster", "lab-recorded", str(recording)).returncode == 0
    assert run(declared, "import", "--restamp", "--into-fed-cluster", str(recording)).returncode == 0
    assert {record.key for _, record in inputs(declared)} == {b"lab", b"lab-recorded"}
