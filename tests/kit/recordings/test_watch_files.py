from __future__ import annotations

import gzip
import io
import json
import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from evictstream.kit.recordings import (
    AuditChange,
    Entry,
    Flaw,
    Skipped,
    WatchEnded,
    open_recordings,
    read_items,
    write_recording,
)
from evictstream.kit.recordings.entries import Item
from evictstream.streams.errors import RecordingError, WrongUseError
from tests.streams.feed.samples import kubectl_line, line, node, pod

FIRST, SECOND, THIRD = (f"2026-11-21T10:00:0{number}.5Z" for number in (1, 2, 3))


def read(data: bytes) -> list[Item]:
    return [item for item in read_items("f", io.BytesIO(data)) if not isinstance(item, AuditChange)]


def names(items: Iterable[Item | WatchEnded]) -> list[str]:
    return [json.loads(bytes(item.object))["metadata"]["name"] for item in items if isinstance(item, Entry)]


def flaw_of(data: bytes) -> str:
    (item,) = read(data)
    assert isinstance(item, Flaw)
    return item.problem


class TestFormats:
    def test_our_watch_event(self) -> None:
        (item,) = read(line(pod(), FIRST, "MODIFIED"))
        assert isinstance(item, Entry)
        assert (item.cluster, item.type, item.kind, item.node_name) == ("lab", "MODIFIED", "Pod", "n-1")
        assert item.observed_at_us == 1_795_255_201_500_000
        assert json.loads(bytes(item.object)) == pod()

    def test_what_kubectl_prints(self) -> None:
        items = read(kubectl_line(node("n-9")) + kubectl_line(pod(node_name=None), "DELETED"))
        assert [(i.kind, i.node_name, i.type, i.line) for i in items if isinstance(i, Entry)] == [
            ("Node", "n-9", "ADDED", 1),
            ("Pod", "", "DELETED", 2),
        ]
        assert {(i.cluster, i.observed_at_us) for i in items if isinstance(i, Entry)} == {(None, None)}

    def test_printed_over_lines_it_is_made_compact(self) -> None:
        pretty = json.dumps({"type": "ADDED", "object": pod()}, indent=4).encode() + b"\n"
        items = read(pretty + pretty)
        assert [item.line for item in items] == [1, 1 + pretty.count(b"\n")]
        assert all(bytes(i.object) == json.dumps(pod(), separators=(",", ":")).encode() for i in items)  # type: ignore[union-attr] # entries

    def test_gzip_is_known_by_its_first_bytes(self) -> None:
        data = line(node(), FIRST)
        assert read(gzip.compress(data)) == read(data)

    def test_gzip_in_several_parts(self) -> None:
        parts = gzip.compress(line(node("a"), FIRST)) + gzip.compress(line(node("b"), SECOND))
        assert names(read(parts)) == ["a", "b"]

    def test_an_empty_file(self) -> None:
        assert read(b"") == [Skipped("f", 1, "empty files")]


@pytest.mark.parametrize("kind", ["BOOKMARK", "HEARTBEAT", "FORGET", "ACCEPT_GAP"])
def test_what_is_not_to_be_repeated_is_left_out(kind: str) -> None:
    assert read(json.dumps({"cluster": "lab", "type": kind}).encode()) == [Skipped("f", 1, kind)]


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        pytest.param(b"nope\n", "not JSON", id="words"),
        pytest.param(b'{"type":nope}\n', "BadJson", id="bad-json"),
        pytest.param(b"[7]\n", "no object", id="list"),
        pytest.param(b'{"type":7}\n', "WrongType", id="type-is-a-number"),
        pytest.param(b'{"type":"SOON","object":{}}\n', "type is not one of a watch event", id="unknown-type"),
        pytest.param(b'{"object":{}}\n', "type is not one of a watch event", id="no-type"),
        pytest.param(b'{"type":"ADDED"}\n', "no object", id="no-object"),
        pytest.param(b'{"metadata":{}}\n', "without kind", id="no-kind-at-all"),
        pytest.param(b'{"kind":"Status","code":403}\n', "refuses", id="refusal"),
        pytest.param(b'{"type":"ADDED","object":null}\n', "no object", id="null-object"),
        pytest.param(b'{"type":"ADDED","object":{}}\n', "neither a Node nor a Pod", id="no-kind"),
        pytest.param(kubectl_line({"kind": "Lease"}), "neither a Node nor a Pod", id="another-kind"),
        pytest.param(kubectl_line({"kind": "Status", "code": 410}, "ERROR"), "the API server reported", id="error"),
        pytest.param(line(node(), "yesterday"), "BadTime", id="bad-time"),
        pytest.param(line(node(), "2026-11-21T10:00:00"), "BadTime", id="no-zone"),
        pytest.param(b'{"type":"ADDED","object":{"kind":"Node","metadata":[]}}', "WrongType", id="bad-metadata"),
    ],
)
def test_flaws_say_what_is_wrong_and_the_rest_goes_on(data: bytes, problem: str) -> None:
    assert problem in flaw_of(data)
    assert names(read(data + b"\n" + kubectl_line(node("after")))) == ["after"]


def test_flaws_quote_nothing() -> None:
    assert "s3cret" not in flaw_of(b'{"type":"s3cret","object":{"kind":"s3cret"}}')


