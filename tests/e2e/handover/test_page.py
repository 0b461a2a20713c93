"""What docs/managed-clusters.md tells to type, typed in its order on a real API server: in, and back."""

from __future__ import annotations

import contextlib
import json
import shlex
from pathlib import Path
from typing import Final

import pytest
import yaml  # type: ignore[import-untyped]

from evictstream.streams.cli.main import run
from evictstream.streams.errors import ExitCode
from tests.docs.shell_blocks import shell_blocks, through
from tests.e2e.api_client import Object, RefusedError
from tests.e2e.control_plane import ControlPlane
from tests.e2e.handover.admission import Admission, annotation_of, pod_with, pods_in, spec_of, timed, wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("built_binaries")]

PAGE: Final = "docs/managed-clusters.md"
NAMESPACE: Final = "page"
KEY: Final = "example.com/k"


class Shell:
    """Runs lines of the page; stands for the few words of kubectl that it has."""

    def __init__(self, admission: Admission, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._admission = admission
        self._folder = folder
        self._capsys = capsys

    def run(self, line: str) -> None:
        words = shlex.split(line)
        if words[:3] == ["kubectl", "apply", "-f"]:
            for each in yaml.safe_load_all((self._folder / words[3]).read_text()):
                self._admission.apply(each)
            # `kubectl` returns before the API server has read it, and so may a reader of the page.
            wait_until(self._acts)
        elif words[:2] == ["kubectl", "delete"]:
            binding: Object = {"kind": "MutatingAdmissionPolicyBinding", "metadata": {"name": words[3]}}
            assert words[2] == binding["kind"].lower()
            self._admission.remove(binding)
            wait_until(lambda: not self._acts())
        else:
            typed, rest = through(line)
            assert run(typed) == ExitCode.DONE, (line, self._capsys.readouterr())
            if rest:
                assert rest[0] == ">"
                (self._folder / rest[1]).write_text(self._capsys.readouterr().out)

    def _acts(self) -> bool:
        return self._admission.probe()[1] is not None


def test_the_page_leads_in_and_back(
    plane: ControlPlane,
    any_admission: Admission,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(plane.kubeconfig))
    any_admission.none()
    client = any_admission.client
    client.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    wait_until(lambda: any_admission.exists(f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/default"))
    for left in client.items("/api/v1/pods"):  # of other tests
        with contextlib.suppress(RefusedError):
            client.delete(f"{pods_in(left['metadata']['namespace'])}/{left['metadata']['name']}", grace_seconds=0)
    before = {}
    for seconds in range(20):
        pod = any_admission.create(pod_with([timed(KEY, seconds)]), NAMESPACE)
        before[pod["metadata"]["name"]] = spec_of(pod)
    shell = Shell(any_admission, tmp_path, capsys)
    blocks = [block for block in shell_blocks() if block.page == PAGE]
    moves = [any("handover move" in line for line in block.lines) for block in blocks]
    assert moves.count(True) == 1
    for block, is_move in zip(blocks, moves, strict=True):
        for line in block.lines:
            # Before the move `check` finds pods to be moved, and exits with 1.
            if line == "evictstream handover check":
                assert run(shlex.split(line)[1:]) == ExitCode.FOUND_PROBLEM
                capsys.readouterr()
            else:
                shell.run(line)
        if is_move:
            assert all(annotation_of(pod) is not None for pod in client.items(pods_in(NAMESPACE)))
            capsys.readouterr()
            assert run(["handover", "check"]) == ExitCode.DONE
            found = json.loads(capsys.readouterr().out)["namespaces"][NAMESPACE]
            assert found == {"moved": len(before)}
    after = client.items(pods_in(NAMESPACE))
    assert {pod["metadata"]["name"]: spec_of(pod) for pod in after} == before
    assert {annotation_of(pod) for pod in after} == {None}
    any_admission.none()
