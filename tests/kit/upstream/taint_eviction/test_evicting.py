"""semantics.md 6.8 to 6.11: attempts, failures as data, special pods, Events, metrics."""

from __future__ import annotations

import pytest

from evictstream.kit.upstream.taint_eviction import (
    BUCKETS,
    CONDITION_MESSAGE,
    CONDITION_REASON,
    CONDITION_STATUS,
    CONDITION_TYPE,
    COUNTER_NAME,
    HISTOGRAM_NAME,
    ApiRefusal,
    ApiServer,
    DeletionMetrics,
    PodDeleted,
    Request,
    upstream_latency,
)
from evictstream.models.kubernetes import NO_EXECUTE, UNREACHABLE, Taint
from tests.kit.upstream.taint_eviction.stage import (
    A,
    B,
    Stage,
    Step,
    node,
    node_gone,
    pod,
    pod_gone,
    restart,
    tol,
    us,
)


def refusing(start: float, end: float, request: Request = Request.DELETE, address: str | None = None) -> ApiServer:
    return ApiServer((ApiRefusal(us(start), us(end), request, address),))


FIVE = [
    "0 fail p1 1 delete",
    "0.01 fail p1 2 delete",
    "0.02 fail p1 3 delete",
    "0.03 fail p1 4 delete",
    "0.04 fail p1 5 delete",
    "0.05 forget p1",
]
LOST = [
    "9.015 fail p1 1 read",
    "9.025 fail p1 2 read",
    "9.035 fail p1 3 read",
    "9.045 fail p1 4 read",
    "9.055 fail p1 5 read",
    "9.065 forget p1",
]


@pytest.mark.parametrize(
    ("api", "steps", "log"),
    [
        pytest.param(
            refusing(0, 1000), [node(0, A), pod(0)], FIVE, id="6.9 five attempts, 10 ms apart, then forgotten"
        ),
        pytest.param(
            refusing(0, 0.035), [node(0, A), pod(0)], [*FIVE[:4], "0.04 delete p1"], id="6.9 the fifth succeeds"
        ),
        pytest.param(
            refusing(0, 0.01), [node(0, A), pod(0)], [FIVE[0], "0.01 delete p1"], id="6.9 the second succeeds"
        ),
        pytest.param(
            refusing(0, 1000, Request.READ),
            [node(0, A), pod(0)],
            [line.replace("delete", "read") for line in FIVE],
            id="6.9 any error ends the attempt: read",
        ),
        pytest.param(
            refusing(0, 1000, Request.WRITE_CONDITION),
            [node(0, A), pod(0)],
            [line.replace("delete", "write condition") for line in FIVE],
            id="6.9 any error ends the attempt: condition",
        ),
        pytest.param(
            refusing(0, 1000, Request.DELETE, "ns/p2"),
            [node(0, A), pod(0)],
            ["0 delete p1"],
            id="6.9 others are not concerned",
        ),
        pytest.param(
            refusing(0, 1000),
            [node(0, A), pod(0), pod(1, tol("b"))],
            [*FIVE, "1 fail p1 1 delete", *[f"1.0{n} fail p1 {n + 1} delete" for n in range(1, 5)], "1.05 forget p1"],
            id="6.9 something else queues the pod: five attempts more",
        ),
        pytest.param(
            refusing(0, 1),
            [node(0, A), pod(0), node(500, A, B)],
            [*FIVE, "500 delete p1"],
            id="6.9 forgotten for 500 s",
        ),
        pytest.param(
            refusing(0, 1), [node(0, A), pod(0), pod(500, phase="Failed")], FIVE, id="6.9 a status does not queue it"
        ),
        pytest.param(
            refusing(0, 1000),
            [node(0, A), pod(0), node(0.015)],
            FIVE,
            id="6.8 taint gone while an eviction without timer runs: nothing reported, nothing stopped",
        ),
        pytest.param(
            refusing(0, 0.03),
            [node(0, A), pod(0), node(0.015)],
            [*FIVE[:3], "0.03 delete p1"],
            id="6.8 and it deletes the pod of a clean node",
        ),
        pytest.param(
            refusing(0, 5.03),
            [node(0, A), pod(0, tol("a", 5)), node(5.015)],
            [
                "0 set p1 5",
                "5 fail p1 1 delete",
                "5.01 fail p1 2 delete",
                "5.015 cancel p1 too late",
                "5.02 fail p1 3 delete",
                "5.03 delete p1",
            ],
            id="row 32 taint gone while an eviction with timer runs: reported as cancelled, pod deleted",
        ),
        pytest.param(
            refusing(0, 1000),
            [node(0, A), pod(0, tol("a", 0)), pod(0.015, tol("a", 0), tol("b", 5))],
            [*FIVE[:2], "0.015 skip p1", *FIVE[2:]],
            id="6.8 adding a key that runs is ignored (#107543)",
        ),
        pytest.param(
            refusing(0, 0.05),
            [node(0, A), pod(0, tol("a", 0)), pod_gone(0.005), pod(0.015, tol("a", 60), uid="another")],
            [
                FIVE[0],
                "0.01 fail p1 2 read",
                "0.015 set p1 60.015",
                *FIVE[2:],
                "60.015 delete p1",
            ],
            id="6.8 the end of an eviction removes a newer key, whose timer still fires",
        ),
        pytest.param(
            refusing(0, 0.05),
            [node(0, A), pod(0, tol("a", 0)), pod_gone(0.005), pod(0.015, tol("a", 60), uid="another"), node(30)],
            [
                FIVE[0],
                "0.01 fail p1 2 read",
                "0.015 set p1 60.015",
                *FIVE[2:],
                "60.015 delete p1",
            ],
            id="6.8 and cannot be cancelled",
        ),
        pytest.param(
            refusing(0, 0.02),
            [node(0, A), pod(0, tol("a", 0)), pod(0.005, tol("a", 60), uid="another")],
            [FIVE[0], "0.005 skip p1", FIVE[1], "0.02 delete p1"],
            id="#125332 timer of the next pod of that name is skipped, and the old eviction takes it",
        ),
        pytest.param(
            refusing(0, 1000),
            [node(0, A), pod(0, tol("a", 0)), restart(0.015)],
            [
                *FIVE[:2],
                "0.015 skip p1",  # the node's key came first, and then the pod's own
                "0.015 fail p1 1 delete",
                "0.025 fail p1 2 delete",
                "0.035 fail p1 3 delete",
                "0.045 fail p1 4 delete",
                "0.055 fail p1 5 delete",
                "0.065 forget p1",
            ],
            id="6.7 a restart drops what runs and begins anew",
        ),
        pytest.param(
            ApiServer(attempt_us=us(2)), [node(0, A), pod(0)], ["2 delete p1"], id="6.9 an attempt that takes 2 s"
        ),
        pytest.param(
            ApiServer(attempt_us=us(22)),
            [node(0, A), pod(0, tol("a", 5)), node(6)],
            ["0 set p1 5", "6 cancel p1 too late", "27 delete p1"],
            id="row 32 deleted on a node that had been clean for 21 s",
        ),
        pytest.param(None, [node(0, A), pod(0, tol("a", 9)), pod_gone(3)], ["0 set p1 9", "3 cancel p1"], id="6.5.1"),
        pytest.param(
            None,
            [node(0, A), pod(0, tol("a", 9)), node_gone(1), pod_gone(3)],
            ["0 set p1 9", "3 cancel p1"],
            id="6.5.1 also after its node is gone",
        ),
    ],
)
def test_course(api: ApiServer | None, steps: list[Step], log: list[str]) -> None:
    assert Stage(api).play(steps).log == log


