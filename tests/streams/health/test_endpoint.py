"""Health and metrics over HTTP, from threads of their own."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Iterable, Iterator

import pytest
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from evictstream.streams.engine.core.waits import WaitKind
from evictstream.streams.errors import AddressTakenError
from evictstream.streams.health.endpoint import REQUESTS_AT_ONCE, Endpoint
from tests.streams.service.test_watchdog import Worker

LOOPBACK = "127.0.0.1"


class OneMetric(Collector):
    """A metric, or a bug."""

    is_broken = False

    def collect(self) -> Iterable[Metric]:
        if self.is_broken:
            raise ZeroDivisionError
        return [GaugeMetricFamily("answer", "Of everything.", value=42)]


class Served:
    """An endpoint of a made-up worker."""

    def __init__(self) -> None:
        self.worker = Worker()
        self.metrics = OneMetric()
        self.endpoint = Endpoint(LOOPBACK, 0, self.worker.health, self.metrics)
        self.port = int(self.endpoint.server_address[1])
        self.endpoint.start()

    def get(self, path: str) -> tuple[int, str | None, bytes]:
        connection = http.client.HTTPConnection(LOOPBACK, self.port, timeout=5)
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer.status, answer.getheader("Content-Type"), body


@pytest.fixture
def served() -> Iterator[Served]:
    found = Served()
    yield found
    found.endpoint.shutdown()
    found.endpoint.server_close()


def test_metrics_are_text_for_prometheus(served: Served) -> None:
    status, content_type, body = served.get("/metrics")
    assert (status, content_type) == (200, CONTENT_TYPE_PLAIN_0_0_4)
    assert body.decode().splitlines()[-1] == "answer 42.0"


def test_livez_is_json_with_the_status_of_the_worker(served: Served) -> None:
    status, content_type, body = served.get("/livez?verbose")
    assert (status, content_type, json.loads(body)["status"]) == (200, "application/json", "ok")


def test_livez_of_a_stuck_worker_names_what_is_stuck(served: Served) -> None:
    served.worker.waits[WaitKind.LOOP] = 1_000.0
    status, _, body = served.get("/livez")
    assert (status, json.loads(body)["stuck"]) == (503, "loop")


def test_readyz_is_json(served: Served) -> None:
    status, _, body = served.get("/readyz")
    assert (status, json.loads(body)) == (200, {"status": "ready", "partitions": [], "reasons": []})


def test_other_paths_are_not_found(served: Served) -> None:
    assert served.get("/")[0] == 404


def test_a_bug_in_a_metric_answers_500(served: Served) -> None:
    served.metrics.is_broken = True
    assert served.get("/metrics")[0] == 500
    assert served.get("/livez")[0] == 200


def test_two_workers_on_one_machine_do_not_collide(served: Served) -> None:
    other = Served()
    other.endpoint.shutdown()
    other.endpoint.server_close()
    assert other.port != served.port


def test_a_taken_port_is_an_error_with_its_address(served: Served) -> None:
    with pytest.raises(AddressTakenError) as refused:
        Endpoint(LOOPBACK, served.port, served.worker.health, served.metrics)
    assert (refused.value.host, refused.value.port) == (LOOPBACK, served.port)


def test_clients_that_never_finish_cannot_take_all_threads(served: Served) -> None:
    before = threading.active_count()
    silent = [socket.create_connection((LOOPBACK, served.port)) for _ in range(REQUESTS_AT_ONCE + 4)]
    try:
        for one in silent[REQUESTS_AT_ONCE:]:
            one.settimeout(10)
            assert one.recv(1) == b"", "beyond the limit connections are closed"
        assert threading.active_count() <= before + REQUESTS_AT_ONCE
    finally:
        for one in silent:
            one.close()
