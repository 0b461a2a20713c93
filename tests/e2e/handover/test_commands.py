"""`evictstream handover check`, `move` and `restore` on a real API server."""

from __future__ import annotations

import contextlib
import copy
import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

from evictstream.streams.cli.main import run
from evictstream.streams.errors import ExitCode
from evictstream.streams.handover.policy_expressions import MOST_SECONDS
from evictstream.streams.handover.policy_objects import VERSION_ANNOTATION, policy_objects
from tests.e2e.api_client import Object, RefusedError
from tests.e2e.control_plane import ControlPlane
from tests.e2e.handover.admission import (
    ANNOTATION,
    MORE,
    Admission,
    annotation_of,
    fresh_name,
    pod_with,
    pods_in,
    spec_of,
    timed,
    wait_until,
)

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("built_binaries")]

KEY: Final = "example.com/k"
FOR_EVER: Final = {"operator": "Exists"}


class Commands:
    """The command line against the control plane."""

    def __init__(self, plane: ControlPlane, capsys: pytest.CaptureFixture[str]) -> None:
        self._plane = plane
        self._capsys = capsys
        self.said = ""

    def __call__(self, *words: str) -> tuple[int, Any]:
        """Run one, and return its exit code and what it printed."""
        where = ("--kubeconfig", str(self._plane.kubeconfig), "--context", "admin", "-o", "json")
        code = run(["handover", *words, *where])
        shown = self._capsys.readouterr()
        self.said = shown.err
        return code, json.loads(shown.out) if shown.out else None


@pytest.fixture
def command(plane: ControlPlane, capsys: pytest.CaptureFixture[str]) -> Commands:
    return Commands(plane, capsys)


class Older:
    """A namespace with pods from before the policy."""

    def __init__(self, admission: Admission) -> None:
        self.admission = admission
        self.name = f"shop-{fresh_name()}"
        admission.client.create("/api/v1/namespaces", {"metadata": {"name": self.name, "labels": _label("off")}})
        wait_until(lambda: admission.exists(f"/api/v1/namespaces/{self.name}/serviceaccounts/default"))

    def add(self, tolerations: list[Object], *, node: str = "", annotation: str | None = None) -> Object:
        pod = pod_with(tolerations, annotation=annotation)
        if node:
            pod["spec"]["nodeName"] = node
        return self.admission.create(pod, self.name)

    def enter(self) -> None:
        """Let the policy act here from now on."""
        self._label(None)
        wait_until(lambda: annotation_of(self.admission.dry(pod_with([timed(KEY, 1)]), self.name)) is not None)

    def leave(self) -> None:
        """Let the policy act here no more, which is what deleting its binding does everywhere."""
        self._label("off")
        wait_until(lambda: annotation_of(self.admission.dry(pod_with([timed(KEY, 1)]), self.name)) is None)

    def _label(self, value: str | None) -> None:
        path = f"/api/v1/namespaces/{self.name}"
        self.admission.client.call(
            "PATCH", path, {"metadata": {"labels": _label(value)}}, "application/merge-patch+json"
        )

    def pods(self) -> dict[str, Object]:
        return {each["metadata"]["name"]: each for each in self.admission.client.items(pods_in(self.name))}


def _label(value: str | None) -> Object:
    return {"evictstream.io/handover": value}


@pytest.fixture
def older(admission: Admission) -> Older:
    return Older(admission)


def test_check_says_what_acts(command: Commands, admission: Admission, more: int | None, older: Older) -> None:
    older.enter()
    code, found = command("check", "-n", older.name)
    assert code == ExitCode.DONE
    assert found["acting"] == {"variant": "handover" if more is None else "backstop", "more": more}
    (policy,) = found["policies"]
    assert policy["variant"] == found["acting"]["variant"]
    assert (policy["more"], policy["isOlder"], policy["isEdited"]) == (more, False, False)
    assert found["isGuarded"]
    assert found["problems"] == []
    assert {"kube-system", "evictstream"} <= set(found["excludedNamespaces"])
    assert "opted-out" in found["optedOutNamespaces"]


