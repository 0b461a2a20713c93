"""The policy with others: changed from one variant to the other, failing, next to webhooks and policies of others."""

from __future__ import annotations

import contextlib
import http.server
import json
import ssl
import threading
from base64 import b64encode
from collections.abc import Iterator
from typing import Any, Final

import pytest

from evictstream.streams.handover.policy_objects import policy_objects
from tests.e2e.api_client import Object
from tests.e2e.control_plane import ControlPlane
from tests.e2e.handover.admission import (
    ANNOTATION,
    MORE,
    Admission,
    adding_policy,
    annotation_of,
    defaults,
    entries_of,
    moved,
    pod_with,
    spec_of,
    timed,
    wait_until,
)

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("built_binaries")]

KEY: Final = "example.com/k"
ADDED: Final = {"key": "example.com/added", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 11}
LABEL: Final = "add-toleration"
CHANGES: Final = {
    "backstop-to-handover": (MORE, None),
    "handover-to-backstop": (None, MORE),
    "more-to-less": (MORE, 20),
    "less-to-more": (20, MORE),
}


def in_force(pod: Object) -> dict[str, int | None]:
    """Return the seconds by key, read from the contract's text."""
    entries = {each["key"]: each for each in reversed(entries_of(pod))}
    found = {}
    for one in spec_of(pod):
        entry, there = entries.get(one["key"], {}), one.get("tolerationSeconds")
        fits = "tolerationSeconds" in entry and entry.get("builtInSeconds") == there
        found[one["key"]] = entry["tolerationSeconds"] if fits else there
    return found


@pytest.mark.parametrize(("before", "after"), CHANGES.values(), ids=CHANGES)
def test_a_changed_policy_keeps_seconds_in_force(
    before: int | None, after: int | None, any_admission: Admission
) -> None:
    any_admission.use(before)
    made = any_admission.create(pod_with([timed(KEY, 30), timed("a", 0), timed("b", None)]))
    name, seconds = made["metadata"]["name"], in_force(made)
    assert {key: seconds[key] for key in (KEY, "a", "b")} == {KEY: 30, "a": 0, "b": None}
    any_admission.use(after)
    assert in_force(any_admission.patch(name, {})) == seconds
    assert in_force(any_admission.patch(name, {"metadata": {"labels": {"a": "b"}}})) == seconds
    taken_off = any_admission.patch(name, {"metadata": {"annotations": {ANNOTATION: None}}})
    assert in_force(taken_off) == seconds
    edited = any_admission.patch(name, {"spec": {"tolerations": [timed(KEY, 40), *spec_of(taken_off)[1:]]}})
    assert in_force(edited) == {**seconds, KEY: 40}
    put = json.loads(json.dumps(edited))
    del put["metadata"]["annotations"]
    assert in_force(any_admission.put(put)) == in_force(edited)


def test_handover_takes_seconds_that_the_backstop_left(any_admission: Admission) -> None:
    any_admission.use(MORE)
    name = any_admission.create(pod_with([timed(KEY, 30)]))["metadata"]["name"]
    any_admission.use(None)
    pod = any_admission.patch(name, {})
    assert spec_of(pod)[0] == timed(KEY, None)
    assert entries_of(pod)[0] == timed(KEY, None) | {"tolerationSeconds": 30}


def test_an_expression_that_errs_leaves_pods_alone(any_admission: Admission) -> None:
    any_admission.use(MORE)

    def err(policy: Object) -> None:
        policy["spec"]["variables"][0]["expression"] = "int('1' + object.metadata.name)"

    with any_admission.changed(err, lambda: any_admission.probe()[1] is None):
        pod = any_admission.dry(pod_with([timed(KEY, 30)]))
    assert spec_of(pod)[0] == timed(KEY, 30)
    assert annotation_of(pod) is None


