"""An API server that has EvictionRequests, what keeps those of an executor, and what evicts by them."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from evictstream.kit.conformance.fake_api import FakeApi
from evictstream.kit.conformance.fake_faults import Object
from evictstream.models.execution.command_log import CommandAnswer
from evictstream.models.execution.eviction_requests import request_key
from evictstream.models.messages.command import EvictionCommand
from evictstream.models.messages.vocabulary import Outcome
from evictstream.streams.executor.eviction import ExecutorMode, PodEvictor, PutOff
from evictstream.streams.executor.node_looks import NodeLooks
from evictstream.streams.executor.open_requests import OpenRequests
from evictstream.streams.executor.pod_requests import PodRequests
from evictstream.streams.executor.request_calls import RequestCalls
from evictstream.streams.executor.request_keeper import KEEPERS, RequestKeeper
from evictstream.streams.kubernetes.connection import Connection
from tests.models.execution.samples import command as any_command
from tests.streams.executor.braking import unbraked
from tests.streams.executor.serving import wait_for

UIDS = {letter: str(uuid.uuid5(uuid.NAMESPACE_OID, f"pod {letter}")) for letter in "abc"}
PERMITTED: Any = SimpleNamespace(is_permitted=True)


def command(pod: str = "a", **changes: Any) -> EvictionCommand:
    return any_command(pod=pod, **({"pod_uid": UIDS[pod]} | changes))


def name_of(pod: str = "a", **changes: Any) -> str:
    """Return the name by which the API server stores a pod's request."""
    return "/".join(request_key(command(pod, **changes)))


def request_of(api: FakeApi, pod: str = "a") -> Object | None:
    return api.objects.get(("EvictionRequest", name_of(pod)))


def outcome(found: CommandAnswer | PutOff) -> Outcome | None:
    return found.outcome if isinstance(found, CommandAnswer) else None


def written(api: FakeApi) -> list[str]:
    return [write.what for write in api.writes]


def edit(api: FakeApi, pod: str = "a", **status: Any) -> None:
    """Write the status of a pod's request, as a controller does."""
    api.put("EvictionRequest", name_of(pod), status=status)


def condition(type_: str, reason: str, message: str = "") -> dict[str, str]:
    return {"type": type_, "status": "True", "reason": reason, "message": message}


@pytest.fixture
def requested(api: FakeApi) -> FakeApi:
    """Give an API server with the gate on, whose pods have UIDs as real ones."""
    api.serves_requests = True
    for letter, uid in UIDS.items():
        api.remove("Pod", letter)
        api.put("Pod", letter, uid=uid, spec={"nodeName": "n-1"}, status={"phase": "Running"})
    return api


@pytest.fixture
def requests(requested: FakeApi, connection: Connection) -> Iterator[OpenRequests]:
    found = OpenRequests("c1", RequestCalls(connection, "c1"))
    found.watch.start()
    wait_for(lambda: found.watch.problem is None)
    yield found
    found.watch.stop()
    requested.end_watches()


@pytest.fixture
def keepers(requests: OpenRequests) -> Iterator[list[RequestKeeper]]:
    found = [RequestKeeper("c1", requests, PERMITTED, number=number) for number in range(KEEPERS)]
    for keeper in found:
        keeper.start()
    yield found
    for keeper in found:
        keeper.stop()
        keeper.join(10)


@pytest.fixture
def make(connection: Connection, requests: OpenRequests) -> Callable[..., PodEvictor]:
    def evictor(**changes: Any) -> PodEvictor:
        calls = PodRequests(connection)
        fields: Any = {"brakes": unbraked(), "open_requests": requests} | changes
        return PodEvictor(requests=calls, looks=NodeLooks(calls, lists=True), mode=ExecutorMode.REQUEST, **fields)

    return evictor


@pytest.fixture
def evictor(make: Callable[..., PodEvictor]) -> PodEvictor:
    return make()