def test_check_counts_pods_by_what_they_are(command: Commands, older: Older, admission: Admission) -> None:
    older.add([timed(KEY, 30)])
    older.add([FOR_EVER])
    older.add([timed(f"{KEY}-{n}", n) for n in range(400)])
    older.add([timed(KEY, 30)], annotation="no JSON")
    mirror = pod_with([timed(KEY, 30)])
    mirror["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x", "kubernetes.io/config.hash": "x"}
    mirror["spec"]["nodeName"] = "n"
    admission.create(mirror, older.name)
    finished = older.add([timed(KEY, 30)])["metadata"]["name"]
    path = f"{pods_in(older.name)}/{finished}/status"
    admission.client.call("PATCH", path, {"status": {"phase": "Succeeded"}}, "application/merge-patch+json")
    _, outside = command("check", "-n", older.name)
    assert outside["totals"] == {"namespaceOptedOut": 3, "noSeconds": 1, "mirrorPod": 1, "over": 1}
    older.enter()
    for seconds in (30, 2**62):
        older.add([timed(KEY, seconds)])
    code, found = command("check", "-n", older.name)
    counts = {"moved": 2, "toMove": 1, "unreadableAnnotation": 1, "tooManyTolerations": 1}
    assert found["totals"] == counts | {"noSeconds": 1, "mirrorPod": 1, "over": 1}
    assert found["namespaces"] == {older.name: found["totals"]}
    assert code == ExitCode.FOUND_PROBLEM
    assert len(found["problems"]) == 2


def test_check_leaves_nothing(command: Commands, admission: Admission, older: Older) -> None:
    older.enter()
    command("check", "-n", older.name)
    assert older.pods() == {}


def test_check_says_that_there_is_no_policy(command: Commands, any_admission: Admission) -> None:
    any_admission.none()
    code, found = command("check", "-n", "default")
    assert (code, found["acting"], found["policies"], found["isGuarded"]) == (1, None, [], False)
    assert found["problems"] == ["there is no policy: `evictstream handover policy` prints one"]


def _policy() -> Object:
    (found,) = [each for each in policy_objects(MORE, guard=False) if each["kind"] == "MutatingAdmissionPolicy"]
    return copy.deepcopy(found)


def test_check_tells_an_older_or_edited_policy(command: Commands, any_admission: Admission) -> None:
    any_admission.use(MORE)
    older = _policy()
    older["metadata"]["annotations"][VERSION_ANNOTATION] = "0"
    any_admission.apply(older)
    assert "older than this program" in command("check", "-n", "default")[1]["problems"][0]
    edited = _policy()
    edited["spec"]["variables"][1]["expression"] = "2000000000"
    any_admission.apply(edited)
    assert "was edited" in command("check", "-n", "default")[1]["problems"][0]
    any_admission.apply(_policy())
    second = _policy()
    second["metadata"]["name"] = "another-handover"
    any_admission.apply(second)
    try:
        assert "several policies" in command("check", "-n", "default")[1]["problems"][0]
    finally:
        any_admission.remove(second)


def test_check_says_that_a_binding_is_missing(command: Commands, any_admission: Admission) -> None:
    any_admission.use(MORE)
    binding = policy_objects(MORE, guard=False)[1]
    any_admission.forget()
    any_admission.remove(binding)
    wait_until(lambda: any_admission.probe()[1] is None)
    code, found = command("check", "-n", "default")
    assert (code, found["isBound"], found["acting"]) == (1, False, None)
    assert found["problems"] == ["the policy has no binding, so it is off"]


def test_move_is_done_once(command: Commands, older: Older, more: int | None) -> None:
    for seconds in range(12):
        older.add([timed(KEY, seconds)])
    older.add([FOR_EVER])
    older.enter()
    before = older.pods()
    code, shown = command("move", "-n", older.name, "--dry-run")
    assert (code, shown["moved"], shown["isDryRun"], shown["left"]) == (0, 12, True, {"noSeconds": 1})
    assert older.pods() == before
    code, done = command("move", "-n", older.name)
    assert (code, done["moved"], done["failed"], done["isWhole"]) == (0, 12, 0, True)
    moved = older.pods()
    assert sum(annotation_of(each) is not None for each in moved.values()) == 12
    assert {
        each["metadata"]["generation"] - before[name]["metadata"]["generation"] for name, each in moved.items()
    } == {0, 1}
    code, again = command("move", "-n", older.name)
    assert (code, again["moved"], again["left"]) == (0, 0, {"moved": 12, "noSeconds": 1})
    assert older.pods() == moved


