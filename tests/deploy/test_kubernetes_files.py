"""The files of deploy/kubernetes: what `kubectl apply` of some of them leaves, in any order."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from evictstream.streams.executor.access_review import EVENT_RIGHTS, OF_MODE, READ_RIGHTS
from evictstream.streams.executor.eviction import ExecutorMode
from tests.deploy.pages import ROOT

FILES = sorted((ROOT / "deploy" / "kubernetes").glob("*.yaml"))
OBJECTS: dict[str, list[dict[str, Any]]] = {
    file.name: list(yaml.safe_load_all(file.read_text(encoding="utf-8"))) for file in FILES
}


def rights(*files: str) -> set[tuple[str, str]]:
    """What the service account may do once these were applied, one after the other."""
    held = {(each["kind"], each["metadata"]["name"]): each for file in files for each in OBJECTS[file]}
    roles = {each["roleRef"]["name"] for (kind, _), each in held.items() if kind == "ClusterRoleBinding"}
    rules = [rule for role in roles for rule in held["ClusterRole", role]["rules"]]
    return {(verb, resource) for rule in rules for verb in rule["verbs"] for resource in rule["resources"]}


@pytest.mark.parametrize(("first", "second"), list(permutations(OBJECTS, 2)))
def test_two_files_grant_what_each_grants_in_any_order(first: str, second: str) -> None:
    assert rights(first, second) == rights(first) | rights(second)


@pytest.mark.parametrize("mode", list(ExecutorMode))
def test_the_file_of_a_mode_grants_what_it_needs_alone(mode: ExecutorMode) -> None:
    needed = {
        *READ_RIGHTS,
        *OF_MODE[mode],
        # One file is enough to delete after a while.
        *(OF_MODE[ExecutorMode.EVICT] if mode is ExecutorMode.DELETE else ()),
        *EVENT_RIGHTS[mode],
        ("get", "namespaces"),
    }
    assert rights(f"executor-{mode}.yaml") == needed


def test_a_feed_may_read_nodes_and_pods_alone() -> None:
    followed = {(verb, resource) for verb in ("list", "watch") for resource in ("nodes", "pods")}
    assert rights("feed.yaml") == followed | {("get", "namespaces")}


def test_observing_and_feeding_write_nothing_but_events() -> None:
    held = rights("executor-observe.yaml", "feed.yaml")
    assert {right for right in held if right[0] not in {"get", "list", "watch"}} == {("create", "events")}


@pytest.mark.parametrize("file", OBJECTS)
def test_of_namespaces_one_may_be_read(file: str) -> None:
    (role,) = (each for each in OBJECTS[file] if each["kind"] == "ClusterRole")
    named = [rule.get("resourceNames") for rule in role["rules"] if "namespaces" in rule["resources"]]
    assert named == [["kube-system"]]


@pytest.mark.parametrize("file", OBJECTS)
def test_the_namespace_is_made_before_what_is_in_it(file: str) -> None:
    first, account = OBJECTS[file][:2]
    assert (first["kind"], first["metadata"]["name"]) == ("Namespace", account["metadata"]["namespace"])
