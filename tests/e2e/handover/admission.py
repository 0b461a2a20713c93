"""The policy in force on a real API server, and pods sent past it."""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from evictstream.streams.handover.policy_objects import policy_objects
from tests.e2e.api_client import ApiClient, Object, RefusedError

ANNOTATION: Final = "evictstream.io/tolerations"
GROUP: Final = "/apis/admissionregistration.k8s.io/v1"
MORE: Final = 3600
PATIENCE_SECONDS: Final = 60.0
HEALTH_KEYS: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
PROBE: Final[Object] = {"key": "example.com/probe", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 7}

_numbers = itertools.count()

Tolerations = list[Object]


def pods_in(namespace: str = "default") -> str:
    return f"/api/v1/namespaces/{namespace}/pods"


def fresh_name() -> str:
    return f"p-{next(_numbers)}"


def pod_with(tolerations: Sequence[Object] | None, *, name: str | None = None, annotation: str | None = None) -> Object:
    """Return a pod that stays pending."""
    metadata: Object = {"name": name or fresh_name()}
    if annotation is not None:
        metadata["annotations"] = {ANNOTATION: annotation}
    spec: Object = {"containers": [{"name": "c", "image": "img"}], "automountServiceAccountToken": False}
    if tolerations is not None:
        spec["tolerations"] = list(tolerations)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def spec_of(pod: Object) -> Tolerations:
    found: Tolerations = pod["spec"].get("tolerations", [])
    return found


def annotation_of(pod: Object) -> str | None:
    found: str | None = pod["metadata"].get("annotations", {}).get(ANNOTATION)
    return found


def entries_of(pod: Object) -> Tolerations:
    """Return the entries of the annotation; none without one. What the policy writes has no spaces."""
    text = annotation_of(pod)
    if text is None:
        return []
    entries: Tolerations = json.loads(text)
    assert text == json.dumps(entries, separators=(",", ":"))
    return entries


def timed(key: str | None, seconds: int | None, **others: str) -> Object:
    """Return a toleration of any value of a key, or of every taint."""
    found: Object = {"operator": "Exists", "effect": "NoExecute", **others}
    if key is not None:
        found = {"key": key, **found}
    return found if seconds is None else {**found, "tolerationSeconds": seconds}


def defaults(more: int | None) -> tuple[Tolerations, Tolerations]:
    """Return what Kubernetes adds to a pod, as it stands in its spec and in the annotation after the policy."""
    added = [timed(key, 300) for key in HEALTH_KEYS]
    return [moved(each, 300, more)[0] for each in added], [moved(each, 300, more)[1] for each in added]


def moved(toleration: Object, seconds: int, more: int | None, written: int | None = None) -> tuple[Object, Object]:
    """Return a toleration and its entry after the policy, which found `seconds`; `written` where it is no sum."""
    identity = {name: value for name, value in toleration.items() if name != "tolerationSeconds"}
    if more is None:
        return identity, {**identity, "tolerationSeconds": seconds}
    there = seconds + more if written is None else written
    entry = {**identity, "tolerationSeconds": seconds, "builtInSeconds": there}
    return {**identity, "tolerationSeconds": there}, entry


