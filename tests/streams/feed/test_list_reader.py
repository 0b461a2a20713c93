"""Pages of a list: as large as can be had, in bounded memory, and no item at the cost of another."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping

import pytest

from evictstream.models.shallow_json import SplitItem
from evictstream.streams.errors import ApiRefusedError, ApiUnreachableError
from evictstream.streams.feed import list_reader
from evictstream.streams.feed.list_reader import ListReader, newest_version
from evictstream.streams.feed.watched_objects import read_object
from evictstream.streams.kubernetes.connection import Connection

DEEP = b"[" * 9_995 + b"]" * 9_995


class FakeConnection(Connection):
    """Answers with a list of items of these sizes, in pages; remembers what it was asked for."""

    host = "fake"

    def __init__(self, *sizes: int, piece_bytes: int = 1_000) -> None:
        self.sizes = sizes
        self.limits: list[int] = []
        self.refusals: list[Exception] = []
        self.sent = 0
        self._piece = piece_bytes

    def text(self, begin: int, end: int) -> bytes:
        more = f',"continue":"{end}"' if end < len(self.sizes) else ""
        items = (self.item(number, size) for number, size in enumerate(self.sizes[begin:end], begin))
        return b'{"kind":"PodList","metadata":{"resourceVersion":"9"%s},"items":[%s]}' % (
            more.encode(),
            b",".join(items),
        )

    def item(self, number: int, size: int) -> bytes:
        head = {"metadata": {"name": f"p{number}", "uid": f"u{number}", "resourceVersion": "5"}, "x": "y" * size}
        return json.dumps(head).encode()

    @contextlib.contextmanager
    def arriving(self, path: str, query: Mapping[str, str]) -> Iterator[Iterator[bytes]]:
        self.limits.append(int(query["limit"]))
        if self.refusals:
            raise self.refusals.pop(0)
        begin = int(query.get("continue", "0"))
        yield self.pieces(self.text(begin, min(len(self.sizes), begin + self.limits[-1])))

    def pieces(self, text: bytes) -> Iterator[bytes]:
        for at in range(0, len(text), self._piece):
            self.sent += 1
            yield text[at : at + self._piece]


def read(connection: FakeConnection) -> list[SplitItem]:
    reader, token = ListReader(connection, "/pods"), ""
    found: list[SplitItem] = []
    while True:
        page = reader.page(token, found.append)
        assert page.version == "9"
        token = page.token
        if not token:
            return found


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(list_reader, "WHOLE_BYTES", 10_000)
    monkeypatch.setattr(list_reader, "LONGEST_ITEM_BYTES", 50_000)


@pytest.mark.usefixtures("_small")
@pytest.mark.parametrize(
    ("sizes", "limits"),
    [
        pytest.param([10] * 40, [500], id="one-small-page"),
        pytest.param([300] * 1_200, [500, 250, 125, 62, 31, *[15] * 15, 7], id="halved-until-they-fit"),
        pytest.param([9_000] * 1_000, None, id="down-to-one"),
    ],
)
def test_pages_that_are_too_large_are_halved(sizes: list[int], limits: list[int] | None) -> None:
    connection = FakeConnection(*sizes)
    found = read(connection)
    assert [json.loads(one.text)["metadata"]["name"] for one in found] == [f"p{n}" for n in range(len(sizes))]
    assert all(one.is_whole for one in found)
    if limits is None:
        assert connection.limits[-1] == 1
    else:
        assert connection.limits[: len(limits) - 1] == limits[:-1] or connection.limits == limits


@pytest.mark.usefixtures("_small")
def test_pages_grow_again_behind_large_objects() -> None:
    connection = FakeConnection(*[20_000] * 940, *[10] * 3_000)
    read(connection)
    assert connection.limits[:6] == [500, 250, 125, 62, 31, 15]
    assert connection.limits[-1] == 30  # a quarter of what is allowed


@pytest.mark.usefixtures("_small")
def test_too_large_an_object_is_told_by_its_beginning() -> None:
    connection = FakeConnection(10, 200_000, 10)
    found = read(connection)
    assert [one.is_whole for one in found] == [True, False, True]
    assert len(found[1].text) == 50_000
    assert b'"name": "p1"' in found[1].text


def test_a_timeout_of_the_server_halves_the_page() -> None:
    connection = FakeConnection(*[10] * 3)
    connection.refusals = [
        ApiRefusedError(host="fake", path="/pods", status=429, reason=""),
        ApiRefusedError(host="fake", path="/pods", status=504, reason=""),
    ]
    reader = ListReader(connection, "/pods")
    for _ in range(2):
        with pytest.raises(ApiRefusedError):
            reader.page("", lambda _: None)
    reader.page("", lambda _: None)
    assert connection.limits == [500, 500, 250]


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param(b'{"metadata":{"name":"b","managedFields":%s}}' % DEEP, id="deep"),
        pytest.param(b'{"metadata":{"name":"b","x":01}}', id="no-number"),
        pytest.param(b'{"metadata":{"name":"b","x":"\xff"}}', id="no-utf-8"),
        pytest.param(b'{"metadata":{"name":"b"},"metadata":[]}', id="twice"),
    ],
)
def test_an_item_that_cannot_be_read_costs_no_other(broken: bytes) -> None:
    class Broken(FakeConnection):
        def item(self, number: int, size: int) -> bytes:
            return broken if number == 1 else super().item(number, size)

    found = read(Broken(1, 1, 1))
    assert [one.text for one in found][1] == broken
    assert [json.loads(found[number].text)["metadata"]["name"] for number in (0, 2)] == ["p0", "p2"]


@pytest.mark.parametrize(
    "text",
    [
        b"<html>busy</html>",
        b"{}",
        b'{"kind":"Status","metadata":{"resourceVersion":"5"}}',
        b'{"metadata":{"resourceVersion":"5"},"items":null}',
        b'{"metadata":{"resourceVersion":"x"},"items":[{}]}',
        b'{"metadata":{"resourceVersion":"5"},"items":[{}',
    ],
)
def test_what_is_no_list_is_none(text: bytes) -> None:
    class Other(FakeConnection):
        def text(self, begin: int, end: int) -> bytes:
            return text

    with pytest.raises(ApiUnreachableError):
        ListReader(Other(1), "/pods").page("", lambda _: None)


@pytest.mark.parametrize("size", [10, 10_000_000])
def test_the_newest_version_needs_no_object(size: int) -> None:
    connection = FakeConnection(size, 1)
    assert newest_version(connection, "/nodes") == 9
    assert connection.sent < 100
    assert connection.limits == [1]


@pytest.mark.parametrize(
    ("text", "version"),
    [
        (b'{"metadata":{"resourceVersion":"7"},"items":[{"a":%s}]}' % DEEP, 7),
        (b'{"items":[{"a":%s}],"metadata":{"resourceVersion":"7"}}' % DEEP, 7),
        (b"<html>", None),
        (b'{"metadata":{"resourceVersion":"seven"},"items":[]}', None),
    ],
)
def test_the_newest_version_is_found_beside_any_object(text: bytes, version: int | None) -> None:
    class Other(FakeConnection):
        def text(self, begin: int, end: int) -> bytes:
            return text

    if version is None:
        with pytest.raises(ApiUnreachableError):
            newest_version(Other(1), "/nodes")
    else:
        assert newest_version(Other(1), "/nodes") == version


def test_a_pod_of_a_list_is_read_as_it_came() -> None:
    (found,) = read(FakeConnection(3))
    assert read_object("Pod", found.text).uid == "u0"
