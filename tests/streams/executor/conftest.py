"""A fake API server with a tainted node and pods on it, connections to it, and topics for commands and results."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evictstream.kit.conformance.fake_api import FakeApi
from evictstream.models.instants import instant_text
from evictstream.models.messages.command import EvictionCommand
from evictstream.models.messages.result import RESULT_KIND
from evictstream.models.messages.vocabulary import Action
from evictstream.streams.broker.admin import declare_topics
from evictstream.streams.kubernetes.access import ClusterAccess
from evictstream.streams.kubernetes.connection import Connection
from evictstream.streams.settings import Settings
from tests.conftest import MakeSettings
from tests.harness.executing import CommandWriter
from tests.harness.reading import TopicReader
from tests.models.execution import samples

PODS = 20
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


@pytest.fixture
def declared(make_settings: MakeSettings) -> Settings:
    found = make_settings(health_port=0)
    declare_topics(found)
    return found


@pytest.fixture
def writer(declared: Settings) -> Iterator[CommandWriter]:
    found = CommandWriter(declared)
    yield found
    found.close()


@pytest.fixture
def results(declared: Settings) -> Iterator[TopicReader]:
    found = TopicReader(declared, declared.results_topic, RESULT_KIND)
    yield found
    found.close()


def command_now(pod: str = "a", action: Action = Action.EVICT, **changes: Any) -> EvictionCommand:
    """Return one that was issued now."""
    return samples.command(action, pod, **({"issued_at": instant_text(time.time_ns() // 1000)} | changes))


@contextlib.contextmanager
def cluster(name: str, folder: Path) -> Iterator[tuple[FakeApi, ClusterAccess]]:
    """Give a cluster with pods that have to leave, each on a node of its own."""
    with FakeApi() as api:
        for number in range(PODS):
            api.put("Node", f"m-{number}", uid=f"uid-m-{number}", spec=TAINTED)
            api.put("Pod", f"p-{number}", uid=f"uid-p-{number}", spec={"nodeName": f"m-{number}"})
        file = folder / f"kubeconfig-of-{name}"
        file.write_text(api.kubeconfig())
        yield api, ClusterAccess(kubeconfig=str(file))
