"""semantics.md 9.4; the cases are those of plugin/pkg/admission/podtolerationrestriction/admission_test.go."""

from __future__ import annotations

import json

import pytest

from evictstream.kit.rules.admission import (
    AddedBy,
    AnnotationError,
    ClusterTolerations,
    Operation,
    namespace_tolerations,
    plain,
    pod_toleration_restriction,
    written,
)
from evictstream.models.kubernetes import NO_EXECUTE, NO_SCHEDULE, Toleration

DEFAULTS = "scheduler.alpha.kubernetes.io/defaultTolerations"
ALLOW_LIST = "scheduler.alpha.kubernetes.io/tolerationsWhitelist"

T = Toleration("testKey", "Equal", "testValue", NO_SCHEDULE)
T1 = Toleration("testKey", "Equal", "testValue1", NO_SCHEDULE)
T2 = Toleration("testKey", "Equal", "testValue2", NO_SCHEDULE)
PRESSURE = Toleration("node.kubernetes.io/memory-pressure", "Exists", "", "NoSchedule")

Lists = tuple[Toleration, ...]


def annotation(tolerations: Lists) -> str:
    return json.dumps(
        [
            {"key": each.key, "operator": each.operator, "value": each.value, "effect": each.effect}
            | ({} if each.toleration_seconds is None else {"tolerationSeconds": each.toleration_seconds})
            for each in tolerations
        ]
    )


def lists(defaults: Lists | None, allowed: Lists | None) -> dict[str, str]:
    given = {DEFAULTS: defaults, ALLOW_LIST: allowed}
    return {name: annotation(tolerations) for name, tolerations in given.items() if tolerations is not None}


@pytest.mark.parametrize(
    ("cluster_default", "namespace_default", "pod", "merged"),
    [
        pytest.param(
            (T,), None, (), (T,), id="admission_test.go: cluster default, empty pod and nil namespace tolerations"
        ),
        pytest.param((T,), (), (T,), (T,), id="admission_test.go: cluster default with pod tolerations specified"),
        pytest.param((), (T,), (T,), (T,), id="admission_test.go: namespace tolerations"),
        pytest.param((), (T,), (), (T,), id="admission_test.go: no pod tolerations"),
        pytest.param((), (T,), (T1,), (T1, T), id="admission_test.go: pod and namespace differ, both are kept"),
        pytest.param(
            (T2,), (), (T1,), (T1,), id="admission_test.go: cluster default overridden by empty namespace tolerations"
        ),
        pytest.param((T2,), None, (T1,), (T1, T2), id="9.4 cluster default beside another one of the pod"),
        pytest.param(
            (T,), (), (), (), id="admission_test.go: override cluster default by empty namespace level toleration"
        ),
        pytest.param((T2,), (T,), (T1,), (T1, T), id="9.4 the namespace's list takes the place of the cluster's"),
        pytest.param(
            (), (Toleration("testKey", "Exists"),), (T1,), (Toleration("testKey", "Exists"),), id="9.4 merged by cover"
        ),
        pytest.param(
            (), (T,), (Toleration("", "Exists"),), (Toleration("", "Exists"),), id="9.4 the pod's own is wider"
        ),
        pytest.param((), None, (T, T), (T, T), id="9.4 nothing to add: nothing is merged"),
        pytest.param((), (), (T, T), (T, T), id="9.4 empty list to add: nothing is merged"),
        pytest.param((), (T1,), (T, T), (T, T1), id="9.4 something to add: the pod's own are thinned out"),
    ],
)
def test_defaults_on_create(cluster_default: Lists, namespace_default: Lists | None, pod: Lists, merged: Lists) -> None:
    found = pod_toleration_restriction(
        written(pod),
        lists(namespace_default, None),
        cluster=ClusterTolerations(default=cluster_default),
        is_best_effort=True,
    )
    assert plain(found.admitted) == merged
    assert found.refused is None
    assert found.message == ""


