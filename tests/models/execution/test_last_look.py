"""The last look says no whenever the API server holds something that makes a command pointless or wrong."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from evictstream.models.execution.last_look import Veto, last_look, read_seen_node, read_seen_pod
from evictstream.models.instants import instant_text
from evictstream.models.kubernetes.taints import BareTaint, Taint
from evictstream.models.kubernetes.tolerations import Toleration
from evictstream.models.messages.vocabulary import Outcome
from tests.models.execution.samples import T0_US, command

SECOND_US = 1_000_000
UNREACHABLE = "node.kubernetes.io/unreachable"
NOT_READY = "node.kubernetes.io/not-ready"


def pod(**changes: Any) -> dict[str, Any]:
    meta = {"name": "a", "namespace": "shop", "uid": "uid-a", "resourceVersion": "7"} | changes.pop("meta", {})
    spec = {"nodeName": "n-1"} | changes.pop("spec", {})
    return {"metadata": meta, "spec": spec, "status": {"phase": "Running"} | changes.pop("status", {})}


def node(*taints: dict[str, Any], uid: str = "uid-n-1") -> dict[str, Any]:
    return {"metadata": {"name": "n-1", "uid": uid}, "spec": {"taints": list(taints)} if taints else {}}


def taint(key: str = "maintenance", effect: str = "NoExecute", value: str = "") -> dict[str, str]:
    return {"key": key, "effect": effect, "value": value}


def tolerates(key: str = "maintenance", seconds: int | None = None) -> dict[str, Any]:
    return {"key": key, "operator": "Exists"} | ({} if seconds is None else {"tolerationSeconds": seconds})


def equal(value: str, seconds: int) -> dict[str, Any]:
    return {"key": "maintenance", "operator": "Equal", "value": value, "tolerationSeconds": seconds}


def look(
    pod_object: dict[str, Any] | None, node_object: dict[str, Any] | None, at_us: int = T0_US, **of_command: Any
) -> Veto | None:
    return last_look(
        command(**of_command),
        None if pod_object is None else read_seen_pod(json.dumps(pod_object).encode()),
        None if node_object is None else read_seen_node(json.dumps(node_object).encode()),
        now_us=at_us,
        comparison_operators=False,
    )


@pytest.mark.parametrize(
    ("pod_object", "node_object", "outcome"),
    [
        pytest.param(pod(), node(taint()), None, id="untolerated pod leaves"),
        pytest.param(pod(), node(taint("other")), None, id="untolerated for another taint leaves"),
        pytest.param(None, node(taint()), Outcome.GONE, id="no pod"),
        pytest.param(pod(meta={"uid": "uid-other"}), node(taint()), Outcome.GONE, id="another pod of the name"),
        pytest.param(
            pod(meta={"deletionTimestamp": "2026-11-21T02:15:53Z"}), node(taint()), Outcome.OBSOLETE, id="terminating"
        ),
        pytest.param(pod(status={"phase": "Succeeded"}), node(taint()), Outcome.OBSOLETE, id="succeeded"),
        pytest.param(pod(status={"phase": "Failed"}), node(taint()), Outcome.OBSOLETE, id="failed"),
        pytest.param(pod(spec={"nodeName": "n-2"}), node(taint()), Outcome.OBSOLETE, id="bound elsewhere"),
        pytest.param(pod(spec={"nodeName": ""}), node(taint()), Outcome.OBSOLETE, id="not bound"),
        pytest.param(
            pod(meta={"annotations": {"kubernetes.io/config.mirror": "x"}}),
            node(taint()),
            Outcome.OBSOLETE,
            id="mirror",
        ),
        pytest.param(pod(), None, Outcome.OBSOLETE, id="node gone"),
        pytest.param(pod(), node(taint(), uid="uid-other"), Outcome.OBSOLETE, id="another node of the name"),
        pytest.param(pod(), node(), Outcome.OBSOLETE, id="no taint left"),
        pytest.param(pod(), node(taint(effect="NoSchedule")), Outcome.OBSOLETE, id="only another effect left"),
        pytest.param(
            pod(spec={"tolerations": [tolerates()]}), node(taint()), Outcome.OBSOLETE, id="tolerated forever now"
        ),
        pytest.param(
            pod(spec={"tolerations": [tolerates(seconds=60)]}), node(taint()), Outcome.OBSOLETE, id="tolerated a while"
        ),
    ],
)
def test_a_command_of_an_untolerated_pod(
    pod_object: dict[str, Any] | None, node_object: dict[str, Any] | None, outcome: Outcome | None
) -> None:
    found = look(pod_object, node_object)

    assert (found and found.outcome) == outcome


@pytest.mark.parametrize(
    ("tolerations", "taints", "leaves"),
    [
        pytest.param([tolerates(seconds=300)], [taint()], True, id="deadline passed"),
        pytest.param([tolerates(seconds=600)], [taint()], False, id="given more time"),
        pytest.param([tolerates(seconds=100)], [taint()], True, id="given less time"),
        pytest.param([tolerates()], [taint()], False, id="forever now"),
        pytest.param([], [taint()], True, id="toleration removed"),
        pytest.param([tolerates(seconds=300)], [], False, id="untainted"),
        pytest.param(
            [tolerates(seconds=300), tolerates("other", 9)], [taint("other")], False, id="another taint, tolerated"
        ),
        pytest.param([tolerates(seconds=300)], [taint(), taint("other")], True, id="another taint, untolerated"),
        pytest.param(
            [tolerates(), tolerates("other", 9)], [taint(), taint("other")], False, id="reason tolerated forever"
        ),
    ],
)
def test_a_command_whose_toleration_has_expired(
    *, tolerations: list[dict[str, Any]], taints: list[dict[str, str]], leaves: bool
) -> None:
    toleration = Toleration(key="maintenance", operator="Exists", toleration_seconds=300)
    found = look(
        pod(spec={"tolerations": tolerations}),
        node(*taints),
        T0_US + 301 * SECOND_US,
        toleration=toleration,
        deadline=instant_text(T0_US + 300 * SECOND_US),
        issued_at=instant_text(T0_US + 300 * SECOND_US),
    )

    assert (found is None) == leaves


def test_a_clock_behind_the_service_holds_nothing_back() -> None:
    toleration = Toleration(key="maintenance", operator="Exists", toleration_seconds=300)
    found = look(
        pod(spec={"tolerations": [tolerates(seconds=300)]}),
        node(taint()),
        T0_US,
        toleration=toleration,
        deadline=instant_text(T0_US + 300 * SECOND_US),
        issued_at=instant_text(T0_US + 300 * SECOND_US),
    )

    assert found is None


def test_not_ready_that_became_unreachable_is_the_same_outage() -> None:
    found = look(
        pod(spec={"tolerations": [tolerates(UNREACHABLE, 300), tolerates(NOT_READY, 300)]}),
        node(taint(UNREACHABLE)),
        T0_US + 301 * SECOND_US,
        taint=BareTaint(key=NOT_READY, effect="NoExecute"),
        toleration=Toleration(key=NOT_READY, operator="Exists", toleration_seconds=300),
        deadline=instant_text(T0_US + 300 * SECOND_US),
    )

    assert found is None


def test_the_other_health_taint_stands_for_no_present_one() -> None:
    found = look(
        pod(spec={"tolerations": [tolerates(UNREACHABLE), tolerates(NOT_READY, 300)]}),
        node(taint(UNREACHABLE), taint(NOT_READY)),
        T0_US + 301 * SECOND_US,
        taint=BareTaint(key=NOT_READY, effect="NoExecute"),
        toleration=Toleration(key=NOT_READY, operator="Exists", toleration_seconds=300),
        deadline=instant_text(T0_US + 300 * SECOND_US),
    )

    assert found is None


@pytest.mark.parametrize("text", [b"", b"[]", b'{"metadata":{}}', b'{"metadata":{"uid":1},"spec":{}}', b"\xff"])
def test_what_is_no_object_is_an_error(text: bytes) -> None:
    with pytest.raises((msgspec.DecodeError, UnicodeDecodeError)):
        read_seen_pod(text)


def test_null_stands_for_absent_in_what_the_api_server_holds() -> None:
    """As everywhere in Kubernetes, and as the service reads it: what decided about a pod must not be refused here."""
    mirror = {"uid": "uid-a", "annotations": {"kubernetes.io/config.mirror": None, "other": 7}}
    assert read_seen_pod(json.dumps({"metadata": mirror, "spec": {}}).encode()).is_mirror
    found = read_seen_node(json.dumps(node({"key": "maintenance", "value": None, "effect": "NoExecute"})).encode())
    assert found.taints == [Taint("maintenance", "", "NoExecute")]


@pytest.mark.parametrize("levels", [990, 1_500, 9_995])
def test_an_object_too_deep_for_a_decoder_is_read(levels: int) -> None:
    """A tenant's pod must not evade its eviction by what it writes into `managedFields`."""
    deep = b'{"f:a":' * levels + b"{}" + b"}" * levels
    for read, found in ((read_seen_pod, pod()), (read_seen_node, node(taint()))):
        found["metadata"]["managedFields"] = "DEEP"
        text = json.dumps(found).encode().replace(b'"DEEP"', deep)
        found["metadata"].pop("managedFields")
        assert read(text) == read(json.dumps(found).encode())


