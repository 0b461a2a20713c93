"""semantics.md 5, kubelet; cases of TestGeneralPredicates in pkg/kubelet/lifecycle/predicate_test.go."""

from __future__ import annotations

import pytest

from evictstream.kit.rules.scheduling import AdmissionVerdict, is_static_pod, kubelet_admission
from evictstream.models.kubernetes import NO_EXECUTE, NO_SCHEDULE, PREFER_NO_SCHEDULE, Taint, Toleration

FOO = Taint("foo", "", NO_SCHEDULE)
BAR = Taint("bar", "", NO_EXECUTE)
REFUSED = AdmissionVerdict(
    admitted=False,
    reason="TaintToleration",
    message="Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate",
    taint=BAR,
)


@pytest.mark.parametrize(
    ("tolerations", "taints", "admitted"),
    [
        pytest.param((), (), True, id="TestGeneralPredicates no taints"),
        pytest.param(
            (Toleration("foo"), Toleration("bar")), (FOO, BAR), True, id="TestGeneralPredicates taint/toleration match"
        ),
        pytest.param((), (FOO,), True, id="TestGeneralPredicates NoSchedule not match"),
        pytest.param((), (BAR,), False, id="TestGeneralPredicates NoExecute not match"),
        pytest.param(
            (), (Taint("baz", "", PREFER_NO_SCHEDULE),), True, id="TestGeneralPredicates PreferNoSchedule not match"
        ),
        pytest.param((), (FOO, BAR, Taint("c", "", NO_EXECUTE)), False, id="3.3 the first NoExecute taint is named"),
        pytest.param((Toleration("bar", "Exists", "", NO_SCHEDULE),), (BAR,), False, id="3.1 another effect"),
        pytest.param((Toleration("bar", "Exists", "", NO_EXECUTE, 0),), (BAR,), True, id="5 seconds are not looked at"),
        pytest.param((Toleration("bar", "Exists", "", NO_EXECUTE, -1),), (BAR,), True, id="5 negative ones neither"),
        pytest.param((Toleration("", "Exists"),), (FOO, BAR), True, id="3.1 Exists alone"),
    ],
)
def test_admission(tolerations: tuple[Toleration, ...], taints: tuple[Taint, ...], *, admitted: bool) -> None:
    assert kubelet_admission(tolerations, taints) == (AdmissionVerdict(admitted=True) if admitted else REFUSED)


def test_static_pods_are_exempt() -> None:
    """TestGeneralPredicates static pods ignore taints"""
    assert kubelet_admission((), (FOO, BAR), is_static=True) == AdmissionVerdict(admitted=True)


@pytest.mark.parametrize(
    ("gate", "ran", "admitted"),
    [
        pytest.param(True, True, True, id="gate on, it ran before"),
        pytest.param(True, False, False, id="gate on, it is new"),
        pytest.param(False, True, False, id="gate off, it ran before"),
        pytest.param(False, False, False, id="gate off, it is new"),
    ],
)
def test_pods_that_ran_before_a_restart_of_the_kubelet(*, gate: bool, ran: bool, admitted: bool) -> None:
    """predicate.go skipIgnorableChecks"""
    found = kubelet_admission((), (BAR,), ran_before_restart=ran, not_evict_pod_on_kubelet_restart=gate)
    assert found.admitted is admitted


@pytest.mark.parametrize(("gate", "admitted"), [(True, True), (False, False)])
def test_comparisons_count_with_the_gate(*, gate: bool, admitted: bool) -> None:
    tolerations = (Toleration("sla", "Gt", "5", NO_EXECUTE),)
    found = kubelet_admission(tolerations, (Taint("sla", "9", NO_EXECUTE),), comparison_operators=gate)
    assert found.admitted is admitted


@pytest.mark.parametrize(
    ("annotations", "is_static"),
    [
        pytest.param({"kubernetes.io/config.source": "file"}, True, id="from a file"),
        pytest.param({"kubernetes.io/config.source": "http"}, True, id="from an address"),
        pytest.param({"kubernetes.io/config.source": "api"}, False, id="from the API server"),
        pytest.param({}, False, id="no annotations"),
        pytest.param({"kubernetes.io/config.mirror": "hash"}, False, id="the mirror annotation is another thing"),
    ],
)
def test_static_pods(annotations: dict[str, str], *, is_static: bool) -> None:
    """pkg/kubelet/types/pod_update.go IsStaticPod"""
    assert is_static_pod(annotations) is is_static
