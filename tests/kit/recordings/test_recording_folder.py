"""Recordings on disk: what went in comes out, in order of time, and damage is said with its place."""

from __future__ import annotations

import gzip
import json
import os
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evictstream.kit.recordings.record import RecordedRecord, Role
from evictstream.kit.recordings.recording_folder import DEEPEST_LEVELS, RecordingWriter, read_folder, read_manifest
from evictstream.streams.errors import EvictstreamError, RecordingError, WrongUseError
from tests.harness.examples import examples

ROLES: tuple[Role, ...] = ("nodes", "pods", "results")
BYTES = (
    st.none() | st.binary(max_size=20) | st.sampled_from([b"null", b'{"a": 1}', b'{"a":"\\n"}', b"1\n", b" 1", b"\xff"])
)


def record(offset: int, timestamp: int = 1_000, *, topic: Role = "pods", partition: int = 0) -> RecordedRecord:
    return RecordedRecord(
        topic=topic, partition=partition, offset=offset, timestamp=timestamp, key=b"c", value=b'{"n":%d}' % offset
    )


def written(folder: Path, records: list[RecordedRecord]) -> Path:
    with RecordingWriter(folder, partitions=4) as writer:
        for one in records:
            writer.write(one)
    return folder


@given(
    data=st.lists(st.tuples(st.sampled_from(ROLES), st.integers(0, 3), st.integers(0, 50), BYTES, BYTES), max_size=30)
)
@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_any_bytes_come_back_as_they_were(
    data: list[tuple[Role, int, int, bytes | None, bytes | None]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    records = [
        RecordedRecord(topic=topic, partition=partition, offset=number, timestamp=timestamp, key=key, value=value)
        for number, (topic, partition, timestamp, key, value) in enumerate(data)
    ]
    found = list(read_folder(written(tmp_path_factory.mktemp("recording"), records)))

    def of(place: tuple[Role, int], some: list[RecordedRecord]) -> list[RecordedRecord]:
        return [one for one in some if (one.topic, one.partition) == place]

    for place in {(one.topic, one.partition) for one in records}:
        assert of(place, found) == of(place, records)
    assert len(found) == len(records)


def test_partitions_are_joined_by_time(tmp_path: Path) -> None:
    records = [record(0, 30), record(1, 20), record(2, 50), record(0, 10, topic="nodes"), record(0, 40, partition=1)]
    found = read_folder(written(tmp_path / "r", records))
    assert [(one.topic, one.partition, one.timestamp) for one in found] == [
        ("nodes", 0, 10),
        ("pods", 0, 30),
        ("pods", 0, 20),
        ("pods", 1, 40),
        ("pods", 0, 50),
    ]


def test_the_manifest_counts_what_is_odd(tmp_path: Path) -> None:
    manifest = read_manifest(written(tmp_path / "r", [record(3, 10), record(4, 20), record(9, 15)]))
    assert manifest is not None
    (file,) = manifest.files.values()
    assert (file.records, file.first_offset, file.last_offset, file.missing, file.set_back) == (3, 3, 9, 4, 1)
    assert (manifest.partitions, manifest.clusters, manifest.records) == (4, {"c": 3}, 3)


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-20])


def with_nonsense(file: Path) -> None:
    lines = gzip.decompress(file.read_bytes()).splitlines(keepends=True)
    file.write_bytes(gzip.compress(b"".join([*lines[:900], b"nonsense\n", *lines[900:]])))


def shortened(file: Path) -> None:
    lines = gzip.decompress(file.read_bytes()).splitlines(keepends=True)
    file.write_bytes(gzip.compress(b"".join(lines[:-1])))


def overwritten(file: Path) -> None:
    file.write_bytes(b"x" * 100)


@pytest.mark.parametrize(
    ("damage", "kept", "said"),
    [
        pytest.param(cut, 900, "end-of-stream", id="cut"),
        pytest.param(with_nonsense, 900, "line 900", id="a line that is none"),
        pytest.param(shortened, 999, "1000 records were recorded", id="a line is missing"),
        pytest.param(overwritten, 0, "line 0", id="another file"),
    ],
)
def test_damage_is_said_behind_what_could_be_read(
    damage: Callable[[Path], None], kept: int, said: str, tmp_path: Path
) -> None:
    folder = written(tmp_path / "r", [record(number, number) for number in range(1_000)])
    damage(next(folder.glob("pods-*")))
    found: list[RecordedRecord] = []
    with pytest.raises(RecordingError, match=said) as error:
        found.extend(read_folder(folder))
    assert error.value.line >= kept
    assert len(found) >= kept


def test_a_recording_that_was_cut_is_read_to_its_end(tmp_path: Path) -> None:
    folder = written(tmp_path / "r", [record(0), record(1)])
    (folder / "manifest.json").unlink()
    assert [one.offset for one in read_folder(folder)] == [0, 1]


