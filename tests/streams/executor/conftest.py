"""A fake API server with a tainted node and pods on it, and connections to it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from evictstream.streams.conformance.fake_api import FakeApi
from evictstream.streams.kubernetes.access import ClusterAccess
from evictstream.streams.kubernetes.connection import Connection

TAINTED = {"taints": [{"key": "maintenance", "effect": "NoExecute"}]}


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with FakeApi() as found:
        found.put("Node", "n-1", uid="uid-n-1", spec=TAINTED)
        for letter in "abc":
            found.put("Pod", letter, uid=f"uid-{letter}", spec={"nodeName": "n-1"}, status={"phase": "Running"})
        yield found


@pytest.fixture
def access(api: FakeApi, tmp_path: Path) -> ClusterAccess:
    path = tmp_path / "kubeconfig"
    path.write_text(api.kubeconfig())
    return ClusterAccess(kubeconfig=str(path))


@pytest.fixture
def connection(access: ClusterAccess) -> Iterator[Connection]:
    found = Connection(access)
    yield found
    found.close()