@pytest.mark.parametrize(
    ("namespace_default", "allowed", "cluster_allowed", "pod", "refused"),
    [
        pytest.param((T,), (T,), (), (), None, id="admission_test.go: merged pod tolerations satisfy whitelist"),
        pytest.param((T,), (T1,), (), (), T, id="admission_test.go: merged pod tolerations conflict with whitelist"),
        pytest.param(
            None,
            (),
            (T1,),
            (T,),
            None,
            id="admission_test.go: cluster whitelist overridden by empty namespace whitelist",
        ),
        pytest.param(None, None, (T1,), (T,), T, id="9.4 cluster whitelist"),
        pytest.param(None, None, (T1,), (T1,), None, id="9.4 cluster whitelist satisfied"),
        pytest.param(None, (T1,), (T,), (T,), T, id="9.4 the namespace's list takes the place of the cluster's"),
        pytest.param(None, None, (), (T,), None, id="9.4 no list allows everything"),
        pytest.param(None, (T1,), (), (), None, id="9.4 a pod without tolerations is never refused"),
        pytest.param(None, (T,), (), (T, T1, T2), T1, id="9.4 the first one without superset is named"),
        pytest.param(
            None,
            (Toleration("k", "Exists", "", NO_EXECUTE, 60),),
            (),
            (Toleration("k", "Exists", "", NO_EXECUTE, 61),),
            Toleration("k", "Exists", "", NO_EXECUTE, 61),
            id="9.4 longer than allowed",
        ),
        pytest.param(
            None,
            (Toleration("k", "Exists", "", NO_EXECUTE, 60),),
            (),
            (Toleration("k", "Exists", "", NO_EXECUTE, 60),),
            None,
            id="9.4 as long as allowed",
        ),
    ],
)
def test_allow_list(
    namespace_default: Lists | None,
    allowed: Lists | None,
    cluster_allowed: Lists,
    pod: Lists,
    refused: Toleration | None,
) -> None:
    found = pod_toleration_restriction(
        written(pod),
        lists(namespace_default, allowed),
        cluster=ClusterTolerations(allowed=cluster_allowed),
        is_best_effort=True,
    )
    assert found.refused == refused
    whose = "cluster" if allowed is None else "namespace"
    assert found.message == (
        ""
        if refused is None
        else f"pod tolerations (possibly merged with namespace default tolerations) conflict with its {whose} whitelist"
    )


@pytest.mark.parametrize(
    ("operation", "is_best_effort", "pod", "merged"),
    [
        pytest.param(Operation.CREATE, False, (), (T, PRESSURE), id="admission_test.go: memory pressure added"),
        pytest.param(Operation.CREATE, True, (), (T,), id="9.4 not for best-effort pods"),
        pytest.param(Operation.UPDATE, False, (T1,), (T1, PRESSURE), id="9.4 on update without the defaults"),
        pytest.param(Operation.UPDATE, True, (T1,), (T1,), id="9.4 nothing on update of a best-effort pod"),
        pytest.param(Operation.CREATE, False, (PRESSURE,), (PRESSURE, T), id="9.4 memory pressure once"),
        pytest.param(
            Operation.CREATE,
            False,
            (Toleration("", "Exists", "", NO_SCHEDULE),),
            (Toleration("", "Exists", "", NO_SCHEDULE),),
            id="9.4 memory pressure and defaults covered by the pod's own",
        ),
    ],
)
def test_memory_pressure(operation: Operation, *, is_best_effort: bool, pod: Lists, merged: Lists) -> None:
    found = pod_toleration_restriction(
        written(pod), lists((T,), None), is_best_effort=is_best_effort, operation=operation
    )
    assert plain(found.admitted) == merged


def test_what_the_plugin_adds_must_be_allowed_too() -> None:
    found = pod_toleration_restriction(written((T,)), lists(None, (T,)), is_best_effort=False)
    assert found.refused == PRESSURE
    assert plain(found.admitted) == (T, PRESSURE)


