"""Three answers for three things: a pod's story, why nothing was decided about it, and that no such pod is known."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable
from typing import Any

import msgspec
import pytest

from evictstream.kit.recordings.record import RecordedRecord
from evictstream.kit.replay.asked_pod import AskedPod
from evictstream.kit.replay.cluster_tables import ClusterTables
from evictstream.kit.replay.explanation import Explainer, Explanation, PodAnswer, differing
from evictstream.kit.replay.pod_observer import PodObserver
from evictstream.kit.replay.replay import Replay
from evictstream.kit.replay.story import Teller
from evictstream.kit.replay.why_nothing import PodCase
from evictstream.models.instants import instant_text
from evictstream.models.messages.codec import encode
from evictstream.models.messages.decision import DecisionCause
from evictstream.models.messages.vocabulary import CauseKind, DecisionKind, Verdict
from evictstream.streams.worker.service_config import cluster_rules
from tests.kit.replay.test_story import decision, timer
from tests.kit.replay.test_what_if import BEGIN_MS, SETTINGS, Log

K = {"key": "k", "effect": "NoExecute"}
OTHER = {"key": "other", "value": "v", "effect": "NoExecute"}
ANY = {"operator": "Exists"}
FOR_300 = {"key": "k", "operator": "Exists", "tolerationSeconds": 300}


def explained(records: Iterable[RecordedRecord], asked: str, *, plays: bool = True) -> Explanation:
    observer = PodObserver(AskedPod(asked), cluster_rules(SETTINGS))
    run = Replay(SETTINGS, partitions=1, plays_executor=plays, observer=observer)
    return Explainer(observer.asked).take_replay(run, observer, records)


def cases(records: Iterable[RecordedRecord], asked: str = "shop/web") -> list[tuple[PodCase, str]]:
    found = explained(records, asked)
    assert found.answer is PodAnswer.NOTHING
    (pod,) = found.pods
    return [(one.why.case, one.why.text) for one in pod.cases]


def pod(log: Log, *tolerations: dict[str, Any], name: str = "web", phase: str = "Running", **more: Any) -> None:
    """Add a pod; `more` is of its metadata, or says `namespace`, `node`, `change` and `second`."""
    node, change, second = more.pop("node", "n"), more.pop("change", "MODIFIED"), more.pop("second", 1)
    object_ = {
        "metadata": {"namespace": "shop", "name": name, "uid": f"uid-{name}"} | more,
        "spec": {"nodeName": node, "tolerations": list(tolerations)},
        "status": {"phase": phase},
    }
    log.add(BEGIN_MS + second * 1_000, "Pod", node, object_, change)


def node(log: Log, *taints: dict[str, str], second: int = 0, change: str = "MODIFIED") -> None:
    object_ = {"metadata": {"name": "n", "uid": "uid-n"}, "spec": {"taints": list(taints)}}
    log.add(BEGIN_MS + second * 1_000, "Node", "n", object_, change)


def test_a_node_without_taints_is_named() -> None:
    log = Log()
    node(log)
    pod(log)
    assert cases(log.records) == [(PodCase.NO_TAINT, "Its node n has no NoExecute taint.")]


def test_the_toleration_of_each_taint_is_named() -> None:
    log = Log()
    node(log, K, OTHER)
    pod(log, {"key": "k", "operator": "Exists", "effect": "NoExecute"}, ANY)
    assert cases(log.records) == [
        (
            PodCase.TOLERATED,
            (
                "It tolerates the taint k:NoExecute of n forever by its toleration k:NoExecute."
                " It tolerates the taint other=v:NoExecute of n forever by its toleration of any key."
            ),
        )
    ]


def test_what_ends_after_all_instants_is_said() -> None:
    log = Log()
    node(log, K)
    pod(log, {"key": "k", "operator": "Exists", "tolerationSeconds": 10**12})
    ((case, text),) = cases(log.records)
    assert (case, "for 1000000000000 s, which end after the year 9999" in text) == (PodCase.TOLERATED, True)


def test_a_node_of_which_nothing_was_recorded() -> None:
    log = Log()
    pod(log)
    assert cases(log.records) == [(PodCase.NODE_UNKNOWN, "Its node n is unknown.")]


def test_a_node_that_is_gone() -> None:
    log = Log()
    node(log)
    pod(log)
    node(log, second=5, change="DELETED")
    assert [case for case, _ in cases(log.records)] == [PodCase.NO_TAINT, PodCase.NODE_GONE]


@pytest.mark.parametrize(
    ("more", "case"),
    [
        ({"deletionTimestamp": "2026-11-21T10:00:00Z"}, PodCase.TERMINATING),
        ({"phase": "Succeeded"}, PodCase.FINISHED),
        ({"phase": "Failed"}, PodCase.FINISHED),
        ({"annotations": {"kubernetes.io/config.mirror": "x"}}, PodCase.MIRROR),
        ({"change": "DELETED"}, PodCase.GONE),
    ],
)
def test_a_pod_that_is_left_alone_says_why(more: dict[str, Any], case: PodCase) -> None:
    log = Log()
    node(log, K)
    pod(log, **more)
    assert [found for found, _ in cases(log.records)] == [case]


def test_lists_beyond_a_limit_are_said() -> None:
    log = Log()
    node(log, K)
    pod(log, *({"key": f"k{number}", "operator": "Exists"} for number in range(1_001)))
    assert [found for found, _ in cases(log.records)] == [PodCase.UNDECIDABLE]


def test_what_the_service_refuses_is_said() -> None:
    log = Log()
    pod(log)
    wrong = json.loads(log.records[0].value or b"")
    wrong["object"]["spec"]["nodeName"] = "else/where"
    records = [msgspec.structs.replace(log.records[0], value=json.dumps(wrong).encode())]
    assert [found for found, _ in cases(records)] == [PodCase.REFUSED]


def test_a_pod_of_no_node_is_known() -> None:
    log = Log()
    pod(log, node="")
    assert cases(log.records) == [(PodCase.UNBOUND, "It is not bound to a node.")]


def test_each_reason_has_its_time() -> None:
    log = Log()
    node(log)
    pod(log, ANY)
    node(log, K, second=10)
    node(log, second=20)
    pod(log, ANY, second=30, change="DELETED")
    (found,) = explained(log.records, "web").pods
    times = [BEGIN_MS + second * 1_000 for second in (1, 10, 20, 30)]
    assert [(one.at, one.why.case) for one in found.cases] == list(
        zip(
            [instant_text(at * 1_000) for at in times],
            [PodCase.NO_TAINT, PodCase.TOLERATED, PodCase.NO_TAINT, PodCase.GONE],
            strict=True,
        )
    )


def test_a_listing_that_does_not_hold_it_ends_it() -> None:
    log = Log()
    node(log)
    pod(log)
    listing: dict[str, Any] = {"resourceVersion": "9", "after": "", "through": None, "uids": {}}
    value = json.dumps({"cluster": "lab", "type": "LISTED", "listing": listing}).encode()
    log.records.append(msgspec.structs.replace(log.records[-1], key=b"lab", value=value, offset=2))
    assert [case for case, _ in cases(log.records)] == [PodCase.NO_TAINT, PodCase.GONE]


def two_namespaces() -> Log:
    log = Log()
    node(log, K)
    pod(log, name="web-0")
    pod(log, name="db-0")
    pod(log, name="db-0", namespace="dev", uid="uid-dev")
    return log


@pytest.mark.parametrize("asked", ["web-0", "pod/web-0", "pods/web-0", "shop/web-0", "uid-web-0"])
def test_one_pod_is_found_however_it_is_named(asked: str) -> None:
    found = explained(two_namespaces().records, asked)
    assert (found.answer, [one.address for one in found.pods]) == (PodAnswer.STORY, ["shop/web-0"])


def test_a_name_in_several_namespaces_lists_them() -> None:
    assert explained(two_namespaces().records, "db-0") == (PodAnswer.SEVERAL, [], ["dev/db-0", "shop/db-0"])


def test_a_namespace_is_not_taken_for_kubectls_word() -> None:
    log = two_namespaces()
    pod(log, name="web-0", namespace="pod", uid="uid-pod")
    (found,) = explained(log.records, "pod/web-0").pods
    assert found.uid == "uid-pod"


@pytest.mark.parametrize(
    ("asked", "alike"),
    [
        ("shop/wbe-0", ["shop/web-0"]),
        ("lab/web-0", ["shop/web-0"]),
        ("prod/db-0", ["dev/db-0", "shop/db-0"]),
        ("web", ["shop/web-0"]),
        ("0d5e7718-d806-41d1-8563-7133f0060f0e", []),
    ],
)
def test_a_pod_that_is_not_known_names_those_alike(asked: str, alike: list[str]) -> None:
    assert explained(two_namespaces().records, asked) == (PodAnswer.UNKNOWN, [], alike)


def test_a_pod_of_another_cluster_is_named_with_it() -> None:
    tables = ClusterTables(SETTINGS, partitions=1)
    tables.take(two_namespaces().records)
    explainer = Explainer(AskedPod("web-0"), cluster="prod")
    explainer.take(encode(of_web(DecisionKind.DUE, 1, pod="web-0")), 0, Teller.RECORDED)
    explainer.observed(tables.observed_pods(explainer.asked, BEGIN_MS * 1_000))
    assert explainer.explanation() == (PodAnswer.UNKNOWN, [], ["shop/web-0 of lab"])
    assert [*tables.addresses("prod")] == []


def test_pods_of_one_name_have_a_story_each() -> None:
    log = Log()
    node(log)
    pod(log, FOR_300)
    node(log, K, second=2)
    pod(log, FOR_300, second=3, change="DELETED")
    pod(log, ANY, second=4, uid="later")
    found = explained(log.records, "shop/web")
    assert [(one.uid, len(one.decisions), len(one.cases)) for one in found.pods] == [("uid-web", 2, 3), ("later", 0, 1)]


def test_what_follows_from_a_played_executor_is_called_played() -> None:
    log = Log()
    node(log, K)
    pod(log)
    node(log, second=10)
    (found,) = explained(log.records, "web").pods
    kinds = [(one.record.decision, one.teller) for one in found.decisions]
    assert kinds == [
        (DecisionKind.DUE, Teller.REPLAY),
        (DecisionKind.ISSUED, Teller.REPLAY),
        (DecisionKind.COMPLETED, Teller.PLAYED),
    ]
    assert [(one.why.case, one.teller) for one in found.cases] == [
        (PodCase.DUE, Teller.REPLAY),
        (PodCase.TERMINATING, Teller.PLAYED),
        (PodCase.GONE, Teller.PLAYED),
    ]


def test_what_was_recorded_after_a_played_eviction_is_told() -> None:
    log = Log()
    node(log, K)
    pod(log)
    pod(log, second=3)
    pod(log, second=4)
    pod(log, second=5, deletionTimestamp="2026-11-21T10:00:00Z")
    pod(log, second=6, change="DELETED")
    (found,) = explained(log.records, "web").pods
    times = [instant_text((BEGIN_MS + second * 1_000) * 1_000) for second in (3, 5, 6)]
    assert [(one.at, one.why.case) for one in found.left_out] == list(
        zip(times, [PodCase.THERE, PodCase.TERMINATING, PodCase.GONE], strict=True)
    )
    assert {one.teller for one in found.left_out} == {Teller.RECORDED}


def test_nothing_is_played_where_results_count() -> None:
    log = Log()
    node(log, K)
    pod(log)
    node(log, second=10)
    (found,) = explained(log.records, "web", plays=False).pods
    assert {one.teller for one in found.decisions} == {Teller.REPLAY}


def recorded(log: Log, *decisions: Any, second: int = 12) -> list[RecordedRecord]:
    """The log, with what the service has decided."""
    outputs = [
        RecordedRecord(
            topic="decisions",
            partition=0,
            offset=number,
            timestamp=BEGIN_MS + second * 1_000,
            key=b"lab",
            value=encode(one),
        )
        for number, one in enumerate(decisions)
    ]
    return sorted([*log.records, *outputs], key=lambda one: one.timestamp)


def of_web(kind: DecisionKind, second: float, **changes: Any) -> Any:
    at = instant_text(BEGIN_MS * 1_000 + int(second * 1e6))
    values = {
        "cluster": "lab",
        "namespace": "shop",
        "pod": "web",
        "pod_uid": "uid-web",
        "cause": timer(at),
        "toleration": None,
        "verdict": Verdict.UNTOLERATED,
        "deadline": instant_text(BEGIN_MS * 1_000 + 1_000_000),
    }
    return decision(kind, **(values | changes))


def due_web() -> Log:
    log = Log()
    node(log, K)
    pod(log)
    node(log, K, second=100)
    return log


def test_what_was_recorded_is_told_before_what_a_replay_decides() -> None:
    late = of_web(DecisionKind.ISSUED, 11, attempt=1)
    (found,) = explained(recorded(due_web(), late), "web", plays=False).pods
    assert found.decisions_of(Teller.RECORDED)[0].record == late
    assert found.decisions_of(Teller.RECORDED)[0].came_us == (BEGIN_MS + 12_000) * 1_000
    otherwise = differing(found.decisions_of(Teller.RECORDED), found.decisions_of(Teller.REPLAY))
    assert [one.record.decision for one in otherwise] == [
        DecisionKind.DUE,
        DecisionKind.ISSUED,
        DecisionKind.RETRIED,
        DecisionKind.RETRIED,
    ]


def test_what_both_say_is_the_same() -> None:
    at = instant_text(BEGIN_MS * 1_000 + 1_000_000)
    both = of_web(DecisionKind.ISSUED, 1.2, attempt=1, due_cause=DecisionCause(kind=CauseKind.POD, at=at), revision=1)
    (found,) = explained(recorded(due_web(), both), "web", plays=False).pods
    otherwise = differing(found.decisions_of(Teller.RECORDED), found.decisions_of(Teller.REPLAY))
    assert {one.record.decision for one in otherwise} == {DecisionKind.RETRIED}
    assert differing(found.decisions_of(Teller.REPLAY), found.decisions_of(Teller.REPLAY)) == []


def test_a_recorded_decision_that_cannot_be_read_is_said() -> None:
    records = recorded(due_web(), of_web(DecisionKind.ISSUED, 1))
    records = [
        msgspec.structs.replace(one, value=b'{"pod":"web"}') if one.topic == "decisions" else one for one in records
    ]
    problems = list[str]()
    observer = PodObserver(AskedPod("web"), cluster_rules(SETTINGS))
    run = Replay(SETTINGS, partitions=1, plays_executor=True, observer=observer)
    Explainer(observer.asked).take_replay(run, observer, records, problems.append)
    assert [problem.partition(": ")[0] for problem in problems] == ["decisions, partition 0, offset 0"]


def test_the_tables_of_a_service_answer_as_a_replay_does() -> None:
    log = two_namespaces()
    tables = ClusterTables(SETTINGS, partitions=1)
    tables.take(log.records)
    explainer = Explainer(AskedPod("shop/db-0"))
    explainer.observed(tables.observed_pods(explainer.asked, BEGIN_MS * 1_000))
    (found,) = explainer.explanation().pods
    assert [(one.why.case, one.teller) for one in found.cases] == [(PodCase.DUE, Teller.RECORDED)]
    assert sorted(tables.addresses()) == ["dev/db-0", "shop/db-0", "shop/web-0"]


def test_an_observer_changes_nothing_of_a_replay() -> None:
    log = two_namespaces()
    with_observer, without = (
        Replay(SETTINGS, partitions=1, plays_executor=True, observer=observer)
        for observer in (PodObserver(AskedPod("web-0"), cluster_rules(SETTINGS)), None)
    )
    messages = [list(itertools.chain(run.run(log.records), run.run_on(3))) for run in (with_observer, without)]
    assert messages[0] == messages[1]
