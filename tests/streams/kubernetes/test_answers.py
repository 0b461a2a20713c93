"""Answers that are cut, or larger than any real one: an error that passes, in bounded memory; and pauses in between."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from evictstream.streams.conformance.fake_api import FakeApi
from evictstream.streams.errors import ApiRefusedError, ApiUnreachableError
from evictstream.streams.kubernetes import exchange as exchanges
from evictstream.streams.kubernetes.access import ClusterAccess
from evictstream.streams.kubernetes.backoff import LONGEST_SECONDS, Backoff
from evictstream.streams.kubernetes.connection import Connection

PODS = "/api/v1/pods"


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with FakeApi() as found:
        found.put("Pod", "a", spec={"nodeName": "n-1"}, metadata={"annotations": {"long": "x" * 5_000}})
        yield found


@pytest.fixture
def connection(api: FakeApi, tmp_path: Path) -> Iterator[Connection]:
    file = tmp_path / "kubeconfig"
    file.write_text(api.kubeconfig())
    found = Connection(ClusterAccess(kubeconfig=str(file)))
    yield found
    found.close()


def test_half_an_answer_is_none(api: FakeApi, connection: Connection) -> None:
    api.trouble["list pods"] = ["cut"]
    with pytest.raises(ApiUnreachableError):
        connection.get(PODS)
    assert connection.get(PODS)


def test_an_answer_without_an_end_is_read_to_its_limit(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchanges, "LARGEST_ANSWER_BYTES", 4_000)
    with pytest.raises(ApiUnreachableError, match="more than 4000 bytes"):
        connection.get(PODS)


def test_the_beginning_of_too_long_a_line_is_given(
    api: FakeApi, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchanges, "LONGEST_LINE_BYTES", 2_000)
    monkeypatch.setattr(exchanges, "PIECE_BYTES", 500)
    api.put("Pod", "b", spec={"nodeName": "n-1"})
    query = {"watch": "true", "timeoutSeconds": "5"}
    with connection.watch(PODS, query, quiet_seconds=5) as lines:
        long, short = next(lines), next(lines)
    assert long.startswith(b'{"type": "ADDED"')
    assert 1_500 <= len(long) <= 2_000
    assert json.loads(short)["object"]["metadata"]["name"] == "b"


def test_a_line_without_an_end_is_read_to_its_limit(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchanges, "LONGEST_LINE_BYTES", 1_000)
    monkeypatch.setattr(exchanges, "LARGEST_ANSWER_BYTES", 4_000)
    monkeypatch.setattr(exchanges, "PIECE_BYTES", 500)
    query = {"watch": "true", "timeoutSeconds": "5"}
    with connection.watch(PODS, query, quiet_seconds=5) as lines:
        next(lines)
        with pytest.raises(ApiUnreachableError, match="a line of over 4000 bytes"):
            next(lines)


def test_an_answer_is_read_while_it_arrives(
    api: FakeApi, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchanges, "PIECE_BYTES", 500)
    with connection.arriving(PODS, {}) as pieces:
        found = list(pieces)
    assert len(found) > 10
    assert json.loads(b"".join(found))["kind"] == "PodList"
    api.trouble["list pods"] = ["cut", 503]
    with pytest.raises(ApiUnreachableError), connection.arriving(PODS, {}) as pieces:
        list(pieces)
    with pytest.raises(ApiRefusedError), connection.arriving(PODS, {}):
        pass


def test_pauses_double_to_their_limit_and_begin_anew() -> None:
    backoff = Backoff()
    pauses = [backoff.next_seconds() for _ in range(100_000)]
    assert max(pauses) <= LONGEST_SECONDS
    assert min(pauses[10:]) >= LONGEST_SECONDS / 2
    backoff.reset()
    assert backoff.next_seconds() < 1
