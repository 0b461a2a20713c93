"""How long commands read: progress on a terminal only, an end at a signal, a range of time that makes sense."""

from __future__ import annotations

import itertools
import json
import os
import pty
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from evictstream.kit.cli.replay_input import show_check
from evictstream.kit.recordings.record import RecordedRecord
from evictstream.kit.recordings.recording_folder import RecordingWriter
from evictstream.kit.replay.sources import RecordedFolder
from evictstream.streams.cli.output import OutputFormat
from evictstream.streams.cli.stop_signals import StopSignals
from evictstream.streams.settings import Settings
from tests.kit.report.fleet import outage
from tests.streams.cli.running import read_terminal, run, started

NOWHERE = Settings.model_validate({"bootstrap_servers": "127.0.0.1:1", "partitions": 1})
POD = "shop/p-0-0"


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("progress") / "outage"
    with RecordingWriter(folder, partitions=1) as writer:
        for record in outage(nodes=3, pods=2):
            writer.write(record)
    return folder


@pytest.mark.parametrize(
    ("arguments", "doing"),
    [
        pytest.param(("replay",), b"replaying: ", id="replay"),
        pytest.param(("replay", "--check"), b"checking: ", id="check"),
        pytest.param(("explain", POD), b"replaying: ", id="explain"),
        pytest.param(("what-if", "--cordon", "--nodes", "n-0"), b"reading: ", id="what-if"),
    ],
)
def test_progress_is_only_for_terminals(recording: Path, arguments: tuple[str, ...], doing: bytes) -> None:
    command = (*arguments, str(recording), "-o", "json")
    ours, theirs = pty.openpty()
    try:
        with started(NOWHERE, *command, stderr=theirs) as process:
            os.close(theirs)
            stdout, _ = process.communicate(timeout=60)
        shown = read_terminal(ours)
    finally:
        os.close(ours)
    assert (process.returncode, doing in shown) == (0, True), shown
    assert json.loads(stdout)
    elsewhere = run(NOWHERE, *command)
    assert (elsewhere.returncode, elsewhere.stdout, elsewhere.stderr) == (0, stdout, b"")


def test_a_signal_ends_a_check(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class Endless(RecordedFolder):
        def read(self) -> Iterator[RecordedRecord]:
            for number, record in enumerate(itertools.cycle(outage(nodes=1, pods=1))):
                if number == 5:
                    os.kill(os.getpid(), signal.SIGTERM)
                yield record

    with StopSignals() as stop_signals:
        code = show_check(Endless(recording, partitions=1), OutputFormat.JSON, stop_signals, None)
    assert (code, json.loads(capsys.readouterr().out)["records"]) == (143, 5)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(("--since", "now"), b"the range must end in the past", id="begins now"),
        pytest.param(("--until", "beginning"), b"the range must end in the past", id="ends at the beginning"),
        pytest.param(("--until", "soon"), b"--until soon is not a time", id="no instant"),
    ],
)
@pytest.mark.parametrize("command", [("replay",), ("record", "nowhere")])
def test_a_wrong_range_is_refused(command: tuple[str, ...], arguments: tuple[str, ...], said: bytes) -> None:
    result = run(NOWHERE, *command, *arguments)
    assert (result.returncode, said in result.stderr) == (2, True), result.stderr