@pytest.mark.parametrize(
    ("listed", "value", "saves"),
    [
        pytest.param([equal("planned", 60), equal("now", 300)], "now", True, id="another value, and it plays a part"),
        pytest.param([equal("planned", 60), equal("now", 0)], "now", False, id="for no time at all"),
        pytest.param(
            [equal("planned", 60), tolerates(seconds=60)], "now", True, id="a value that is passed over first"
        ),
        pytest.param([tolerates(seconds=60)], "now", False, id="another value, and nothing looks at it"),
        pytest.param([equal("planned", 60)], "planned", False, id="the value of the command"),
        pytest.param([equal("planned", 60), equal("planned", 90)], "planned", False, id="the one of the command first"),
        pytest.param([equal("", 1), equal("planned", 60)], "planned", False, id="another one first, for another value"),
    ],
)
def test_a_value_that_came_later_begins_a_window(listed: list[dict[str, Any]], value: str, *, saves: bool) -> None:
    """12.4: the command's deadline is over, but the window of what is in use now may be not."""
    found = look(
        pod(spec={"tolerations": listed}),
        node(taint(value=value)),
        taint=BareTaint("maintenance", "planned", "NoExecute"),
        toleration=Toleration("maintenance", "Equal", "planned", "", 60),
    )
    assert (found is not None) is saves