def test_each_addition_names_its_origin() -> None:
    of_namespace = pod_toleration_restriction(written((T1,)), lists((T,), None), is_best_effort=False)
    assert [entry.origin for entry in of_namespace.admitted] == [
        AddedBy.WRITTEN,
        AddedBy.NAMESPACE_DEFAULTS,
        AddedBy.MEMORY_PRESSURE,
    ]
    of_cluster = pod_toleration_restriction((), {}, cluster=ClusterTolerations(default=(T,)), is_best_effort=True)
    assert [entry.origin for entry in of_cluster.admitted] == [AddedBy.CLUSTER_DEFAULTS]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(None, None, id="extractNSTolerations: no annotation"),
        pytest.param("", (), id="extractNSTolerations: empty annotation"),
        pytest.param("[]", (), id="extractNSTolerations: empty list"),
        pytest.param("null", (), id="extractNSTolerations: null"),
        pytest.param('[{"key":"k","operator":"Exists"}]', (Toleration("k", "Exists"),), id="one toleration"),
        pytest.param(
            '[{"key":"k","operator":"Exists","effect":"NoExecute","tolerationSeconds":5}]',
            (Toleration("k", "Exists", "", NO_EXECUTE, 5),),
            id="with seconds",
        ),
        pytest.param(
            '[{"Key":"testKey","Operator":"Equal","Value":"testValue","Effect":"NoSchedule","TolerationSeconds":null}]',
            (T,),
            id="admission_test.go: written from Go's own struct, names in another case",
        ),
        pytest.param('[{"key":"a","KEY":"b"}]', (Toleration("b"),), id="encoding/json: the last of several wins"),
        pytest.param('[{"key":"a","key":null}]', (Toleration("a"),), id="encoding/json: null changes nothing"),
        pytest.param('[{"key":"a","other":[1]}]', (Toleration("a"),), id="encoding/json: unknown fields"),
        pytest.param("[null]", (Toleration(),), id="encoding/json: null entry"),
        pytest.param("[{}]", (Toleration(),), id="encoding/json: empty entry"),
        pytest.param(
            '[{"toleration\u017feconds":5,"\u212aey":"a"}]',
            (Toleration("a", toleration_seconds=5),),
            id="encoding/json: the long s and the Kelvin sign are letters in another case",
        ),
        pytest.param('[{"e\ufb00ect":"x"}]', (Toleration(),), id="encoding/json: a ligature is not two letters"),
        pytest.param(
            r'[{"key":"\ud800","value":"\ud83d\ude00\udc00"}]',
            (Toleration("\ufffd", "", "\U0001f600\ufffd"),),
            id="encoding/json: half a surrogate pair",
        ),
        pytest.param(
            f'[{{"key":"a","other":{"9" * 5_000},"more":-{"9" * 5_000}.5e1}}]',
            (Toleration("a"),),
            id="encoding/json: an endless number in an unknown field",
        ),
        pytest.param(
            f'[{{"key":"a","other":{"[" * 500}{"]" * 500}}}]',
            (Toleration("a"),),
            id="encoding/json: an unknown field, deep",
        ),
        pytest.param('[{"tolerationSeconds":-9}]', (Toleration(toleration_seconds=-9),), id="negative seconds"),
    ],
)
def test_annotations_are_read_as_by_the_api_server(text: str | None, expected: Lists | None) -> None:
    assert namespace_tolerations({} if text is None else {DEFAULTS: text}, DEFAULTS) == expected


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[", id="no JSON"),
        pytest.param("x", id="no JSON at all"),
        pytest.param(" ", id="only a space"),
        pytest.param("{}", id="object"),
        pytest.param('"text"', id="text"),
        pytest.param("[1]", id="number as entry"),
        pytest.param('[{"key":1}]', id="number as key"),
        pytest.param('[{"effect":true}]', id="flag as effect"),
        pytest.param('[{"tolerationSeconds":"5"}]', id="seconds as text"),
        pytest.param('[{"tolerationSeconds":5.0}]', id="seconds with a point"),
        pytest.param('[{"tolerationSeconds":true}]', id="seconds as flag"),
        pytest.param('[{"tolerationSeconds":9223372036854775808}]', id="seconds beyond 64 bit"),
        pytest.param(f'[{{"tolerationSeconds":{"9" * 5_000}}}]', id="endless seconds"),
        pytest.param('[{"toleration\u017feconds":"5"}]', id="seconds with a long s as text"),
        pytest.param('[{"tolerationSeconds":NaN}]', id="NaN"),
        pytest.param("[" * 100_000, id="nested too deeply"),
        pytest.param(
            f'[{{"other":{"[" * 5_000}{"]" * 5_000}}}]', id="ours: an unknown field, nested deeper than Python reads"
        ),
    ],
)
def test_other_annotations_refuse_the_pod(text: str) -> None:
    with pytest.raises(AnnotationError) as caught:
        pod_toleration_restriction((), {DEFAULTS: text}, is_best_effort=True)
    assert caught.value.annotation == DEFAULTS


def test_an_annotation_that_is_not_needed_is_not_read() -> None:
    broken = {DEFAULTS: "broken", ALLOW_LIST: "broken"}
    found = pod_toleration_restriction((), broken, is_best_effort=True, operation=Operation.UPDATE)
    assert found.admitted == ()
