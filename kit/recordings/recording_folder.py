"""Recordings on disk: a folder with one file for each partition of a topic, and a manifest that says what they hold.

`pods-00003.jsonl.gz` holds the records of partition 3 of the topic for pods in the order of their offsets, one a line.
A value that is JSON stands in its line as it is, byte for byte; very deep JSON and all other bytes are base64.
`manifest.json` is written last: a folder without one was cut, and is read up to where it ends.
"""

from __future__ import annotations

import gzip
import hashlib
import heapq
import importlib.metadata
import itertools
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Annotated, Final, Self, TypeAlias, cast

import msgspec

from evictstream.kit.recordings.plain_files import open_plain
from evictstream.kit.recordings.record import STEERING_ROLES, RecordedRecord, Role
from evictstream.models.instants import FIRST_INSTANT_US, LAST_INSTANT_US
from evictstream.models.messages.envelope import DECODE_ERRORS
from evictstream.streams.errors import RecordingError, WrongUseError

_FORMAT: Final = 2
_STEERED_FORMAT: Final = 3
"""As format 2, and it has brakes or policies: a version that knows none would replay it without them."""

OLD_FORMAT: Final = 1
"""Its keys are `<cluster>/<node>`; `old_keys` makes keys of today of them. In format 2 a key is a cluster's name."""

MANIFEST: Final = "manifest.json"
LEVEL: Final = 5
"""Of gzip: 9 takes twice as long for a twentieth less."""

BLOCK_BYTES: Final = 256 * 1024
"""Of lines that are decoded at once, for each file: some forty files are open at a time."""

_LONGEST_LINE_BYTES: Final = 64 * 1024**2
"""More than any broker takes as a record, in base64."""

DEEPEST_LEVELS: Final = 500
"""Of JSON that stands in its line as it is. A line has a level more, and another Python may read it: 3.11 reads some
980 levels, where 3.13 reads 9,990."""

_TEXT: Final = re.compile(rb'"(?:[^"\\]|\\.)*"')
_NO_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))
_ABSENT: Final = msgspec.Raw(b"null")
_FILE_NAME: Final = re.compile(r"(nodes|pods|results|commands|decisions|brakes|policies)-(\d{5})\.jsonl\.gz")


class RecordedFile(msgspec.Struct, rename="camel", kw_only=True, forbid_unknown_fields=True):
    """What one file holds. Times are append times in milliseconds since 1970.

    Attributes:
        missing: offsets between the first and the last that no record has: compacted away, or markers of transactions.
        set_back: records with an earlier time than the previous one.
        sha256: of the file, hexadecimal.
    """

    topic: Role
    partition: int
    records: int = 0
    first_offset: int = -1
    last_offset: int = -1
    first_timestamp: int = -1
    last_timestamp: int = -1
    missing: int = 0
    set_back: int = 0
    sha256: str = ""


class Manifest(msgspec.Struct, rename="camel", kw_only=True, forbid_unknown_fields=True):
    """What a recording holds.

    Attributes:
        format: of the files, which names the form of their keys.
        version: of evictstream.
        partitions: of each topic.
        clusters: records by cluster, as keys name them.
        files: by name.
        sha256: of the manifest itself while this is empty, in its shortest form; empty: nobody has kept it.
    """

    format: int
    version: str
    partitions: int
    clusters: dict[str, int]
    files: dict[str, RecordedFile]
    sha256: str = ""

    @property
    def records(self) -> int:
        """In all files."""
        return sum(file.records for file in self.files.values())


