"""Health and metrics over HTTP, from threads of their own."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, nullcontext, suppress

import pytest
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.openmetrics import parser
from prometheus_client.registry import Collector

from evictstream.streams.engine.core.waits import WaitKind
from evictstream.streams.errors import AddressTakenError
from evictstream.streams.health import endpoint
from evictstream.streams.health.endpoint import OPEN_AT_ONCE, Endpoint, Report
from tests.streams.worker.test_watchdog import Worker

LOOPBACK = "127.0.0.1"
SLOW_CLIENTS = 300


class OneMetric(Collector):
    """A metric, or a bug; slow where a test holds it."""

    is_broken = False
    help = "Of everything."
    made = 0

    def __init__(self) -> None:
        self.may_go_on = threading.Event()
        self.may_go_on.set()

    def collect(self) -> Iterable[Metric]:
        self.may_go_on.wait()
        self.made += 1
        if self.is_broken:
            raise ZeroDivisionError
        return [GaugeMetricFamily("answer", self.help, value=42)]


class Served:
    """An endpoint of a made-up worker."""

    def __init__(self, host: str = LOOPBACK, port: int = 0) -> None:
        self.worker = Worker()
        self.metrics = OneMetric()
        self.endpoint = Endpoint(host, port, self.worker.health, self.metrics)
        self.port = self.endpoint.port
        self.endpoint.start()

    def get(
        self, path: str, seconds: float = 5, *, method: str = "GET", accept: str = "*/*", to: str = LOOPBACK
    ) -> tuple[int, str | None, bytes]:
        connection = http.client.HTTPConnection(to, self.port, timeout=seconds)
        connection.request(method, path, headers={"Accept": accept})
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer.status, answer.getheader("Content-Type"), body


@pytest.fixture
def served() -> Served:
    return Served()


def test_metrics_are_text_for_prometheus(served: Served) -> None:
    status, content_type, body = served.get("/metrics")
    assert (status, content_type) == (200, CONTENT_TYPE_PLAIN_0_0_4)
    assert body.decode().splitlines()[-1] == "answer 42.0"


def test_metrics_are_openmetrics_for_who_accepts_them(served: Served) -> None:
    prometheus = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,text/plain;version=0.0.4;q=0.3"
    status, content_type, body = served.get("/metrics", accept=prometheus)
    assert (status, content_type) == (
        200,
        "application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=underscores",
    )
    families = parser.text_string_to_metric_families(body.decode())  # type: ignore[no-untyped-call]
    assert [sample.value for family in families if family.name == "answer" for sample in family.samples] == [42]
    assert served.get("/metrics", accept="text/plain, text/html")[1] == CONTENT_TYPE_PLAIN_0_0_4


def test_metrics_tell_of_the_process_and_of_python(served: Served) -> None:
    body = served.get("/metrics")[2].decode()
    for name in ("process_start_time_seconds", "process_open_fds", "python_info", "python_gc_collections_total"):
        assert f"\n{name}" in body


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/metrics", "/"])
def test_head_answers_as_get_without_its_body(served: Served, path: str) -> None:
    status, content_type, body = served.get(path, method="HEAD")
    assert (status, content_type) == served.get(path)[:2]
    assert body == b""


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
    assert other.port != served.port


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this machine has no IPv6")
@pytest.mark.parametrize(
    ("host", "answers"),
    [
        pytest.param("::", {LOOPBACK, "::1"}, id="every address"),
        pytest.param("::1", {"::1"}, id="loopback of IPv6"),
        pytest.param("0.0.0.0", {LOOPBACK}, id="every address of IPv4"),  # noqa: S104 - in a test
    ],
)
def test_addresses_of_both_families_answer(host: str, answers: set[str]) -> None:
    with ExitStack() as kept:
        served = _served_alone(host, {LOOPBACK, "::1"} - answers, kept)
        for each in (LOOPBACK, "::1"):
            with nullcontext() if each in answers else pytest.raises(OSError, match="refused"):
                assert served.get("/livez", to=each)[0] == endpoint.OK


def _served_alone(host: str, silent: set[str], kept: ExitStack) -> Served:
    """Serve on a port that is bound at the addresses that are not served: no other process can answer there."""
    for _ in range(10):
        port = 0
        for address in silent:
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            bound = kept.enter_context(socket.socket(family))
            bound.bind((address, port))
            port = bound.getsockname()[1]
        with suppress(AddressTakenError):
            return Served(host, port)
    raise AssertionError("each port is taken by another process")


def test_any_address_is_one_of_ipv4_without_ipv6(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "has_dualstack_ipv6", lambda: False)
    assert Served("::").get("/livez")[0] == endpoint.OK


def test_a_host_without_an_address_is_an_error() -> None:
    with pytest.raises(AddressTakenError, match=r"no-such-host\.invalid"):
        Served("no-such-host.invalid")


def test_a_taken_port_is_an_error_with_its_address(served: Served) -> None:
    with pytest.raises(AddressTakenError) as refused:
        Endpoint(LOOPBACK, served.port, served.worker.health, served.metrics)
    assert (refused.value.host, refused.value.port) == (LOOPBACK, served.port)


def test_hundreds_of_slow_clients_hold_up_no_probe(served: Served) -> None:
    before = threading.active_count()
    with ExitStack() as stack:
        slow = [stack.enter_context(socket.create_connection((LOOPBACK, served.port))) for _ in range(SLOW_CLIENTS)]
        for number, one in enumerate(slow):
            with suppress(OSError):
                one.sendall(b"GET /livez HTTP/1.0" if number % 2 else b"G")
        for path in ("/livez", "/readyz", "/metrics"):
            assert served.get(path, seconds=2)[0] == 200
        assert threading.active_count() <= before + 3
        assert all(is_closed(one) for one in slow[:-OPEN_AT_ONCE]), "beyond the limit the oldest are closed"


def test_a_request_byte_by_byte_is_closed_in_time(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "_REQUEST_SECONDS", 0.3)
    began = time.monotonic()
    with socket.create_connection((LOOPBACK, served.port)) as slow, suppress(ConnectionError):
        while time.monotonic() < began + 5:
            slow.sendall(b"a")
            time.sleep(0.05)  # the fault itself
    assert time.monotonic() - began < 2


def test_an_answer_that_is_not_fetched_is_closed_in_time(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "_REQUEST_SECONDS", 0.3)
    served.metrics.help = "x" * 8_000_000  # more than the sockets' buffers hold
    with socket.create_connection((LOOPBACK, served.port)) as slow:
        slow.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        assert served.get("/livez", seconds=2)[0] == 200
        time.sleep(0.6)  # the fault itself
        assert sum(map(len, iter(lambda: slow.recv(1_000_000), b""))) < len(served.metrics.help)


def test_one_answer_serves_all_that_wait_for_it(served: Served) -> None:
    served.metrics.may_go_on.clear()
    with ThreadPoolExecutor(8) as clients:
        asked = [clients.submit(served.get, "/metrics") for _ in range(8)]
        assert served.get("/livez", seconds=2)[0] == 200, "another path waits for no other request"
        served.metrics.may_go_on.set()
        assert {each.result()[0] for each in asked} == {200}
    assert served.metrics.made <= 2


def test_a_request_larger_than_any_probe_is_closed(served: Served) -> None:
    with socket.create_connection((LOOPBACK, served.port), timeout=5) as one, suppress(OSError):
        one.sendall(b"GET /livez HTTP/1.0\r\n" + b"a: b\r\n" * 2_000)
        assert one.recv(100) == b""
    assert served.get("/livez")[0] == 200


def test_what_is_no_get_is_refused(served: Served) -> None:
    with socket.create_connection((LOOPBACK, served.port), timeout=5) as one:
        one.sendall(b"PUT /livez HTTP/1.1\r\n\r\n")
        assert one.recv(100).startswith(b"HTTP/1.0 400 Bad Request\r\n")


def is_closed(one: socket.socket) -> bool:
    one.settimeout(0)
    try:
        return one.recv(1) == b""
    except ConnectionResetError:
        return True
    except BlockingIOError:
        return False


def test_names_in_an_answer_steer_no_terminal(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "a\x1b]0;t\x07\x9b31m\u202eb"
    monkeypatch.setattr(served.worker.health, "ready", lambda _: Report(200, {"notProven": [name]}))
    _, _, body = served.get("/readyz")
    assert json.loads(body) == {"notProven": [name]}
    assert body.decode().rstrip("\n").isprintable()
