"""`rules verdict` and `rules tolerations` give one answer about one file, and say what they assume."""

from __future__ import annotations

import pytest

from evictstream.streams.errors import ExitCode
from tests.kit.cli.rules.conftest import Rules, WriteFile

NODE = (
    "{kind: Node, metadata: {name: n1, uid: u1},"
    " spec: {taints: [{key: node.kubernetes.io/unreachable, effect: NoExecute}]}}\n---\n"
)
MANIFEST = "{kind: Pod, metadata: {name: web-0}}"
STORED = "{kind: Pod, metadata: {name: web-0, uid: u2}}"
OWN = (
    "{kind: Pod, metadata: {name: web-0}, spec: {tolerations:"
    " [{key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 7}]}}"
)


@pytest.mark.parametrize(
    ("pod", "options", "seconds"),
    [
        pytest.param(MANIFEST, [], 300, id="manifest"),
        pytest.param(MANIFEST, ["--unreachable-seconds", "60"], 60, id="other-flags"),
        pytest.param(OWN, [], 7, id="own-seconds"),
        pytest.param(STORED, [], None, id="stored"),
    ],
)
def test_both_commands_use_the_same_toleration(
    pod: str, options: list[str], seconds: int | None, rules: Rules, write: WriteFile
) -> None:
    file = write(NODE + pod)
    verdict = rules("verdict", "--node", file, "--pod", file, *options, "-o", "json").json["verdicts"][0]["eviction"]
    (traced,) = rules("tolerations", file, "--node", file, *options, "-o", "json").json["pods"]
    position = traced["inUse"][0]["toleration"]
    used = None if position is None else traced["tolerations"][position]["toleration"]
    assert verdict["toleration"] == used
    assert (used or {}).get("tolerationSeconds") == seconds
    assert verdict["staySeconds"] == (0 if seconds is None else seconds)


def test_what_is_assumed_is_said_where_it_matters(rules: Rules, write: WriteFile) -> None:
    file = write(NODE + MANIFEST + "\n---\n" + STORED)
    answer = rules("verdict", "--node", file, "--pod", file)
    assert answer.code == ExitCode.DONE
    assert answer.out.splitlines()[-1] == (
        "assumed for 1 pod without UID, as DefaultTolerationSeconds adds on creation: not-ready is tolerated for"
        " 300 s, unreachable for 300 s"
    )
    assert rules("verdict", "--node", file, "--pod", file, "-o", "json").json["assumed"] == {
        "podsWithoutUid": 1,
        "notReadySeconds": 300,
        "unreachableSeconds": 300,
    }


@pytest.mark.parametrize(
    ("node", "pod"),
    [(NODE, STORED), (NODE.replace("unreachable", "network-unavailable"), MANIFEST)],
    ids=["stored-pod", "other-taint"],
)
def test_what_changes_nothing_is_not_said(node: str, pod: str, rules: Rules, write: WriteFile) -> None:
    file = write(node + pod)
    assert "assumed" not in rules("verdict", "--node", file, "--pod", file).out