def test_a_flaw_as_a_line() -> None:
    assert str(Flaw("f", 7, "no object")) == "f, line 7: no object"


class TestFilesThatEnd:
    def test_cut_gzip_is_a_flaw_behind_what_could_be_read(self) -> None:
        whole = gzip.compress(b"".join(line(node(f"n-{number}"), FIRST) for number in range(2_000)))
        items = read(whole[: len(whole) // 2])
        last = items[-1]
        assert len(items) > 100
        assert isinstance(last, Flaw)
        assert "is cut off" in last.problem

    def test_broken_gzip_is_an_error_that_says_where(self) -> None:
        whole = bytearray(gzip.compress(line(node(), FIRST) * 1_000))
        whole[-8:] = b"\0" * 8  # the checksum
        with pytest.raises(RecordingError, match=r"f cannot be read beyond line") as caught:
            read(bytes(whole))
        assert caught.value.source == "f"


class TestSeveral:
    def write(self, path: Path, *lines: bytes) -> str:
        path.write_bytes(b"".join(lines))
        return str(path)

    def test_are_joined_by_recorded_time(self, tmp_path: Path) -> None:
        nodes = self.write(tmp_path / "nodes", line(node("a"), FIRST), line(node("d"), THIRD))
        pods = self.write(tmp_path / "pods", line(pod("b"), SECOND), line(pod("c"), SECOND))
        with open_recordings([nodes, pods]) as items:
            assert names(list(items)) == ["a", "b", "c", "d"]

    def test_each_keeps_its_order_where_its_times_go_back(self, tmp_path: Path) -> None:
        one = self.write(tmp_path / "one", line(node("b"), SECOND), line(node("a"), FIRST))
        two = self.write(tmp_path / "two", line(node("c"), THIRD))
        with open_recordings([two, one]) as items:
            assert names(list(items)) == ["b", "a", "c"]

    def test_without_times_they_follow_each_other(self, tmp_path: Path) -> None:
        nodes = self.write(tmp_path / "nodes", kubectl_line(node("a")), kubectl_line(node("b")))
        pods = self.write(tmp_path / "pods", kubectl_line(pod("c")))
        with open_recordings([nodes, pods]) as items:
            assert names(list(items)) == ["a", "b", "c"]

    @pytest.mark.parametrize("name", ["missing"])
    def test_a_file_that_cannot_be_opened_is_wrong_use(self, name: str, tmp_path: Path) -> None:
        path = str(tmp_path / name)
        with pytest.raises(WrongUseError, match="cannot open"), open_recordings([path]):
            pass


def test_times_are_exact_to_the_microsecond() -> None:
    (item,) = read(line(node(), "2026-11-21T12:00:00.123456789+02:00"))
    assert isinstance(item, Entry)
    assert item.observed_at_us is not None
    assert item.observed_at_us % 1_000_000 == 123_457
    (utc,) = read(line(node(), "2026-11-21T10:00:00.123457Z"))
    assert isinstance(utc, Entry)
    assert item.observed_at_us == utc.observed_at_us


class TestLiveWatches:
    """What comes out of a pipe without recorded times has somebody at the other end, who may go."""

    def read_pipe(self, data: bytes) -> list[Item | WatchEnded]:
        ours, theirs = os.pipe()
        try:
            os.write(theirs, data)
            os.close(theirs)
            with open_recordings([f"/dev/fd/{ours}"]) as items:
                return list(items)
        finally:
            os.close(ours)

    @pytest.mark.parametrize(
        ("data", "kinds"),
        [
            pytest.param(kubectl_line(node()), [("Node",)], id="as kubectl prints it"),
            pytest.param(kubectl_line(pod()) + kubectl_line(node()), [("Node", "Pod")], id="both kinds"),
            pytest.param(b"", [()], id="ended before its first event"),
            pytest.param(line(node(), FIRST), [], id="a recording, which has times"),
            pytest.param(gzip.compress(line(pod(), FIRST)), [], id="a compressed recording"),
            pytest.param(b"{}\n", [], id="no event at all, which is a flaw"),
        ],
    )
    def test_the_end_of_a_pipe_names_the_watched_kinds(self, data: bytes, kinds: list[tuple[str, ...]]) -> None:
        items = self.read_pipe(data)
        assert [item.kinds for item in items if isinstance(item, WatchEnded)] == kinds
        assert not any(isinstance(item, WatchEnded) for item in items[:-1])

    def test_the_end_of_a_file_is_that_of_a_recording(self, tmp_path: Path) -> None:
        (tmp_path / "r").write_bytes(kubectl_line(node()))
        (tmp_path / "empty").touch()
        with open_recordings([str(tmp_path / "r"), str(tmp_path / "empty")]) as items:
            assert [type(item) for item in items] == [Entry, Skipped]


def test_a_written_recording_reads_as_the_same_entries() -> None:
    lines = line(node(), "2026-01-02T03:04:05.000006Z") + kubectl_line(pod(), "DELETED")
    entries = [item for item in read_items("test", io.BytesIO(lines)) if isinstance(item, Entry)]
    written = io.BytesIO()
    write_recording(entries, written)
    assert len(entries) == 2
    assert list(read_items("test", io.BytesIO(written.getvalue()))) == entries