def test_move_takes_one_node(command: Commands, older: Older) -> None:
    names = {node: older.add([timed(KEY, 9)], node=node)["metadata"]["name"] for node in ("n-1", "n-2")}
    older.enter()
    assert command("move", "--node", "n-1", "-n", older.name)[1]["moved"] == 1
    found = older.pods()
    assert annotation_of(found[names["n-1"]]) is not None
    assert annotation_of(found[names["n-2"]]) is None


def test_what_the_policy_leaves_is_said_by_move(command: Commands, older: Older) -> None:
    given = [timed(f"{KEY}-{n}", n) for n in range(500)]
    older.add(given)
    older.enter()
    code, done = command("move", "-n", older.name)
    assert (code, done["moved"], done["unchanged"]) == (ExitCode.FOUND_PROBLEM, 0, 1)


def test_move_without_a_policy_does_nothing(command: Commands, older: Older) -> None:
    older.add([timed(KEY, 9)])
    assert command("move", "-n", older.name) == (ExitCode.FOUND_PROBLEM, None)
    assert "nothing was moved" in command.said


def test_restore_gives_back_what_was_there(command: Commands, older: Older, more: int | None) -> None:
    given = [
        [timed(KEY, 30), timed("a", None), timed("b", 0)],
        [timed(None, -7)],
        [timed(KEY, 5), timed(KEY, 60)],
        [{"key": KEY, "operator": "Equal", "value": "v", "effect": "NoExecute", "tolerationSeconds": 9}],
    ]
    before = {pod["metadata"]["name"]: spec_of(pod) for pod in map(older.add, given)}
    older.enter()
    command("move", "-n", older.name)
    code, _ = command("restore", "-n", older.name)
    assert code == ExitCode.FOUND_PROBLEM
    assert "would move the pods again" in command.said
    code, vain = command("restore", "-n", older.name, "--despite-policy")
    assert (code, vain["restored"], vain["unchanged"]) == (ExitCode.FOUND_PROBLEM, 0, 4)
    older.leave()
    moved = older.pods()
    code, shown = command("restore", "-n", older.name, "--dry-run")
    assert (code, shown["restored"]) == (0, 4)
    assert older.pods() == moved
    code, done = command("restore", "-n", older.name)
    assert (code, done["restored"], done["isWhole"]) == (0, 4, True)
    found = older.pods()
    assert {name: spec_of(pod) for name, pod in found.items()} == before
    assert {annotation_of(pod) for pod in found.values()} == {None}
    assert command("restore", "-n", older.name)[1]["left"] == {"notMoved": 4}
    assert older.pods() == found


def test_restore_leaves_years_as_they_are(command: Commands, older: Older, more: int | None) -> None:
    """The built-in controller would evict at once what overflows its arithmetic."""
    older.add([timed(KEY, 18_446_744_074)])
    older.enter()
    command("move", "-n", older.name)
    older.leave()
    command("restore", "-n", older.name)
    (pod,) = older.pods().values()
    assert spec_of(pod)[0] == timed(KEY, MOST_SECONDS if more else 18_446_744_074)
    assert annotation_of(pod) is None


def test_restore_takes_what_others_write_meanwhile(command: Commands, older: Older, admission: Admission) -> None:
    """Each patch is for one version; one that comes too late is made of the newer version."""
    older.enter()
    names = [older.add([timed(KEY, 30)])["metadata"]["name"] for _ in range(30)]
    older.leave()
    is_over = threading.Event()

    def write() -> None:
        client = plane_client
        for number in range(100_000):
            if is_over.is_set():
                return
            for name in names[::3]:
                change = {"metadata": {"labels": {"n": str(number)}}}
                client.call("PATCH", f"{pods_in(older.name)}/{name}", change, "application/merge-patch+json")

    plane_client = admission.client
    writer = threading.Thread(target=write)
    writer.start()
    try:
        totals = [command("restore", "-n", older.name, "--rate", "1000") for _ in range(4)]
    finally:
        is_over.set()
        writer.join()
    assert totals[-1][1]["failed"] == 0
    assert {annotation_of(pod) for pod in older.pods().values()} == {None}
    assert {spec_of(pod)[0]["tolerationSeconds"] for pod in older.pods().values()} == {30}


