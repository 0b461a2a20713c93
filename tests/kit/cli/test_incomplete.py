"""What is missing in an answer is said once, and makes the exit code 1 unless it is allowed by its name."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

import pytest

from evictstream.kit.cli.incomplete import tell_shortfalls
from evictstream.kit.recordings.entries import Flaw
from evictstream.kit.recordings.record import RecordedRecord, Role
from evictstream.kit.recordings.recording_folder import RecordingWriter
from evictstream.kit.recordings.shortfalls import MOST_PROBLEMS, LeftOut, Shortfall, ShortfallKind
from evictstream.streams.cli.main import run
from tests.kit.recordings.audit_samples import event, lines
from tests.streams.feed.samples import Object, line, node, pod

AT = "2026-11-21T10:00:0{}Z"
NODE, POD = line(node(), AT.format(0)), line(pod(), AT.format(0))


def outcome(path: Path, data: bytes, command: str, *options: str) -> int:
    path.write_bytes(data)
    return answered(path, command, *options)


def answered(path: Path, command: str, *options: str) -> int:
    asked = {
        "replay": ["replay", str(path)],
        "--check": ["replay", str(path), "--check"],
        "explain": ["explain", "shop/p-1", str(path)],
        "what-if": ["what-if", str(path), "--cordon", "--nodes", "n-1"],
    }[command]
    return run([*asked, "-o", "json", *options])


COMMANDS = ["replay", "--check", "explain", "what-if"]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_whole_recording_needs_no_word(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert outcome(tmp_path / "f", NODE + POD, command) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("data", "gap", "said"),
    [
        pytest.param(
            NODE + POD + b"x {}\n" * 384, ShortfallKind.UNREADABLE, "384 lines cannot be read, ", id="unreadable"
        ),
        pytest.param(
            NODE + POD + line(pod("p-2", "n-2"), AT.format(1)),
            ShortfallKind.NODES,
            "pods of lab are bound to 1 node that the recording does not have: n-2",
            id="nodes",
        ),
        pytest.param(
            line(node(), AT.format(0), "MODIFIED") + POD,
            ShortfallKind.LISTING,
            "no listing of lab: the earlier state of 1 node and 0 pods is missing",
            id="listing",
        ),
        pytest.param(
            NODE + POD + lines(event(1, "patch", level="Metadata")),
            ShortfallKind.OBJECTS,
            "1 changes of nodes",
            id="objects",
        ),
    ],
)
def test_what_is_missing_is_said_unless_allowed(
    data: bytes, gap: ShortfallKind, said: str, command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert outcome(tmp_path / "f", data, command, "--cluster", "lab") == 1
    *sentences, last = capsys.readouterr().err.splitlines()
    assert [one for one in sentences if said in one] == sentences[:1]
    assert f"--allow {gap} accepts this" in last
    assert answered(tmp_path / "f", command, "--cluster", "lab", "--allow", gap) == 0
    assert [one for one in capsys.readouterr().err.splitlines() if said in one]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_recording_of_topics_from_after_the_listing(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    beat = {"cluster": "lab", "type": "HEARTBEAT", "observedAt": AT.format(0), "listedAt": "2026-11-20T00:00:00Z"}
    changes: list[tuple[Role, Object]] = [
        ("nodes", beat),
        ("nodes", {"type": "MODIFIED", "object": node()}),
        ("pods", {"type": "MODIFIED", "object": pod()}),
    ]
    with RecordingWriter(tmp_path / "r", partitions=1) as writer:
        for offset, (topic, value) in enumerate(changes):
            found = {"cluster": "lab", "observedAt": AT.format(0)} | value
            writer.write(
                RecordedRecord(
                    topic=topic,
                    partition=0,
                    offset=offset,
                    timestamp=1_795_255_200_000 + offset,
                    key=b"lab",
                    value=json.dumps(found).encode(),
                )
            )
    assert answered(tmp_path / "r", command) == 1
    assert "no listing of lab: the earlier state of 1 node and 1 pod is missing" in capsys.readouterr().err
    assert answered(tmp_path / "r", command, "--allow", "listing") == 0


def test_without_a_reader_of_stderr_the_exit_code_still_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    missing = [Shortfall(ShortfallKind.LATE, 1, "1 comes too late"), Shortfall(ShortfallKind.NODES, 1, "1 node")]
    with os.fdopen(writing, "w", buffering=1) as nobody_reads:
        monkeypatch.setattr("sys.stderr", nobody_reads)
        codes = [tell_shortfalls(missing, allowed) for allowed in ([], [ShortfallKind.LATE], list(ShortfallKind))]
        with contextlib.suppress(BrokenPipeError):
            nobody_reads.flush()
        monkeypatch.undo()
        with contextlib.suppress(BrokenPipeError):
            nobody_reads.close()
    assert codes == [1, 1, 0]


def test_an_empty_file_is_no_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert outcome(tmp_path / "f", b"", "replay") == 1
    assert "1 of the files are empty" in capsys.readouterr().err


def test_problems_beyond_a_number_are_counted_together() -> None:
    left_out = LeftOut()
    for number in range(MOST_PROBLEMS + 30):
        left_out.take(Flaw("f", number, f"problem {number}", lines=2))
    found = list(left_out.shortfalls())
    assert len(found) == MOST_PROBLEMS + 1
    assert (left_out.unreadable, found[-1].amount) == (2 * (MOST_PROBLEMS + 30), 60)