# A replay lets time pass up to each record: one beyond all instants would keep it busy forever.
_Timestamp: TypeAlias = Annotated[int, msgspec.Meta(ge=FIRST_INSTANT_US // 1_000, le=LAST_INSTANT_US // 1_000)]


class _Line(msgspec.Struct, gc=False, omit_defaults=True):
    offset: int
    timestamp: _Timestamp
    key: str | None = None
    value: msgspec.Raw = _ABSENT
    key64: bytes | None = None
    value64: bytes | None = None


_encoder: Final = msgspec.json.Encoder()
_decoder: Final = msgspec.json.Decoder(_Line)
_any_decoder: Final = msgspec.json.Decoder()
_manifest_decoder: Final = msgspec.json.Decoder(Manifest)


class RecordingWriter:
    """Writes a recording. Use as a context manager: its manifest is written at the end, also after an error.

    If an error comes before the first record, the folder stays empty, and can be named again.
    """

    def __init__(self, folder: Path, *, partitions: int) -> None:
        """Take a folder, which is made if it is not there.

        Raises:
            WrongUseError: there is something in it, or it cannot be made.
        """
        try:
            folder.mkdir(parents=True, exist_ok=True)
            is_taken = any(folder.iterdir())
        except OSError as error:
            raise WrongUseError(f"{folder} cannot be written: {error.strerror}") from error
        if is_taken:
            raise WrongUseError(f"{folder} is not empty", next_step="name a folder that does not exist")
        self._folder = folder
        self._streams: dict[str, gzip.GzipFile] = {}
        self._opened = ExitStack()
        version = importlib.metadata.version("evictstream")
        self.manifest = Manifest(format=_FORMAT, version=version, partitions=partitions, clusters={}, files={})
        self._clusters: Counter[str] = Counter()

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def write(self, record: RecordedRecord) -> None:
        """Add the next record of its partition."""
        name = f"{record.topic}-{record.partition:05}.jsonl.gz"
        stream = self._streams.get(name)
        if stream is None:
            stream = self._streams[name] = self._opened.enter_context(gzip.GzipFile(self._folder / name, "wb", LEVEL))
            self.manifest.files[name] = RecordedFile(topic=record.topic, partition=record.partition)
        stream.write(_line(record))
        _count(self.manifest.files[name], record)
        if record.topic in STEERING_ROLES:
            self.manifest.format = _STEERED_FORMAT
        else:
            self._clusters[record.cluster] += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close all files, then say what they hold."""
        self._opened.close()
        if error is not None and not self.manifest.files:
            return
        self.manifest.clusters = dict(sorted(self._clusters.items()))
        self.manifest.files = dict(sorted(self.manifest.files.items()))
        for name, file in self.manifest.files.items():
            with (self._folder / name).open("rb") as stream:
                file.sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
        self.manifest.sha256 = _own_checksum(self.manifest)
        replacement = self._folder / f"{MANIFEST}.new"
        replacement.write_bytes(msgspec.json.format(_encoder.encode(self.manifest), indent=2) + b"\n")
        replacement.replace(self._folder / MANIFEST)


def _own_checksum(manifest: Manifest) -> str:
    return hashlib.sha256(_encoder.encode(msgspec.structs.replace(manifest, sha256=""))).hexdigest()


def _count(file: RecordedFile, record: RecordedRecord) -> None:
    if file.records:
        file.missing += record.offset - file.last_offset - 1
        file.set_back += record.timestamp < file.last_timestamp
    else:
        file.first_offset, file.first_timestamp = record.offset, record.timestamp
    file.records += 1
    file.last_offset, file.last_timestamp = record.offset, record.timestamp


def _line(record: RecordedRecord) -> bytes:
    line = _Line(record.offset, record.timestamp)
    key, value = record.key, record.value
    if key is not None:
        try:
            line.key = key.decode()
        except UnicodeDecodeError:
            line.key64 = key
    if value is not None:
        if _is_line_of_json(value):
            line.value = msgspec.Raw(value)
        else:
            line.value64 = value
    return _encoder.encode(line) + b"\n"


def _is_line_of_json(value: bytes) -> bool:
    """Tell whether a value may stand in a line as it is. `null` may not: it says that there is none."""
    if b"\n" in value or value == b"null" or value[:1] in b" \t\r" or value[-1:] in b" \t\r":
        return False
    try:
        _any_decoder.decode(value)
    except DECODE_ERRORS:
        return False
    return value.count(b"[") + value.count(b"{") <= DEEPEST_LEVELS or _levels(value) <= DEEPEST_LEVELS


def _levels(value: bytes) -> int:
    """Count how deep a value is nested, which is JSON."""
    brackets = _TEXT.sub(b"", value).translate(None, delete=_NO_BRACKETS)
    return max(itertools.accumulate(1 if one in b"[{" else -1 for one in brackets), default=0)


def read_manifest(folder: Path) -> Manifest | None:
    """Read what a recording holds; None if it was cut before that was written.

    Raises:
        RecordingError: it is not as it was written.
        WrongUseError: this version cannot read it.
    """
    try:
        with open_plain(folder / MANIFEST) as stream:
            manifest = _manifest_decoder.decode(stream.read())
    except FileNotFoundError:
        return None
    except (*DECODE_ERRORS, OSError) as error:
        raise WrongUseError(f"{folder / MANIFEST} cannot be read: {error}") from error
    if manifest.format not in {OLD_FORMAT, _FORMAT, _STEERED_FORMAT}:
        problem = f"{folder} has format {manifest.format}"
        raise WrongUseError(problem, next_step=f"read it with evictstream {manifest.version}")
    if manifest.sha256 and manifest.sha256 != _own_checksum(manifest):
        raise RecordingError(str(folder / MANIFEST), line=0, reason="its checksum differs")
    return manifest


def file_names(folder: Path) -> dict[str, tuple[Role, int]]:
    """Give topic and partition of the files of a recording, by their names; a folder may hold other files too."""
    matches = {one.name: _FILE_NAME.fullmatch(one.name) for one in folder.glob("*.jsonl.gz")}
    return {name: (cast("Role", match[1]), int(match[2])) for name, match in sorted(matches.items()) if match}


def read_folder(folder: Path) -> Iterator[RecordedRecord]:
    """Give all records by time, then topic and partition; those of one partition in the order of their offsets.

    Raises:
        RecordingError: a file is not as it was recorded. What stands before the damage has been given.
        WrongUseError: there is no recording.
    """
    manifest = read_manifest(folder)
    names = file_names(folder) if manifest is None else _names(folder, manifest)
    if manifest is None and not names:
        others = sorted(one.name for one in folder.glob("*.jsonl.gz"))
        next_step = f"name its file {folder / others[0]}" if others else "make one with `evictstream record`"
        raise WrongUseError(f"{folder} has no recording", next_step=next_step)
    with ExitStack() as stack:
        logs: list[Iterator[tuple[int, int, RecordedRecord]]] = []
        for name, (topic, partition) in names.items():
            read = _read_file(stack, folder / name, topic, partition)
            kept = read if manifest is None else _as_expected(folder / name, read, manifest.files[name])
            logs.append(_in_time(len(logs), kept))
        for _, _, record in heapq.merge(*logs):
            yield record


def _in_time(place: int, records: Iterator[RecordedRecord]) -> Iterator[tuple[int, int, RecordedRecord]]:
    """Lift times that went back, so that a partition keeps its order among the others. No two files have a place."""
    latest = 0
    for record in records:
        latest = max(latest, record.timestamp)
        yield latest, place, record


def _names(folder: Path, manifest: Manifest) -> dict[str, tuple[Role, int]]:
    names: dict[str, tuple[Role, int]] = {}
    for name, file in sorted(manifest.files.items()):
        match = _FILE_NAME.fullmatch(name)
        if match is None or (match[1], int(match[2])) != (file.topic, file.partition):
            reason = f"{name} is not the file of partition {file.partition} of {file.topic} in this folder"
            raise RecordingError(str(folder / MANIFEST), line=0, reason=reason)
        names[name] = (file.topic, file.partition)
    return names


def _read_file(stack: ExitStack, path: Path, topic: Role, partition: int) -> Iterator[RecordedRecord]:
    number = 0
    try:
        file = stack.enter_context(open_plain(path))
        for line in _lines(stack.enter_context(gzip.GzipFile(fileobj=file, mode="rb"))):
            yield _record(topic, partition, line)
            number += 1
    except (OSError, EOFError, zlib.error, ValueError, RecursionError) as error:  # msgspec's errors are ValueErrors
        raise RecordingError(str(path), line=number, reason=str(error) or "it is cut") from error


def _as_expected(path: Path, records: Iterator[RecordedRecord], expected: RecordedFile) -> Iterator[RecordedRecord]:
    """Give records that the manifest admits; at the end their count and the checksum of the file have to be its.

    A time outside the file's is refused before it is given, for a replay would let time pass up to it.
    """
    number = 0
    for record in records:
        if not expected.set_back and not expected.first_timestamp <= record.timestamp <= expected.last_timestamp:
            raise RecordingError(str(path), line=number, reason="its times differ from the manifest")
        yield record
        number += 1
    if number != expected.records:
        raise RecordingError(str(path), line=number, reason=f"{expected.records} records were recorded")
    with open_plain(path) as stream:
        if expected.sha256 and hashlib.file_digest(stream, "sha256").hexdigest() != expected.sha256:
            raise RecordingError(str(path), line=number, reason="its checksum differs")


def _lines(stream: gzip.GzipFile) -> Iterator[_Line]:
    """Decode whole blocks: line by line, to read and to decode would take three times as long."""
    begun = b""
    # `read1` gives what there is, so that a cut file loses nothing that stands before the cut.
    while block := stream.read1(BLOCK_BYTES):
        whole, _, begun = (begun + block).rpartition(b"\n")
        if len(begun) > _LONGEST_LINE_BYTES:
            raise ValueError(f"a line is longer than {_LONGEST_LINE_BYTES} bytes")
        if whole:
            yield from _decoded(whole)
    if begun:
        yield _decoder.decode(begun)


def _decoded(lines: bytes) -> Iterable[_Line]:
    try:
        return _decoder.decode_lines(lines)
    except (ValueError, RecursionError):
        return map(_decoder.decode, lines.split(b"\n"))  # gives what stands before the damage, then raises


def _record(topic: Role, partition: int, line: _Line) -> RecordedRecord:
    value = bytes(line.value)
    return RecordedRecord(
        topic=topic,
        partition=partition,
        offset=line.offset,
        timestamp=line.timestamp,
        key=line.key64 if line.key is None else line.key.encode(),
        value=line.value64 if value == b"null" else value,
    )