def test_a_pod_that_is_gone_is_a_failure() -> None:
    """6.9: "not found" is an error like any other; only reachable by a timer whose key was lost"""
    api = refusing(0, 0.05)
    steps = [
        node(0, A),
        pod(0, tol("a", 0)),
        pod_gone(0.005),
        pod(0.015, tol("a", 9), uid="another"),
        pod_gone(5),
    ]
    assert Stage(api).play(steps).log[-6:] == LOST


def deleted(steps: list[Step], api: ApiServer | None = None) -> list[PodDeleted]:
    return [one for one in Stage(api).play(steps).outcomes if isinstance(one, PodDeleted)]


def test_a_deletion_says_whom_it_hit_and_how() -> None:
    assert deleted([node(0, A), pod(0, tol("a", 5))], refusing(5, 5.01)) == [
        PodDeleted(us(5.01), "ns/p1", "uid-p1", "n1", attempt=2, fire_at_us=us(5), wrote_condition=False)
    ]


def test_the_condition_is_written_before_the_first_deletion() -> None:
    assert deleted([node(0, A), pod(0)])[0].wrote_condition
    assert (CONDITION_TYPE, CONDITION_STATUS) == ("DisruptionTarget", "True")
    assert (CONDITION_REASON, CONDITION_MESSAGE) == (
        "DeletionByTaintManager",
        "Taint manager: deleting due to NoExecute taint",
    )


def test_a_condition_that_could_not_be_written_is_written_later() -> None:
    assert deleted([node(0, A), pod(0)], refusing(0, 0.01, Request.WRITE_CONDITION))[0].wrote_condition


def test_the_old_timer_deletes_the_new_healthy_pod() -> None:
    """6.9, row 8: deleted by name, without UID"""
    steps = [
        node(0, A),
        node(0, name="n2"),
        pod(0, tol("a", 30)),
        pod(10, tol("a", 30), on="n2", uid="another"),
    ]
    assert [(one.at_us, one.uid, one.node_name) for one in deleted(steps)] == [(us(30), "another", "n2")]


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param([node(0, A), pod(0, mirror=True)], id="6.10 mirror pod of a static pod"),
        pytest.param([node(0, A), pod(0, phase="Succeeded")], id="6.10 finished pod (#96363)"),
        pytest.param([node(0, A), pod(0, phase="Failed")], id="6.10 failed pod (#96363)"),
        pytest.param([node(0, A), pod(0, terminating=True)], id="6.10 terminating pod"),
        pytest.param([node(0, A), pod(0, namespace="kube-system")], id="6.10 system pod"),
        pytest.param(
            [node(0, A), pod(0, tol("node.kubernetes.io/not-ready"), tol("node.kubernetes.io/unreachable"))],
            id="6.10 daemon pod under another taint",
        ),
    ],
)
def test_special_pods_are_evicted_like_any(steps: list[Step]) -> None:
    assert [one.at_us for one in deleted(steps)] == [0]