def no_recording(folder: Path) -> None:
    folder.mkdir()


def of_a_later_version(folder: Path) -> None:
    manifest = json.loads((written(folder, [record(0)]) / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest | {"format": 4}))


def with_a_broken_manifest(folder: Path) -> None:
    written(folder, [record(0)])
    (folder / "manifest.json").write_text("{")


@pytest.mark.parametrize("make", [no_recording, of_a_later_version, with_a_broken_manifest])
def test_what_is_no_recording_is_wrong_use(make: Callable[[Path], None], tmp_path: Path) -> None:
    make(tmp_path / "r")
    with pytest.raises(WrongUseError):
        list(read_folder(tmp_path / "r"))


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(EvictstreamError, match="not empty"):
        RecordingWriter(tmp_path, partitions=1)
    assert [one.name for one in tmp_path.iterdir()] == ["mine"]


@pytest.mark.slow
def test_an_error_before_the_first_record_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ConnectionError), RecordingWriter(tmp_path, partitions=1):
        raise ConnectionError
    assert list(tmp_path.iterdir()) == []


def test_reading_holds_little_at_once(tmp_path: Path) -> None:
    def many() -> Iterator[RecordedRecord]:
        for number in range(100_000):
            yield record(number // 4, number, partition=number % 4)

    with RecordingWriter(tmp_path / "r", partitions=4) as writer:
        for one in many():
            writer.write(one)
    tracemalloc.start()
    count = sum(1 for _ in read_folder(tmp_path / "r"))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 100_000
    assert peak < 4_000_000


@pytest.mark.parametrize("levels", [400, 501, 900, 987, 1_500, 9_995])
def test_json_of_any_depth_comes_back_as_it_was(levels: int, tmp_path: Path) -> None:
    """The line of a record has a level more than its value, and another version of Python may read it."""
    value = b'{"f":' * levels + b'"[{"' + b"}" * levels
    deep = msgspec.structs.replace(record(0), value=value)
    folder = written(tmp_path / "r", [deep, record(1)])
    assert list(read_folder(folder)) == [deep, record(1)]
    line = gzip.decompress(next(folder.glob("*.gz")).read_bytes()).splitlines()[0]
    assert (b"value64" in line) is (levels > DEEPEST_LEVELS)


def test_a_line_that_is_too_deep_is_damage(tmp_path: Path) -> None:
    folder = written(tmp_path / "r", [record(0)])
    file = next(folder.glob("*.gz"))
    file.write_bytes(gzip.compress(b'{"offset":0,"timestamp":1,"value":' + b"[" * 9_995 + b"]" * 9_995 + b"}\n"))
    with pytest.raises(RecordingError):
        list(read_folder(folder))


def _naming(folder: Path, name: str) -> Path:
    """A recording whose manifest calls its file by another name."""
    written(folder, [record(0)])
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest |= {"files": {name: manifest["files"]["pods-00000.jsonl.gz"]}, "sha256": ""}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


@pytest.mark.parametrize(
    "name",
    [
        "../other/pods-00000.jsonl.gz",
        "/etc/passwd",
        "pods-00001.jsonl.gz",
        "nodes-00000.jsonl.gz",
        "pods-00000.jsonl",
        "",
    ],
)
def test_a_manifest_names_only_files_of_its_folder(name: str, tmp_path: Path) -> None:
    written(tmp_path / "other", [record(0)])
    with pytest.raises(RecordingError, match="is not the file of partition 0 of pods"):
        list(read_folder(_naming(tmp_path / "evil", name)))


@pytest.mark.parametrize("is_cut", [False, True], ids=["with a manifest", "without"])
@pytest.mark.parametrize("what", ["link", "pipe", "folder"])
def test_only_regular_files_are_read(what: str, is_cut: bool, tmp_path: Path) -> None:  # noqa: FBT001
    file = written(tmp_path / "evil", [record(0)]) / "pods-00000.jsonl.gz"
    kept = file.rename(tmp_path / file.name)
    match what:
        case "link":
            file.symlink_to(kept)
        case "pipe":
            os.mkfifo(file)
        case _:
            file.mkdir()
    if is_cut:
        (file.parent / "manifest.json").unlink()
    with pytest.raises(RecordingError, match=r"it is a link|no regular file"):
        list(read_folder(file.parent))


def test_a_manifest_that_is_a_link_is_refused(tmp_path: Path) -> None:
    manifest = written(tmp_path / "evil", [record(0)]) / "manifest.json"
    manifest.symlink_to(manifest.rename(tmp_path / "manifest.json"))
    with pytest.raises(WrongUseError, match="it is a link"):
        list(read_folder(manifest.parent))
