"""semantics.md 9.3; the cases are those of plugin/pkg/admission/extendedresourcetoleration/admission_test.go."""

from __future__ import annotations

import pytest

from evictstream.kit.rules.admission import (
    AddedBy,
    extended_resource_tolerations,
    is_extended_resource,
    plain,
    written,
)
from evictstream.models.kubernetes import NO_EXECUTE, NO_SCHEDULE, Toleration

EK, DO = "example.com/device-ek", "example.com/device-do"
FOO = Toleration("foo", "Equal", "bar", NO_SCHEDULE)
TOLERATES_EK = Toleration(EK, "Exists", "", NO_SCHEDULE)
TOLERATES_DO = Toleration(DO, "Exists", "", NO_SCHEDULE)
OTHER_EK = Toleration(EK, "Equal", "foo", NO_EXECUTE)
WILDCARD = Toleration("", "Exists")


@pytest.mark.parametrize(
    ("before", "requested", "after"),
    [
        pytest.param((), [], (), id="admission_test.go: empty pod"),
        pytest.param((), ["cpu"], (), id="admission_test.go: container without extended resource"),
        pytest.param((), ["memory"], (), id="admission_test.go: init container without extended resource"),
        pytest.param((), [EK], (TOLERATES_EK,), id="admission_test.go: container with extended resource"),
        pytest.param((), [DO], (TOLERATES_DO,), id="admission_test.go: init container with extended resource"),
        pytest.param((FOO,), ["cpu", EK], (FOO, TOLERATES_EK), id="admission_test.go: existing tolerations preserved"),
        pytest.param(
            (),
            ["memory", EK, "cpu", DO],
            (TOLERATES_DO, TOLERATES_EK),
            id="admission_test.go: multiple extended resources, sorted by key",
        ),
        pytest.param(
            (TOLERATES_EK,),
            ["cpu", "memory", EK],
            (TOLERATES_EK,),
            id="admission_test.go: existing correct toleration",
        ),
        pytest.param(
            (OTHER_EK,),
            ["cpu", EK],
            (OTHER_EK, TOLERATES_EK),
            id="admission_test.go: same key but different effect and value",
        ),
        pytest.param((WILDCARD,), [EK], (WILDCARD, TOLERATES_EK), id="admission_test.go: wildcard toleration"),
        pytest.param((), [EK, EK, EK], (TOLERATES_EK,), id="9.3 asked for by several containers"),
        pytest.param(
            (Toleration(EK, "Exists", "", NO_SCHEDULE, 5),), [EK], (TOLERATES_EK,), id="9.3 same identity is replaced"
        ),
    ],
)
def test_what_is_added(before: tuple[Toleration, ...], requested: list[str], after: tuple[Toleration, ...]) -> None:
    assert plain(extended_resource_tolerations(written(before), requested)) == after


def test_each_addition_names_its_origin() -> None:
    found = extended_resource_tolerations(written((FOO,)), [EK])
    assert [entry.origin for entry in found] == [AddedBy.WRITTEN, AddedBy.EXTENDED_RESOURCE]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("example.com/gpu", True, id="IsExtendedResourceName: own domain"),
        pytest.param("nvidia.com/gpu", True, id="IsExtendedResourceName: a vendor"),
        pytest.param("cpu", False, id="IsNativeResource: no domain"),
        pytest.param("hugepages-2Mi", False, id="IsNativeResource: huge pages"),
        pytest.param("ephemeral-storage", False, id="IsNativeResource: ephemeral storage"),
        pytest.param("kubernetes.io/thing", False, id="IsNativeResource: Kubernetes' domain"),
        pytest.param("pod.alpha.kubernetes.io/opaque-int-resource-x", False, id="IsNativeResource: below that domain"),
        pytest.param("notkubernetes.io/thing", False, id="IsNativeResource: the text anywhere in the name"),
        pytest.param("kubernetes.ioxx/thing", True, id="IsNativeResource: not with the slash"),
        pytest.param("requests.example.com/gpu", False, id="IsExtendedResourceName: prefix of quotas"),
        pytest.param("example.com/requests.gpu", True, id="IsExtendedResourceName: that prefix only in front"),
        pytest.param("example.com/", False, id="IsQualifiedName: empty name"),
        pytest.param("/gpu", False, id="IsQualifiedName: the quota's dot ends the prefix"),
        pytest.param("example.com/a/b", False, id="IsQualifiedName: two slashes"),
        pytest.param("Example.com/gpu", False, id="IsQualifiedName: upper case in the prefix"),
        pytest.param("example.com/" + "a" * 63, True, id="IsQualifiedName: name of 63"),
        pytest.param("example.com/" + "a" * 64, False, id="IsQualifiedName: name of 64"),
        pytest.param("a" * 62 + ".io/gpu", True, id="IsQualifiedName: long prefix"),
        pytest.param(".".join(["a" * 60] * 4) + "/gpu", True, id="IsQualifiedName: 243 and requests. make 252"),
        pytest.param(".".join(["a" * 60] * 4) + ".b/gpu", False, id="IsQualifiedName: 245 and requests. make 254"),
    ],
)
def test_which_resources_are_extended(name: str, *, expected: bool) -> None:
    assert is_extended_resource(name) is expected
