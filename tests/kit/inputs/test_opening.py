"""Files, pipes and named pipes: each is read once, and may be read again."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from evictstream.kit.inputs.opening import Input, kept, live
from evictstream.streams.errors import WrongUseError

HELD = b"what it holds"


def contents(found: Input) -> bytes:
    with found.open() as file:
        return file.read()


@pytest.fixture
def pipe() -> str:
    """Name a pipe that somebody has written into, as a process substitution does."""
    ours, theirs = os.pipe()
    os.write(theirs, HELD)
    os.close(theirs)
    return f"/dev/fd/{ours}"


def test_a_pipe_is_kept_to_be_read_again(pipe: str, tmp_path: Path) -> None:
    (found,) = kept([pipe, pipe], tmp_path)
    assert (found.source, found.is_live) == (pipe, False)
    assert [contents(found), contents(found)] == [HELD, HELD]


def test_a_named_pipe_is_waited_for_then_kept(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    name = tmp_path / "fifo"
    os.mkfifo(name)
    writer = threading.Thread(target=name.write_bytes, args=(HELD,))
    writer.start()
    (found,) = kept([str(name)], tmp_path / "kept")
    writer.join()
    assert [contents(found), contents(found)] == [HELD, HELD]


def test_a_file_is_read_where_it_is(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(HELD)
    (found,) = kept([str(tmp_path / "f")], tmp_path / "nowhere")
    assert found == Input(str(tmp_path / "f"), tmp_path / "f")


def test_live_pipes_are_opened_only_when_they_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    assert [one.is_live for one in live([str(tmp_path / "fifo"), str(tmp_path)])] == [True, False]


@pytest.mark.parametrize("name", ["nothing", "n\0thing"])
def test_what_is_not_there_is_said_at_once(name: str, tmp_path: Path) -> None:
    with pytest.raises(WrongUseError, match="cannot open"):
        live([str(tmp_path / name)])