def test_an_added_toleration_by_value_begins_a_window() -> None:
    found = look(
        pod(spec={"tolerations": [equal("planned", 30), tolerates(seconds=60)]}),
        node(taint(value="planned")),
        taint=BareTaint("maintenance", "planned", "NoExecute"),
        toleration=Toleration("maintenance", "Exists", "", "", 60),
    )
    assert found is not None
    assert found.reason == "the pod tolerates maintenance=planned:NoExecute for 30 s since it has that value"


@pytest.mark.parametrize(
    ("in_the_spec", "annotated", "outcome"),
    [
        pytest.param(3605, 5, None, id="moved, its time is over"),
        pytest.param(None, 5, None, id="moved away, its time is over"),
        pytest.param(3606, 5, Outcome.OBSOLETE, id="spec edited since"),
        pytest.param(3605, 60, Outcome.OBSOLETE, id="annotation edited since"),
        pytest.param(3605, None, Outcome.OBSOLETE, id="annotation gone"),
    ],
)
def test_last_look_reads_moved_seconds(in_the_spec: int | None, annotated: int | None, outcome: Outcome | None) -> None:
    identity = {"key": "maintenance", "operator": "Exists", "effect": "NoExecute"}
    spec = identity if in_the_spec is None else identity | {"tolerationSeconds": in_the_spec}
    built_in = {} if in_the_spec is None else {"builtInSeconds": 3605}
    entries = [identity | {"tolerationSeconds": annotated} | built_in]
    annotations = {} if annotated is None else {"evictstream.io/tolerations": json.dumps(entries)}
    seen = pod(meta={"annotations": annotations}, spec={"tolerations": [spec]})
    before = Toleration("maintenance", "Exists", "", "NoExecute", 5, in_the_spec)
    veto = look(seen, node(taint()), at_us=T0_US + 5 * SECOND_US, toleration=before)
    assert (None if veto is None else veto.outcome) == outcome
