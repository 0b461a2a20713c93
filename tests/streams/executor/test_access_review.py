"""Which rights an executor lacks for the patience of a policy, which nobody knows at its start."""

from __future__ import annotations

import pytest

from evictstream.kit.conformance.fake_api import FakeApi
from evictstream.streams.executor.access_review import lacks_for_patience
from evictstream.streams.executor.eviction import ExecutorMode
from evictstream.streams.kubernetes.connection import Connection

MISSING = ["patch pods/status", "delete pods"]


@pytest.mark.parametrize(
    ("mode", "forbidden", "missing"),
    [
        pytest.param(ExecutorMode.REQUEST, MISSING, MISSING, id="request"),
        pytest.param(ExecutorMode.EVICT, MISSING[1:], MISSING[1:], id="evict"),
        pytest.param(ExecutorMode.REQUEST, [], [], id="allowed"),
        pytest.param(ExecutorMode.DELETE, MISSING, [], id="its-own-rights"),
        pytest.param(ExecutorMode.OBSERVE, MISSING, [], id="writes-nothing"),
    ],
)
def test_rights_of_a_patience_are_named(
    api: FakeApi, connection: Connection, mode: ExecutorMode, forbidden: list[str], missing: list[str]
) -> None:
    api.forbidden = set(forbidden)
    assert lacks_for_patience(connection, mode) == missing
