"""Lines of a watch gather for a moment after one was read; the first one after a quiet time does not wait."""

from __future__ import annotations

import json
import time
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

from evictstream.kit.conformance.fake_api import FakeApi
from evictstream.streams.feed.kind_feed import GATHER_SECONDS
from evictstream.streams.kubernetes import exchange
from evictstream.streams.kubernetes.access import ClusterAccess
from evictstream.streams.kubernetes.connection import Connection


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with FakeApi() as api:
        api.put("Pod", "a", spec={})
        yield api


def read(api: FakeApi, folder: Path, monkeypatch: pytest.MonkeyPatch, *, gather_seconds: float) -> list[str | float]:
    """Read a watch to its end while one pod changes, and another one during the first pause; pauses take no time."""
    events: list[str | float] = []

    def sleep(seconds: float) -> None:
        if seconds not in events:
            api.put("Pod", "b", spec={})
        events.append(seconds)

    monkeypatch.setattr(exchange, "time", types.SimpleNamespace(sleep=sleep, monotonic=time.monotonic))
    file = folder / "kubeconfig"
    file.write_text(api.kubeconfig())
    query = {"watch": "true", "resourceVersion": str(api.version), "timeoutSeconds": "1"}
    api.put("Pod", "a", spec={"changed": True})
    connection = Connection(ClusterAccess(kubeconfig=str(file), context=None))
    with connection.watch("/api/v1/pods", query, quiet_seconds=10, gather_seconds=gather_seconds) as lines:
        for line in lines:
            pod = json.loads(line)["object"]
            events.append(pod["metadata"]["name"])
    return events


def test_lines_gather_after_one_was_read(api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert read(api, tmp_path, monkeypatch, gather_seconds=5.0)[:3] == ["a", 5.0, "b"]


def test_lines_of_nodes_do_not_gather(api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A taint is passed on at once."""
    assert read(api, tmp_path, monkeypatch, gather_seconds=GATHER_SECONDS["Node"]) == ["a"]
