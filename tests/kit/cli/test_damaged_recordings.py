"""Recordings that were damaged anywhere: the same result, or an error in one line with its exit code; no traceback."""

from __future__ import annotations

import contextlib
import gzip
import io
import random
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evictstream.kit.recordings.record import RecordedRecord
from evictstream.kit.recordings.recording_folder import MANIFEST, RecordingWriter
from evictstream.streams.cli.main import run
from evictstream.streams.partitioner import partition_of
from tests.harness.examples import FEWEST
from tests.kit.report.fleet import FIRST_MS, outage

PARTITIONS = 3
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("replay",),
    ("replay", "--check"),
    ("explain", "shop/p-0-1"),
    ("what-if", "--cordon", "--nodes", "n-0"),
)


class Outcome(NamedTuple):
    code: int
    printed: str
    told: str


def outcome(folder: Path, command: tuple[str, ...]) -> Outcome:
    """Run a command line over a recording; returns its exit code, what it prints, and its errors."""
    printed, told = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(told):
        code = run(["--set", f"partitions={PARTITIONS}", *command, str(folder), "-o", "json"])
    return Outcome(int(code), printed.getvalue(), told.getvalue())


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("damaged") / "whole"
    offsets = [0] * PARTITIONS
    with RecordingWriter(folder, partitions=PARTITIONS) as writer:
        for record in outage(nodes=4, pods=4):
            place = partition_of(record.key or b"", PARTITIONS)
            offsets[place] += 1
            writer.write(msgspec.structs.replace(record, partition=place, offset=offsets[place]))
        writer.write(
            RecordedRecord(topic="results", partition=0, offset=7, timestamp=FIRST_MS, key=b"lab", value=b"not JSON")
        )
    return folder


@pytest.fixture(scope="module")
def whole(recording: Path) -> dict[tuple[str, ...], Outcome]:
    found = {command: outcome(recording, command) for command in COMMANDS}
    assert all(one.printed for one in found.values()), found
    return found


def flip_a_bit(file: Path, chance: random.Random) -> None:
    content = bytearray(file.read_bytes())
    content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    file.write_bytes(content)


def cut(file: Path, chance: random.Random) -> None:
    content = file.read_bytes()
    file.write_bytes(content[: chance.randrange(len(content))])


def repeat_bytes(file: Path, chance: random.Random) -> None:
    content = file.read_bytes()
    begin, end = sorted(chance.randrange(len(content)) for _ in range(2))
    file.write_bytes(content[: end + 1] + content[begin:])


def drop_bytes(file: Path, chance: random.Random) -> None:
    content = file.read_bytes()
    begin, end = sorted(chance.randrange(len(content)) for _ in range(2))
    file.write_bytes(content[:begin] + content[end + 1 :])


def delete(file: Path, _: random.Random) -> None:
    file.unlink()


def put_a_folder_there(file: Path, _: random.Random) -> None:
    file.unlink()
    file.mkdir()


def put_another_file_there(file: Path, chance: random.Random) -> None:
    file.write_bytes(chance.choice(sorted(file.parent.iterdir())).read_bytes())


def add_a_copy(file: Path, chance: random.Random) -> None:
    names = (
        "pods-00009.jsonl.gz",
        "pods-00000 copy.jsonl.gz",
        "pods-abcde.jsonl.gz",
        "other-00000.jsonl.gz",
        "notes.txt",
    )
    shutil.copyfile(file, file.parent / chance.choice(names))


def edit_lines(file: Path, chance: random.Random) -> None:
    """Change lines within a file that is a proper one afterwards."""
    is_packed = file.name != MANIFEST
    lines = (gzip.decompress(file.read_bytes()) if is_packed else file.read_bytes()).splitlines(keepends=True)
    one, other = chance.randrange(len(lines)), chance.randrange(len(lines))
    match chance.randrange(5):
        case 0:
            lines.insert(one, lines[other])
        case 1:
            del lines[one]
        case 2:
            lines[one], lines[other] = lines[other], lines[one]
        case 3:
            digits = [place for place, byte in enumerate(lines[one]) if byte in b"0123456789"]
            if digits:
                place = chance.choice(digits)
                number = chance.choice((b"0", b"7", b"-1", b"99999999999999999999", b"1e9", b"null"))
                lines[one] = lines[one][:place] + number + lines[one][place + 1 :]
        case _:
            place = chance.randrange(len(lines[one]))
            lines[one] = lines[one][:place] + bytes([chance.randrange(32, 127)]) + lines[one][place + 1 :]
    content = b"".join(lines)
    file.write_bytes(gzip.compress(content) if is_packed else content)


DAMAGES: tuple[Callable[[Path, random.Random], None], ...] = (
    flip_a_bit, cut, repeat_bytes, drop_bytes, delete, put_a_folder_there, put_another_file_there, add_a_copy,
    edit_lines,
)  # fmt: skip


@pytest.mark.parametrize("count", [FEWEST, pytest.param(50, marks=pytest.mark.slow)])
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_recording_gives_the_same_or_an_error(
    recording: Path,
    whole: dict[tuple[str, ...], Outcome],
    damage: Callable[[Path, random.Random], None],
    count: int,
) -> None:
    @settings(max_examples=count, deadline=None)
    @given(chance=st.randoms(use_true_random=False), command=st.sampled_from(COMMANDS))
    def each(chance: random.Random, command: tuple[str, ...]) -> None:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(shutil.copytree(recording, Path(name) / "damaged"))
            damage(chance.choice(sorted(folder.iterdir())), chance)
            found = outcome(folder, command)
        if found != whole[command]:
            assert found.code in {1, 2}, found.told
            assert all(line.startswith(("evictstream: ", '{"error": "')) for line in found.told.splitlines() if line)

    each()