class Admission:
    """Switches the policy, and waits until the API server follows."""

    def __init__(self, client: ApiClient) -> None:
        self.client = client
        self._now: tuple[int | None, bool] | None = None
        for name, labels in {"opted-out": {"evictstream.io/handover": "off"}, "evictstream": {}}.items():
            client.create("/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})
            wait_until(functools.partial(self.exists, f"/api/v1/namespaces/{name}/serviceaccounts/default"))

    def use(self, more: int | None, *, guard: bool = True) -> None:
        """Have this variant in force."""
        if self._now == (more, guard):
            return
        objects = policy_objects(more, guard=guard)
        for each in objects:
            self.apply(each)
        if not guard:
            for each in policy_objects(more, guard=True)[:4]:
                self.remove(each)
        expected = moved(PROBE, PROBE["tolerationSeconds"], more)
        wait_until(lambda: self.probe() == expected and self.is_guarded() == guard)
        self._now = (more, guard)

    def none(self) -> None:
        """Have no policy in force."""
        for each in policy_objects(MORE, guard=True):
            self.remove(each)
        wait_until(lambda: self.probe() == (PROBE, None) and not self.is_guarded())
        self._now = None

    @contextlib.contextmanager
    def changed(self, change: Callable[[Object], None], is_there: Callable[[], bool]) -> Iterator[None]:
        """Have a policy that was changed in force, and afterwards the one before."""
        (policy,) = [each for each in policy_objects(MORE, guard=False) if each["kind"] == "MutatingAdmissionPolicy"]
        change(policy)
        self._now = None
        self.apply(policy)
        wait_until(is_there)
        yield

    def forget(self) -> None:
        """Have the next test apply its policy, as this one changes it."""
        self._now = None

    def probe(self) -> tuple[Object, Object | None]:
        """Return what becomes of a toleration and its entry now."""
        pod = self.dry(pod_with([PROBE]))
        own = [each for each in entries_of(pod) if each["key"] == PROBE["key"]]
        return spec_of(pod)[0], own[0] if own else None

    def is_guarded(self) -> bool:
        """Whether a Binding with the annotation is refused; without the guard there is no such pod."""
        binding = {"metadata": {"name": "none", "annotations": {ANNOTATION: "[]"}}, "target": {"name": "n"}}
        try:
            self.client.create(f"{pods_in()}/none/binding?dryRun=All", binding)
        except RefusedError as error:
            return error.status == 422
        raise AssertionError("there is no such pod")

    def dry(self, pod: Object, namespace: str = "default") -> Object:
        """Return what would be created."""
        return self.client.create(f"{pods_in(namespace)}?dryRun=All", pod)

    def create(self, pod: Object, namespace: str = "default") -> Object:
        """Create a pod."""
        return self.client.create(pods_in(namespace), pod)

    def patch(
        self, name: str, change: object, kind: str = "merge", namespace: str = "default", query: str = ""
    ) -> Object:
        """Patch a pod: merge, strategic-merge or json."""
        body = json.dumps(change).encode()
        return self.client.call("PATCH", f"{pods_in(namespace)}/{name}{query}", body, f"application/{kind}-patch+json")

    def put(self, pod: Object) -> Object:
        """Write a whole pod."""
        return self.client.call("PUT", f"{pods_in()}/{pod['metadata']['name']}", pod)

    def get(self, name: str, namespace: str = "default") -> Object:
        """Read a pod."""
        return self.client.get(f"{pods_in(namespace)}/{name}")

    def exists(self, path: str) -> bool:
        """Whether an object is there."""
        with contextlib.suppress(RefusedError):
            return self.client.get(path) is not None
        return False

    def apply(self, what: Object) -> None:
        """Have an object as it is given."""
        path = f"{collection_of(what)}/{what['metadata']['name']}"
        self.client.call("PATCH", f"{path}?fieldManager=test&force=true", what, "application/apply-patch+yaml")

    def remove(self, what: Object) -> None:
        """Have an object no more."""
        with contextlib.suppress(RefusedError):
            self.client.delete(f"{collection_of(what)}/{what['metadata']['name']}")


def collection_of(what: Mapping[str, Any]) -> str:
    """Return the path of admission objects of a kind."""
    kind = what["kind"].lower()
    return f"{GROUP}/{kind.removesuffix('y')}{'ies' if kind.endswith('y') else 's'}"


def adding_policy(name: str, toleration: Object, key: str) -> list[Object]:
    """Return a policy of somebody else, which adds a toleration to pods with the label `key` unless it is there."""
    has_none = f'!object.spec.?tolerations.orValue([]).exists(t, t.?key.orValue("") == "{toleration["key"]}")'
    fields = ", ".join(f"{name}: {json.dumps(value)}" for name, value in toleration.items())
    # Kubernetes has added the tolerations for dead nodes before, so there is a list.
    value = f"Object.spec.tolerations{{{fields}}}"
    expression = f'[JSONPatch{{op: "add", path: "/spec/tolerations/-", value: {value}}}]'
    selector = {"matchLabels": {key: "yes"}}
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    spec = {
        "reinvocationPolicy": "Never",
        "matchConstraints": {"objectSelector": selector, "resourceRules": [rule]},
        "matchConditions": [{"name": "absent", "expression": has_none}],
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}],
    }
    version = "admissionregistration.k8s.io/v1"
    return [
        {"apiVersion": version, "kind": "MutatingAdmissionPolicy", "metadata": {"name": name}, "spec": spec},
        {
            "apiVersion": version,
            "kind": "MutatingAdmissionPolicyBinding",
            "metadata": {"name": name},
            "spec": {"policyName": name},
        },
    ]


def wait_until(condition: Callable[[], bool]) -> None:
    """Poll until it holds."""
    until = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)
