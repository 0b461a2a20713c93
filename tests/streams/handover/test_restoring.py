"""How pods of tainted nodes are given back: no late timer stays, and nothing fails in silence."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any, Final

import msgspec
import pytest

from evictstream.streams.errors import ApiUnreachableError
from evictstream.streams.handover import restoring
from evictstream.streams.handover.api_requests import ApiRequests
from evictstream.streams.handover.pod_changes import ChangeOutcome, ChangeReport, LoosenPods, RestorePods
from evictstream.streams.handover.pod_states import ClusterPod
from evictstream.streams.handover.restoring import NODES_SECONDS, RestoreRun, TaintedNodes
from tests.streams.handover.scripted import Answer, Scripted

TOLERATION: Final = {"key": "example.com/k", "operator": "Exists", "effect": "NoExecute"}
REFUSED: Final[Answer] = (403, {}, {"kind": "Status", "message": "not yours"})
NO_SERVER: Final[Answer] = (0, {}, {})

Object = dict[str, Any]


def pod(seconds: int | None, entry: Object | None, *, node: str = "n") -> Object:
    metadata: Object = {"name": "p", "namespace": "shop", "uid": "u", "resourceVersion": "1"}
    if entry is not None:
        metadata["annotations"] = {"evictstream.io/tolerations": json.dumps([{**TOLERATION, **entry}])}
    toleration = TOLERATION if seconds is None else {**TOLERATION, "tolerationSeconds": seconds}
    return {"metadata": metadata, "spec": {"tolerations": [toleration], "nodeName": node}}


MOVED: Final = pod(3630, {"tolerationSeconds": 30, "builtInSeconds": 3630})
DONE: Final[Answer] = (200, {}, pod(30, None))
LOOSENED: Final[Answer] = (200, {}, pod(None, {"tolerationSeconds": 30}))
KEPT: Final[Answer] = (200, {}, MOVED)


def read(what: Object) -> ClusterPod:
    return msgspec.json.decode(json.dumps(what), type=ClusterPod)


def steps(server: Scripted) -> list[str]:
    """What each patch does: `remove` takes seconds out of the spec, `add` writes them."""
    return [body[2]["op"] for body in server.bodies if body is not None]


@pytest.fixture(autouse=True)
def _quick_settling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restoring, "SETTLE_SECONDS", 0.02)


def restored(
    requests: ApiRequests, pods: list[Object], tainted: Iterator[set[str]] | None = None
) -> tuple[ChangeReport, bool]:
    """Restore pods; each look at the nodes finds the next set, and `n` tainted if none is given."""
    report = ChangeReport()
    loosen = LoosenPods(requests=requests, nodes=lambda: frozenset(next(tainted) if tainted else {"n"}))
    run = RestoreRun(requests=requests, loosen=loosen, restore=RestorePods(requests=requests, is_dry_run=False))
    is_answered = True
    try:
        run.run(map(read, pods), report, lambda _: None)
    except ApiUnreachableError:
        is_answered = False
    return report, is_answered


def test_pods_of_tainted_nodes_are_loosened_first(server: Scripted, requests: ApiRequests) -> None:
    server.answers = [DONE, LOOSENED, DONE]
    report, _ = restored(requests, [{**MOVED, "spec": {**MOVED["spec"], "nodeName": "other"}}, MOVED])
    assert steps(server) == ["add", "remove", "add"]
    assert (report.outcomes, report.loosened, report.is_whole) == ({ChangeOutcome.CHANGED: 2}, 0, True)


def test_seconds_come_back_once_the_late_timer_has_ended(
    server: Scripted, requests: ApiRequests, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restoring, "SETTLE_SECONDS", 0.3)
    server.answers = [LOOSENED, LOOSENED, DONE]
    report, _ = restored(requests, [MOVED, MOVED])
    assert steps(server) == ["remove", "remove", "add", "add"]
    assert (report.outcomes, report.loosened) == ({ChangeOutcome.CHANGED: 2}, 0)


def test_a_node_tainted_meanwhile_has_its_pods_loosened(server: Scripted, requests: ApiRequests) -> None:
    server.answers = [DONE, LOOSENED, DONE]
    looks = iter([set[str](), {"n"}])
    report, _ = restored(requests, [MOVED, MOVED], looks)
    assert steps(server) == ["add", "remove", "add"]
    assert report.outcomes == {ChangeOutcome.CHANGED: 2}


def test_nodes_are_read_again_within_a_limit() -> None:
    now, looks = [100.0], iter([frozenset({"a"}), frozenset({"b"})])
    nodes = TaintedNodes(lambda: next(looks), clock=lambda: now[0])
    assert nodes() == {"a"}
    now[0] += NODES_SECONDS - 0.1
    assert nodes() == {"a"}
    now[0] += 0.1
    assert nodes() == {"b"}


def test_a_refused_loosening_fails_and_restores_nothing(server: Scripted, requests: ApiRequests) -> None:
    server.answers = [REFUSED, DONE]
    report, _ = restored(requests, [MOVED])
    assert steps(server) == ["remove"]
    assert report.outcomes == {ChangeOutcome.FAILED: 1}
    assert report.failures == [("shop/p", "403: not yours")]
    assert (report.loosened, report.is_whole) == (0, True)


def test_seconds_that_the_policy_puts_back_stay(server: Scripted, requests: ApiRequests) -> None:
    server.answers = [KEPT, DONE]
    report, _ = restored(requests, [MOVED])
    assert steps(server) == ["remove"]
    assert report.outcomes == {ChangeOutcome.UNCHANGED: 1}


def test_a_stop_behind_loosening_counts_the_pod(server: Scripted, requests: ApiRequests, stop: threading.Event) -> None:
    server.answers = [LOOSENED]
    requests.is_stopped = lambda: stop.is_set() or bool(server.asked)
    report, _ = restored(requests, [MOVED] * 3)
    assert steps(server) == ["remove"]
    assert (report.asked, report.loosened, report.is_whole) == (0, 1, False)


def test_a_refused_restore_behind_loosening_is_counted_so(server: Scripted, requests: ApiRequests) -> None:
    server.answers = [LOOSENED, REFUSED]
    report, _ = restored(requests, [MOVED])
    assert report.outcomes == {ChangeOutcome.FAILED: 1}
    assert (report.loosened, report.is_whole) == (1, True)


def test_loosened_pods_are_counted_when_the_server_goes(server: Scripted, requests: ApiRequests) -> None:
    server.answers = [LOOSENED, NO_SERVER]
    report, is_answered = restored(requests, [MOVED])
    assert not is_answered
    assert (report.loosened, report.is_whole) == (1, False)


def test_a_second_run_restores_what_is_loosened(server: Scripted, requests: ApiRequests) -> None:
    server.answers = [DONE]
    report, _ = restored(requests, [LOOSENED[2]])
    assert steps(server) == ["add"]
    assert (report.outcomes, report.loosened) == ({ChangeOutcome.CHANGED: 1}, 0)