def test_pods_that_go_meanwhile_are_counted(command: Commands, older: Older, admission: Admission) -> None:
    names = [older.add([timed(KEY, 30)])["metadata"]["name"] for _ in range(4)]
    older.enter()

    def delete_all() -> None:
        for name in names[2:]:
            admission.client.delete(f"{pods_in(older.name)}/{name}", grace_seconds=0)

    timer = threading.Timer(0.5, delete_all)
    timer.start()
    code, done = command("move", "-n", older.name, "--rate", "1")
    timer.join()
    assert code == ExitCode.DONE
    assert (done["moved"], done["gone"]) == (2, 2)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_with_a_summary(number: signal.Signals, command: Commands, older: Older) -> None:
    for _ in range(8):
        older.add([timed(KEY, 30)])
    older.enter()
    timer = threading.Timer(1.2, lambda: os.kill(os.getpid(), number))
    timer.start()
    code, done = command("move", "-n", older.name, "--rate", "2")
    timer.join()
    assert code == 128 + number
    assert 0 < done["moved"] < 8
    assert not done["isWhole"]
    code, rest = command("move", "-n", older.name)
    assert (code, rest["moved"]) == (0, 8 - done["moved"])


@contextlib.contextmanager
def denied(admission: Admission, operation: str, expression: str, is_denied: Callable[[], object]) -> Iterator[None]:
    """Have a policy of somebody else that refuses some pods."""
    version = "admissionregistration.k8s.io/v1"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": [operation], "resources": ["pods"]}
    policy: Object = {
        "apiVersion": version,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "denies"},
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": expression, "message": "not here"}],
        },
    }
    binding: Object = policy | {
        "kind": "ValidatingAdmissionPolicyBinding",
        "spec": {"policyName": "denies", "validationActions": ["Deny"]},
    }

    def is_refused() -> bool:
        try:
            is_denied()
        except RefusedError:
            return True
        return False

    for each in (policy, binding):
        admission.apply(each)
    try:
        wait_until(is_refused)
        yield
    finally:
        for each in (binding, policy):
            admission.remove(each)


def test_a_refused_pod_is_named_and_others_go_on(command: Commands, older: Older, admission: Admission) -> None:
    """A company's own policy may refuse what ours writes."""
    names = [older.add([timed(KEY, 30)])["metadata"]["name"] for _ in range(3)]
    older.enter()

    def patch() -> Object:
        return admission.patch(names[1], {}, namespace=older.name, query="?dryRun=All")

    with denied(admission, "UPDATE", f'object.metadata.name != "{names[1]}"', patch):
        code, done = command("move", "-n", older.name)
    assert code == ExitCode.FOUND_PROBLEM
    assert (done["moved"], done["failed"]) == (2, 1)
    (failure,) = done["failures"]
    assert failure["pod"] == f"{older.name}/{names[1]}"
    assert "not here" in failure["reason"]


def test_where_no_probe_is_created_one_is_patched(
    command: Commands, older: Older, admission: Admission, more: int | None
) -> None:
    """Policies that allow images of a registry alone are common."""
    older.enter()
    expression = 'object.spec.containers.all(c, !c.image.startsWith("none.invalid/"))'
    probe = pod_with([])
    probe["spec"]["containers"][0]["image"] = "none.invalid/none"
    with denied(admission, "CREATE", expression, lambda: admission.dry(probe, older.name)):
        assert command("check", "-n", older.name) == (ExitCode.FOUND_PROBLEM, None)
        assert "not here" in command.said
        older.add([timed(KEY, 30)])
        before = older.pods()
        code, found = command("check", "-n", older.name)
    assert (code, found["acting"]["more"]) == (ExitCode.DONE, more)
    assert older.pods() == before


def test_an_unreadable_annotation_is_restored_away(command: Commands, older: Older) -> None:
    older.add([FOR_EVER], annotation="no JSON")
    assert command("restore", "-n", older.name)[1]["restored"] == 1
    (pod,) = older.pods().values()
    assert ANNOTATION not in pod["metadata"].get("annotations", {})


def test_rights_that_are_missing_are_named(
    plane: ControlPlane, admission: Admission, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--kubeconfig", str(plane.kubeconfig), "--context", "nobody"]
    assert run(["handover", "check", *where]) == ExitCode.FOUND_PROBLEM
    assert "403" in capsys.readouterr().err
