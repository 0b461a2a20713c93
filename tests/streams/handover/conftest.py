"""A connection to an API server whose answers are written down."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator

import pytest

from evictstream.streams.handover import api_requests
from evictstream.streams.handover.api_requests import ApiRequests, open_cluster
from evictstream.streams.kubernetes.access import ClusterAccess
from evictstream.streams.kubernetes.backoff import Backoff
from tests.streams.handover.scripted import Scripted


@pytest.fixture
def server() -> Iterator[Scripted]:
    with Scripted() as found:
        thread = threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield found
        found.shutdown()
        thread.join()


@pytest.fixture
def stop() -> threading.Event:
    return threading.Event()


@pytest.fixture
def requests(
    server: Scripted, stop: threading.Event, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ApiRequests]:
    file = tmp_path_factory.mktemp("kubeconfig") / "config"
    config = {
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.server_address[1]}"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": ""}}],
        "current-context": "c",
    }
    file.write_text(json.dumps(config))
    with open_cluster(ClusterAccess(kubeconfig=str(file)), is_stopped=stop.is_set) as found:
        yield found


@pytest.fixture(autouse=True)
def _quick_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    class _Quick(Backoff):
        def next_seconds(self) -> float:
            return min(super().next_seconds(), 0.01)

    monkeypatch.setattr(api_requests, "Backoff", _Quick)
