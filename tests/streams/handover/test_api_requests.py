"""Requests of a handover against an API server that is busy, restarts, and forgets its lists."""

from __future__ import annotations

import threading
import time
from typing import Final

import pytest

from evictstream.streams.errors import ApiRefusedError, ApiUnreachableError
from evictstream.streams.handover import api_requests
from evictstream.streams.handover.api_requests import ApiRequests, StoppedError
from tests.streams.handover.scripted import Answer, Scripted


def page(*names: str, more: str = "") -> Answer:
    items = [{"metadata": {"name": name, "namespace": "shop", "uid": name}} for name in names]
    return 200, {}, {"kind": "PodList", "metadata": {"continue": more}, "items": items}


BUSY: Final[Answer] = (429, {"Retry-After": "0"}, {"kind": "Status", "message": "too many requests"})
DONE: Final[Answer] = (200, {}, {"kind": "Pod"})


@pytest.mark.parametrize(
    "before",
    [
        pytest.param([BUSY], id="busy"),
        pytest.param([(503, {}, {})], id="overloaded"),
        pytest.param([(500, {}, {})], id="failed"),
        pytest.param([(0, {}, {})], id="closed"),
        pytest.param([BUSY, (503, {}, {}), (0, {}, {})] * 2, id="all-of-it"),
    ],
)
def test_a_request_is_tried_again(before: list[Answer], server: Scripted, requests: ApiRequests) -> None:
    server.answers = [*before, DONE]
    assert requests.ask("PATCH", "/p", body={}, kind="merge-patch+json").status == 200
    assert len(server.asked) == len(before) + 1


@pytest.mark.parametrize("status", [400, 403, 404, 409, 422])
def test_what_helps_nothing_is_not_tried_again(status: int, server: Scripted, requests: ApiRequests) -> None:
    server.answers = [(status, {}, {})]
    assert requests.ask("PATCH", "/p", body={}).status == status
    assert len(server.asked) == 1


def test_a_server_that_stays_busy_is_left(server: Scripted, requests: ApiRequests) -> None:
    server.answers = [BUSY]
    assert requests.ask("PATCH", "/p", body={}).status == 429
    assert len(server.asked) == api_requests.MOST_TRIES_OF_REQUEST


def test_a_server_that_stays_silent_is_an_error(server: Scripted, requests: ApiRequests) -> None:
    server.answers = [(0, {}, {})]
    with pytest.raises(ApiUnreachableError):
        requests.ask("PATCH", "/p", body={})


def test_pods_are_listed_page_by_page(server: Scripted, requests: ApiRequests) -> None:
    server.answers = [page("a", "b", more="x"), page("c", more="y"), page("d")]
    assert [pod.name for pod in requests.pods("shop", "n-1")] == ["a", "b", "c", "d"]
    assert server.asked[0] == "GET /api/v1/namespaces/shop/pods?limit=500&fieldSelector=spec.nodeName%3Dn-1"
    assert server.asked[2].endswith("&continue=y")


@pytest.mark.parametrize("offered", ["z", ""], ids=["goes-on", "begins-again"])
def test_a_list_that_has_expired_goes_on(offered: str, server: Scripted, requests: ApiRequests) -> None:
    expired: Answer = (410, {}, {"kind": "Status", "metadata": {"continue": offered}})
    server.answers = [page("a", more="x"), expired, page("b")]
    assert [pod.name for pod in requests.pods(None, None)] == ["a", "b"]
    assert server.asked[-1] == "GET /api/v1/pods?limit=500" + ("&continue=z" if offered else "")


def test_a_list_that_is_refused_says_why(server: Scripted, requests: ApiRequests) -> None:
    server.answers = [(403, {}, {"kind": "Status", "message": "not for you"})]
    with pytest.raises(ApiRefusedError, match="not for you"):
        list(requests.pods(None, None))


def test_an_answer_that_is_no_list_is_an_error(server: Scripted, requests: ApiRequests) -> None:
    server.answers = [(200, {}, {"items": 5})]
    with pytest.raises(ApiUnreachableError, match="cannot be read"):
        list(requests.pods(None, None))


def test_a_signal_ends_a_wait(server: Scripted, requests: ApiRequests, stop: threading.Event) -> None:
    server.answers = [(429, {"Retry-After": "60"}, {})]
    timer = threading.Timer(0.3, stop.set)
    timer.start()
    began = time.monotonic()
    with pytest.raises(StoppedError):
        requests.ask("PATCH", "/p", body={})
    timer.join()
    assert time.monotonic() - began < 20


def test_the_rate_is_kept(requests: ApiRequests) -> None:
    requests.rate = 100.0
    began = time.monotonic()
    for _ in range(11):
        requests.pace()
    assert time.monotonic() - began >= 0.1
