"""`evictstream replay` and `explain` on files: what they print, write and refuse."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from evictstream.streams.settings import Settings
from tests.streams.cli.running import PATIENCE_SECONDS, ROOT, run, started, wait_until

INCIDENT = "examples/incidents/manual-taints-no-evictor/events.jsonl.gz"
NOWHERE = Settings.model_validate({"bootstrap_servers": "127.0.0.1:1", "partitions": 3})
EDITED = "lab/addtol.20-seconds-to-6-n-004-0"


def replayed(*arguments: str) -> dict[str, object]:
    result = run(NOWHERE, *arguments, "-o", "json")
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert isinstance(found, dict)
    return found


def test_it_needs_no_kafka_and_counts() -> None:
    found = replayed("replay", INCIDENT)
    counts = {name: found[name] for name in ("records", "evictions", "issued", "deadLetters", "clusters", "unreadable")}
    assert counts == {
        "records": 374,
        "evictions": 124,
        "issued": 80,
        "deadLetters": 0,
        "clusters": ["lab"],
        "unreadable": 0,
    }


def test_upstream_would_have_done_otherwise() -> None:
    found = replayed("replay", INCIDENT, "--against", "upstream", "--run-on", "60")
    differences = found["differences"]
    assert isinstance(differences, list)
    assert (found["same"], len(differences)) == (64, 19)
    assert {one["row"] for one in differences} == {4, 5, 6, 9, 37}
    (edited,) = [one for one in differences if one["pod"] == EDITED]
    assert (edited["kind"], round(edited["seconds"]), edited["row"]) == ("Earlier", -14, 5)


def test_the_same_recording_gives_the_same_bytes(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        assert run(NOWHERE, "replay", INCIDENT, "--to", str(tmp_path / folder)).returncode == 0
    one, two = ({file.name: file.read_bytes() for file in (tmp_path / name).iterdir()} for name in ("one", "two"))
    assert one == two
    assert set(one) == {"commands.jsonl", "decisions.jsonl", "dead-letters.jsonl"}
    assert len(one["commands.jsonl"].splitlines()) > 100


def test_another_setting_is_compared_with_the_first_run(tmp_path: Path) -> None:
    commands = tmp_path / "first" / "commands.jsonl"
    assert run(NOWHERE, "replay", INCIDENT, "--to", str(commands.parent)).returncode == 0
    same = replayed("replay", INCIDENT, "--against", str(commands))
    assert (same["same"], same["differences"]) == (80, [])
    one = json.loads(commands.read_text().splitlines()[0])
    moved = {**one, "action": "Evict", "attempt": 1, "podUid": "another", "evictionId": "e" * 32}
    commands.write_text(commands.read_text() + json.dumps(moved) + "\n")
    differences = replayed("replay", INCIDENT, "--against", str(commands))["differences"]
    assert isinstance(differences, list)
    assert [(one["kind"], one["reason"]) for one in differences] == [("OnlyThere", "here the pod never had to leave")]


def test_other_tolerations_are_compared_with_the_recorded_ones(tmp_path: Path) -> None:
    assert run(NOWHERE, "replay", INCIDENT, "--to", str(tmp_path)).returncode == 0
    against = ("--against", str(tmp_path / "commands.jsonl"))
    differences = replayed("replay", INCIDENT, "--toleration-seconds", "lab/k1=1", *against)["differences"]
    assert isinstance(differences, list)
    assert {one["kind"] for one in differences} == {"Earlier", "OnlyHere"}
    assert {one["reason"].partition(":")[0] for one in differences} == {
        "another toleration time",
        "there it was cancelled",
        "the toleration window starts at another time",
    }


def test_a_table_for_people() -> None:
    result = run(NOWHERE, "replay", INCIDENT, "--against", "upstream", "--run-on", "60")
    assert result.returncode == 0
    text = result.stdout.decode()
    assert "only there" in text
    assert "its node was deleted, but the timer kept running" in text
    assert EDITED in text


@pytest.mark.parametrize(
    ("lines", "arguments", "code", "said"),
    [
        pytest.param(b"nonsense\n", (), 1, b"line 1", id="a line that is none"),
        pytest.param(
            b'{"type":"ADDED","object":{"kind":"Node","metadata":{"name":"n"}}}\n',
            ("--cluster", "c"),
            2,
            b"no time was recorded",
            id="no times",
        ),
        pytest.param(
            b'{"type":"ADDED","observedAt":"2026-11-21T10:00:00Z","object":{"kind":"Node","metadata":{"name":"n"}}}\n',
            (),
            2,
            b"does not name its cluster",
            id="no cluster",
        ),
        pytest.param(b"", ("--toleration-seconds", "k"), 2, b"KEY=SECONDS", id="no seconds"),
        pytest.param(b"", ("--against", "nowhere"), 2, b"is not a file", id="nothing to compare with"),
    ],
)
def test_what_cannot_be_replayed(
    lines: bytes, arguments: tuple[str, ...], code: int, said: bytes, tmp_path: Path
) -> None:
    file = tmp_path / "r.jsonl"
    file.write_bytes(lines)
    result = run(NOWHERE, "replay", str(file), *arguments)
    assert (result.returncode, said in result.stderr) == (code, True), result.stderr


@pytest.mark.parametrize("arguments", [("replay",), ("explain", EDITED), ("what-if", "--cordon", "--nodes", "n-004")])
def test_a_pipe_gives_what_its_file_gives(arguments: tuple[str, ...]) -> None:
    data = (ROOT / INCIDENT).read_bytes()
    name, *options = arguments
    by_name = run(NOWHERE, name, *options[: name == "explain"], INCIDENT, *options[name == "explain" :])
    pipe = run(NOWHERE, name, *options[: name == "explain"], "/dev/stdin", *options[name == "explain" :], stdin=data)
    assert (pipe.returncode, pipe.stdout, pipe.stderr) == (by_name.returncode, by_name.stdout, by_name.stderr)
    assert by_name.stdout


def test_standard_input_may_be_a_file() -> None:
    with (ROOT / INCIDENT).open("rb") as file, started(NOWHERE, "replay", "-", stdin=file.fileno()) as process:
        out, _ = process.communicate(timeout=PATIENCE_SECONDS)
    assert out == run(NOWHERE, "replay", INCIDENT).stdout


@pytest.mark.parametrize("signal_", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_wait_for_a_pipe(signal_: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "kept"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    os.mkfifo(tmp_path / "fifo")
    with started(NOWHERE, "replay", "--cluster", "lab", str(tmp_path / "fifo")) as process:
        wait_until(lambda: any(folder.iterdir()))
        process.send_signal(signal_)
        assert process.wait(PATIENCE_SECONDS) == 128 + signal_
    assert not any(folder.iterdir())


def test_files_of_an_earlier_run_are_kept(tmp_path: Path) -> None:
    (tmp_path / "commands.jsonl").write_text("mine")
    result = run(NOWHERE, "replay", INCIDENT, "--to", str(tmp_path))
    assert result.returncode == 2
    assert [file.name for file in tmp_path.iterdir()] == ["commands.jsonl"]


def test_policies_of_a_file_stand_in_a_replay(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text("name: calm\nsettle: 5s\n---\nname: watch\nobserve: true\nfor: {nodes: [n-001]}\n")
    found = replayed("replay", INCIDENT, "--policy", str(path), "--against", "upstream")
    plain = replayed("replay", INCIDENT)
    assert (plain["held"], found["held"]) == ({}, {"policy/watch": 6})
    differences = found["differences"]
    assert isinstance(differences, list)
    reasons = {(one["kind"], one["reason"]) for one in differences}
    assert {("Later", "it waited for policy calm (settle)"), ("OnlyThere", "it waits at the end")} <= reasons
    assert b"held at the end, policy/watch" in run(NOWHERE, "replay", INCIDENT, "--policy", str(path)).stdout
    assert run(NOWHERE, "replay", INCIDENT, "--policy", str(tmp_path / "none")).returncode == 2


def test_explain_names_what_holds(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text("name: watch\nobserve: true\n")
    text = run(NOWHERE, "explain", EDITED, INCIDENT, "--policy", str(path)).stdout.decode()
    assert "The policy watch (revision 1, observe) holds it until somebody changes the policy." in text
    pods = replayed("explain", EDITED, INCIDENT, "--policy", str(path))["pods"]
    assert isinstance(pods, list)
    assert [one["held"]["by"] for one in pods] == ["policy/watch/1/observe"]
    refused = run(NOWHERE, "explain", EDITED, "--policy", str(path))
    assert (refused.returncode, b"--policy needs a recording" in refused.stderr) == (2, True)
