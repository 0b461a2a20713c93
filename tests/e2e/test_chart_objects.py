"""What the chart renders, under the eyes of a real API server, and what Helm says of wrong values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest

from evictstream.streams.feed.cluster_labels import labels_of
from evictstream.streams.handover.policy_objects import policy_objects
from tests.deploy.chart_values import LABELS, LEAST, REFUSED, TAKEN, Values, merged
from tests.deploy.command_line import parse
from tests.e2e.api_client import ApiClient, Object
from tests.e2e.chart import CHART, NAMESPACE, RELEASE, helm, rendered
from tests.e2e.control_plane import ControlPlane

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("built_helm")]

GROUP: Final = "monitoring.coreos.com"
STRICT: Final = "dryRun=All&fieldValidation=Strict"


@pytest.fixture(scope="module")
def client(built_binaries: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiClient]:
    """A control plane with the namespace, in which pods have to be `restricted`, and the kinds of Prometheus."""
    with ControlPlane(tmp_path_factory.mktemp("chart"), taint_eviction=False) as plane:
        found = plane.client()
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        found.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE, "labels": labels}})
        for kind in ("ServiceMonitor", "PrometheusRule"):
            found.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition(kind))
        yield found


def definition(kind: str) -> Object:
    """Define a kind of the Prometheus Operator, without its fields: those are its own business."""
    plural = f"{kind.lower()}s"
    fields = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": fields}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind},
            "versions": [version],
        },
    }


def collection(what: Object) -> str:
    """Return where an object of this kind is created."""
    version = what["apiVersion"]
    kind = what["kind"].lower()
    plural = f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}s"
    scope = f"/namespaces/{NAMESPACE}" if "namespace" in what["metadata"] else ""
    return f"{'/apis/' if '/' in version else '/api/'}{version}{scope}/{plural}"


def templates(objects: list[Object]) -> list[Object]:
    return [each["spec"]["template"] for each in objects if "template" in each.get("spec", {})]


def templates_of(values: Values) -> list[Object]:
    """Render what has pods."""
    return [each for each in rendered(values) if each["kind"] in {"Deployment", "StatefulSet"}]


@pytest.mark.parametrize("values", TAKEN.values(), ids=TAKEN)
def test_the_api_server_takes_every_object(values: Values, client: ApiClient) -> None:
    objects = rendered(merged(LEAST, values))
    for each in objects:
        client.create(f"{collection(each)}?{STRICT}", each)
    for number, each in enumerate(templates(objects)):
        # By itself, since a workload that is not `restricted` would only make its pods fail.
        metadata = each["metadata"] | {"name": f"p-{number}"}
        spec = each["spec"] | {"serviceAccountName": "default"}
        client.create(f"/api/v1/namespaces/{NAMESPACE}/pods?{STRICT}", {"metadata": metadata, "spec": spec})
        (container,) = spec["containers"]
        parse(container["args"])


@pytest.mark.parametrize(("values", "path"), REFUSED.values(), ids=REFUSED)
def test_helm_refuses_wrong_values_with_their_path(values: Values, path: str) -> None:
    done = helm("template", RELEASE, str(CHART), values=merged(LEAST, values))
    assert done.returncode != 0
    assert f"at '{path}'" in done.stderr
    assert done.stdout == ""


def test_helm_says_which_values_are_missing() -> None:
    done = helm("template", RELEASE, str(CHART))
    assert done.returncode != 0
    assert "at '/image': missing property 'repository'" in done.stderr
    assert "at '/kafka': missing property 'bootstrapServers'" in done.stderr
    assert "at '/clusters': minItems: got 0, want 1" in done.stderr


def test_a_name_of_two_clusters_is_refused() -> None:
    values = {
        "kubeconfigSecretName": "fleet",
        "clusters": [{"name": "a"}, {"name": "b"}, {"name": "a", "context": "c"}],
    }
    done = helm("template", RELEASE, str(CHART), values=merged(LEAST, values))
    assert done.returncode != 0
    assert "at '/clusters/2/name': the name a is given twice" in done.stderr


def test_labels_of_clusters_reach_the_feed() -> None:
    (feed,) = [
        each
        for each in rendered(merged(LEAST, {"feed": {"labels": LABELS}}))
        if each["kind"] == "Deployment" and each["metadata"]["name"].endswith("-feed")
    ]
    (container,) = feed["spec"]["template"]["spec"]["containers"]
    arguments = container["args"]
    given = [arguments[place + 1] for place, word in enumerate(arguments) if word == "--label"]
    assert labels_of(given) == LABELS


@pytest.mark.parametrize(
    ("name", "given", "mounts"),
    [
        (
            "a profile in the hub",
            ["prod-eu-1=fleet/prod-eu-1", "--hub-kubeconfig", "/etc/evictstream/hub/config", "--hub", "admin@hub"],
            ["/etc/evictstream/hub"],
        ),
        ("a profile in the cluster of the chart", ["prod-eu-1=fleet/prod.eu-1"], []),
        (
            "profiles beside many clusters",
            ["prod us=fleet/us", "--hub", "admin@hub"],
            ["/etc/evictstream/kubeconfig"],
        ),
        ("least", [], []),
    ],
)
def test_profiles_of_clusters_reach_the_feed(name: str, given: list[str], mounts: list[str]) -> None:
    found = {each["metadata"]["name"]: each for each in templates_of(merged(LEAST, TAKEN[name]))}
    (feed,) = found[f"{RELEASE}-feed"]["spec"]["template"]["spec"]["containers"]
    arguments = feed["args"]
    begin = arguments.index("--profile") + 1 if "--profile" in arguments else len(arguments)
    assert arguments[begin:] == given
    assert [each["mountPath"] for each in feed["volumeMounts"]] == ["/tmp", *mounts]  # noqa: S108 - inside it
    (executor,) = found[f"{RELEASE}-executor"]["spec"]["template"]["spec"]["containers"]
    assert "/etc/evictstream/hub" not in {each["mountPath"] for each in executor["volumeMounts"]}


@pytest.mark.parametrize(
    ("values", "more", "guard", "excluded"),
    [
        pytest.param({}, 3600, True, [], id="default"),
        pytest.param({"more": 86_400}, 86_400, True, [], id="more"),
        pytest.param({"more": None, "guard": False}, None, False, [], id="none"),
        pytest.param({"excludedNamespaces": ["a", "kube-system", "a"]}, 3600, True, ["a"], id="excluded"),
    ],
)
def test_the_policy_is_that_of_the_command(
    *, values: Values, more: int | None, guard: bool, excluded: list[str]
) -> None:
    objects = rendered(
        merged(LEAST, {"handover": {"enabled": True, **values}}), "--show-only", "templates/handover.yaml"
    )
    for each in objects:
        each["metadata"]["labels"] = {"app.kubernetes.io/name": each["metadata"]["labels"]["app.kubernetes.io/name"]}

    def by_name(what: list[Object]) -> dict[tuple[str, str], Object]:
        return {(each["kind"], each["metadata"]["name"]): each for each in what}

    assert by_name(objects) == by_name(policy_objects(more, guard=guard, excluded=excluded))


@pytest.mark.parametrize(
    ("values", "built_in"),
    [
        pytest.param({}, None, id="without"),
        pytest.param({"handover": {"enabled": True}}, "prod-eu-1", id="with"),
        pytest.param({"handover": {"enabled": False, "builtIn": True}}, "prod-eu-1", id="on-the-way-back"),
        pytest.param({"handover": {"enabled": True, "builtIn": False}}, None, id="switched-off"),
        pytest.param(
            {"handover": {"enabled": True}, "settings": {"built_in": "eks-*,gke-1"}}, "prod-eu-1,eks-*,gke-1", id="more"
        ),
        pytest.param(
            {"handover": {"enabled": True}, "settings": {"built_in": "eks-*,prod-eu-1"}}, "prod-eu-1,eks-*", id="twice"
        ),
        pytest.param({"settings": {"built_in": "prod-*"}}, "prod-*", id="set-alone"),
    ],
)
def test_workers_know_that_the_built_in_controller_is_on(values: Values, built_in: str | None) -> None:
    (settings,) = [
        each["data"]
        for each in rendered(merged(LEAST, values))
        if each["kind"] == "ConfigMap" and each["metadata"]["name"].endswith("-settings")
    ]
    assert settings.get("EVICTSTREAM_BUILT_IN") == built_in


def test_names_and_selectors_depend_on_the_release_alone() -> None:
    def fixed(values: Values) -> dict[tuple[str, str], Object]:
        return {
            (each["kind"], each["metadata"]["name"]): each["spec"]["selector"]
            | {"service": each["spec"].get("serviceName")}
            for each in rendered(merged(LEAST, values))
            if each["kind"] in {"Deployment", "StatefulSet"}
        }

    least = fixed({})
    assert {name for _, name in least} == {f"{RELEASE}-worker", f"{RELEASE}-feed", f"{RELEASE}-executor"}
    named = {name: values for name, values in TAKEN.items() if "fullnameOverride" not in values}
    for values in named.values():
        assert fixed(values).items() <= least.items()
