"""Answers that are cut, or larger than any real one: an error that passes, in bounded memory; and pauses in between."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from evictstream.kit.conformance.fake_api import FakeApi
from evictstream.kit.conformance.fake_faults import Fault
from evictstream.streams.errors import ApiRefusedError, ApiUnreachableError
from evictstream.streams.kubernetes import exchange as exchanges
from evictstream.streams.kubernetes.access import ClusterAccess
from evictstream.streams.kubernetes.answers import retry_after_seconds
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


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        pytest.param(None, None, id="without one"),
        pytest.param("7", 7, id="seconds"),
        pytest.param("9" * 5_000, 600, id="too many seconds"),
        pytest.param("Thu, 26 Nov 2026 12:00:30 GMT", 30, id="a date"),
        pytest.param("Thu, 26 Nov 2026 11:00:00 GMT", 0, id="a date that is past"),
        pytest.param("Sat, 26 Dec 2026 12:00:00 -0000", 600, id="a date far ahead, without a zone"),
        pytest.param("Thu, 99 Nov 2026 12:00:30 GMT", None, id="no date"),
        pytest.param("-1", None, id="less than nothing"),
        pytest.param("\u0667", None, id="digits of others"),
        pytest.param("soon", None, id="a word"),
    ],
)
def test_what_a_server_asks_to_wait(text: str | None, seconds: float | None) -> None:
    assert retry_after_seconds(text, dt.datetime(2026, 11, 26, 12, tzinfo=dt.UTC)) == seconds


@pytest.mark.parametrize("status", [429, 503])
def test_a_refused_page_says_how_long_to_wait(api: FakeApi, connection: Connection, status: int) -> None:
    api.trouble["list pods"] = [Fault(status=status, retry_after_seconds=3)]
    with pytest.raises(ApiRefusedError) as refused:
        connection.get(PODS)
    assert refused.value.retry_after_seconds == 3


@pytest.mark.parametrize("body", ["{}", "<html>", '{"kind":"Status","metadata":{"uid":"u"}}'])
def test_only_a_namespace_says_which_cluster_it_is(api: FakeApi, connection: Connection, body: str) -> None:
    api.trouble["get namespaces"] = [Fault(status=200, text=body)]
    with pytest.raises(ApiUnreachableError, match="its namespace kube-system"):
        connection.cluster_uid()


def test_pauses_double_to_their_limit_and_begin_anew() -> None:
    backoff = Backoff()
    pauses = [backoff.next_seconds() for _ in range(100_000)]
    assert max(pauses) <= LONGEST_SECONDS
    assert min(pauses[10:]) >= LONGEST_SECONDS / 2
    backoff.reset()
    assert backoff.next_seconds() < 1