@pytest.mark.parametrize("name", ["aa-before", "zz-behind"])
@pytest.mark.parametrize("given", [[], [timed(KEY, 30)]], ids=["none", "one"])
def test_tolerations_of_other_policies_are_moved(
    name: str, given: list[Object], admission: Admission, more: int | None
) -> None:
    objects = adding_policy(name, ADDED, LABEL)
    for each in objects:
        admission.apply(each)
    try:
        asked = pod_with(given)
        asked["metadata"]["labels"] = {LABEL: "yes"}
        key = ADDED["key"]
        wait_until(lambda: any(each.get("key") == key for each in spec_of(admission.dry(asked))))
        check_added(admission.dry(asked), given, more)
    finally:
        for each in objects:
            admission.remove(each)


def check_added(pod: Object, given: list[Object], more: int | None) -> None:
    pairs = [moved(each, each["tolerationSeconds"], more) for each in (*given, ADDED)]
    spec, entries = defaults(more)
    ordered = sorted(spec_of(pod), key=lambda each: str(each["key"]))
    assert ordered == sorted([*(one for one, _ in pairs), *spec], key=lambda each: str(each["key"]))
    assert sorted(entries_of(pod), key=str) == sorted([*(entry for _, entry in pairs), *entries], key=str)


class Webhook(http.server.BaseHTTPRequestHandler):
    """Adds a toleration to each pod with the label."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["request"]
        there = asked["object"]["spec"].get("tolerations", [])
        change: list[Any] = []
        if not any(each.get("key") == ADDED["key"] for each in there):
            change = [{"op": "add", "path": "/spec/tolerations", "value": [*there, ADDED]}]
        response: Object = {"uid": asked["uid"], "allowed": True}
        if change:
            response |= {"patchType": "JSONPatch", "patch": b64encode(json.dumps(change).encode()).decode()}
        body = json.dumps(
            {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
        ).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def webhook(plane: ControlPlane) -> Iterator[Object]:
    """Serve the webhook with the API server's own certificate; gives its configuration."""
    secrets = plane.folder / "secrets"
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(secrets / "apiserver.crt", secrets / "apiserver.key")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Webhook)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    authority = b64encode((secrets / "ca.crt").read_bytes()).decode()
    try:
        yield {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": "adds"},
            "webhooks": [
                {
                    "name": "adds.example.com",
                    "admissionReviewVersions": ["v1"],
                    "sideEffects": "None",
                    "objectSelector": {"matchLabels": {LABEL: "yes"}},
                    "clientConfig": {
                        "url": f"https://127.0.0.1:{server.server_address[1]}/",
                        "caBundle": authority,
                    },
                    "rules": [
                        {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
                    ],
                }
            ],
        }
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.parametrize("given", [[], [timed(KEY, 30)]], ids=["none", "one"])
def test_tolerations_of_a_webhook_are_moved(
    given: list[Object], plane: ControlPlane, admission: Admission, more: int | None
) -> None:
    """It runs behind all policies, which are asked once more."""
    with webhook(plane) as configuration:
        admission.apply(configuration)
        try:
            asked = pod_with(given)
            asked["metadata"]["labels"] = {LABEL: "yes"}
            wait_until(lambda: any(each.get("key") == ADDED["key"] for each in spec_of(admission.dry(asked))))
            check_added(admission.dry(asked), given, more)
        finally:
            admission.remove(configuration)


@pytest.mark.parametrize("other", [20, None], ids=["another-backstop", "a-handover"])
def test_two_policies_lose_no_seconds(other: int | None, any_admission: Admission) -> None:
    """Each reads what the other has written, whichever comes first."""
    any_admission.use(MORE)
    for name in ("aa-handover", "zz-handover"):
        second = policy_objects(other, guard=False)
        for each in second:
            each["metadata"]["name"] = name
        second[1]["spec"]["policyName"] = name
        seen = []
        for each in second:
            any_admission.apply(each)
        try:
            name_of_pod = None
            for _ in range(10):
                pod = any_admission.create(pod_with([timed(KEY, 30)]))
                seen.append(in_force(pod)[KEY])
                name_of_pod = pod["metadata"]["name"]
            edited = any_admission.patch(str(name_of_pod), {"spec": {"tolerations": [timed(KEY, 31)]}})
            assert in_force(edited)[KEY] == 31
        finally:
            for each in second:
                any_admission.remove(each)
        assert set(seen) == {30}
    any_admission.forget()