def test_daemon_pods_survive_health_taints_by_their_tolerations() -> None:
    """6.10"""
    health = Taint(UNREACHABLE, "", NO_EXECUTE)
    assert deleted([node(0, health), pod(0, tol("node.kubernetes.io/unreachable"))]) == []


def test_a_mirror_pod_is_evicted_again_each_time() -> None:
    """6.10, row 13: the kubelet creates it again"""
    steps = [node(0, A), *[step for at in (0, 10, 20) for step in (pod(at, mirror=True), pod_gone(at + 1))]]
    assert [one.at_us for one in deleted(steps)] == [us(0), us(10), us(20)]


@pytest.mark.parametrize(
    ("api", "steps", "events"),
    [
        pytest.param(
            None, [node(0, A), pod(0)], ["0 Marking for deletion Pod ns/p1"], id="6.11 one Event for an eviction"
        ),
        pytest.param(
            refusing(0, 1000),
            [node(0, A), pod(0)],
            ["0 Marking for deletion Pod ns/p1"],
            id="6.11 one Event, before the first attempt, also if all fail",
        ),
        pytest.param(
            ApiServer(attempt_us=us(3)),
            [node(0, A), pod(0)],
            ["0 Marking for deletion Pod ns/p1"],
            id="6.11 it does not wait for the API server",
        ),
        pytest.param(
            None,
            [node(0, A), pod(0, tol("a", 5)), pod(1, tol("a", 9))],
            ["5 Marking for deletion Pod ns/p1"],
            id="6.11 none when a timer is set or kept",
        ),
        pytest.param(
            None,
            [node(0, A), pod(0, tol("a", 5)), node(2)],
            ["2 Cancelling deletion of Pod ns/p1"],
            id="6.11 one for a cancel",
        ),
        pytest.param(
            None, [node(0, A), pod(0, tol("a")), node(2), pod_gone(3)], [], id="6.11 none if nothing was cancelled"
        ),
        pytest.param(
            None,
            [node(0, A), pod(0, tol("a", 5)), pod(2)],
            ["2 Cancelling deletion of Pod ns/p1", "2 Marking for deletion Pod ns/p1"],
            id="6.6.1 cancelled, then evicted",
        ),
        pytest.param(
            refusing(0, 1000),
            [node(0, A), pod(0), node(0.015)],
            ["0 Marking for deletion Pod ns/p1"],
            id="6.11 none for an eviction that runs without timer",
        ),
    ],
)
def test_events(api: ApiServer | None, steps: list[Step], events: list[str]) -> None:
    assert Stage(api).play(steps).events == events


def test_names_of_the_metrics() -> None:
    assert COUNTER_NAME == "taint_eviction_controller_pod_deletions_total"
    assert HISTOGRAM_NAME == "taint_eviction_controller_pod_deletion_duration_seconds"
    assert BUCKETS == (0.005, 0.025, 0.1, 0.5, 1, 2.5, 10, 30, 60, 120, 180, 240)


@pytest.mark.parametrize(
    ("elapsed_us", "value"),
    [
        pytest.param(0, 0.0, id="6.11 at once"),
        pytest.param(1, 1e12, id="6.11 1 microsecond"),
        pytest.param(5_000, 5e15, id="6.11 5 ms"),
        pytest.param(9_000_000, 9e18, id="6.11 9 s, the last second that fits"),
        pytest.param(10_000_000, 10**19 - 2**64, id="6.11 10 s comes out negative"),
    ],
)
def test_the_observed_latency_is_a_wrong_number(elapsed_us: int, value: float) -> None:
    """#142617"""
    assert upstream_latency(elapsed_us) == value


def test_buckets() -> None:
    metrics = DeletionMetrics()
    for elapsed_us in (0, 5_000, 10_000_000):
        metrics.observe(0, elapsed_us)
    assert metrics.deletions_total == 3
    assert metrics.buckets == [2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]
    assert metrics.observed_sum == 5e15 + (10**19 - 2**64)


def test_only_successful_deletions_are_counted() -> None:
    stage = Stage(refusing(0, 1, address="ns/p1")).play([node(0, A), pod(0), pod(0, name="p2")])
    assert stage.controller.metrics.deletions_total == 1


def test_metrics_begin_anew_with_a_restart() -> None:
    assert Stage().play([node(0, A), pod(0), pod_gone(1), restart(2)]).controller.metrics.deletions_total == 0
