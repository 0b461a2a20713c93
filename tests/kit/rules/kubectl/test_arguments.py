"""semantics.md 10; `Complete`, `Validate` and `validateFlags` of kubectl's taint.go, cases of taint_test.go."""

from __future__ import annotations

import pytest

from evictstream.kit.rules.kubectl import (
    KubectlError,
    Refusal,
    TaintChanges,
    check_selection,
    is_taint_argument,
    parse_command,
    split_arguments,
)
from evictstream.models.kubernetes import NO_EXECUTE, NO_SCHEDULE, Taint


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        ("node", False),
        ("node-name", False),
        ("", False),
        ("a=b", True),
        ("a:", True),
        ("a-", True),
        ("-", True),
        ("-a", False),
    ],
)
def test_a_taint_contains_a_sign_or_ends_with_dash(argument: str, *, expected: bool) -> None:
    assert is_taint_argument(argument) is expected


@pytest.mark.parametrize(
    ("arguments", "resources", "specs"),
    [
        (["node", "n1", "a:NoExecute"], ("node", "n1"), ("a:NoExecute",)),
        (["nodes", "n1", "n2", "a-", "b-"], ("nodes", "n1", "n2"), ("a-", "b-")),
        (["node", "a-"], ("node",), ("a-",)),
    ],
)
def test_names_come_before_taints(arguments: list[str], resources: tuple[str, ...], specs: tuple[str, ...]) -> None:
    assert split_arguments(arguments) == (resources, specs)


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        pytest.param(
            ["node", "n1", "a-", "n2"],
            Refusal.ARGUMENTS,
            "all resources must be specified before taint changes: n2",
            id="Complete: a name after a taint",
        ),
        pytest.param(
            ["a-"],
            Refusal.ARGUMENTS,
            "one or more resources must be specified as <resource> <name>",
            id="Complete: no resource",
        ),
        pytest.param(
            [],
            Refusal.ARGUMENTS,
            "one or more resources must be specified as <resource> <name>",
            id="Complete: nothing",
        ),
        pytest.param(
            ["node", "n1"], Refusal.ARGUMENTS, "at least one taint update is required", id="Complete: no taint"
        ),
        pytest.param(
            ["node", "n1", "a=b"],
            Refusal.INVALID_SPEC,
            "invalid taint spec: a=b, name part must consist of alphanumeric characters, '-', '_' or '.', and must"
            " start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for"
            " validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
            id="Complete: a bad taint",
        ),
        pytest.param(
            ["Pod", "p", "a-"],
            Refusal.ARGUMENTS,
            "invalid resource type pod, only node types are supported",
            id="Validate: another resource",
        ),
        pytest.param(
            ["node", "node-name", "foo=:NoExcute", "foo=:NoExcute-"],
            Refusal.INVALID_EFFECT,
            "invalid taint effect: NoExcute, unsupported taint effect",
            id="TestTaint: add and remove, but the effect is looked at first",
        ),
        pytest.param(
            ["node", "node-name", "foo=:NoExecute", "foo=:NoExecute-"],
            Refusal.CONFLICT,
            "can not both modify and remove the following taint(s) in the same command: foo=NoExecute",
            id="10 add and remove with equal effects",
        ),
        pytest.param(
            ["node", "node-name", "foo:NoExecute", "foo-"],
            Refusal.CONFLICT,
            "can not both modify and remove the following taint(s) in the same command: foo=",
            id="10 the removal has no effect",
        ),
        pytest.param(
            ["node", "node-name", "a:NoExecute", "b:NoSchedule", "b-", "a:NoExecute-"],
            Refusal.CONFLICT,
            "can not both modify and remove the following taint(s) in the same command: a=NoExecute, b=",
            id="Validate: all pairs, in the order of the additions",
        ),
        pytest.param(
            ["node", "a-"],
            Refusal.ARGUMENTS,
            "at least one resource name must be specified since 'all' parameter is not set",
            id="Validate: no name",
        ),
    ],
)
def test_refused(arguments: list[str], kind: Refusal, message: str) -> None:
    with pytest.raises(KubectlError) as caught:
        parse_command(arguments)
    assert caught.value.kind is kind
    assert str(caught.value) == message


def test_a_command() -> None:
    found = parse_command(["NODES", "n1", "n2", "a=b:NoExecute", "c-"])
    assert found.nodes == ("n1", "n2")
    assert found.changes == TaintChanges((Taint("a", "b", NO_EXECUTE),), (Taint("c"),))


@pytest.mark.parametrize(
    "word",
    ["no", "node", "nodes", "Node", "nodes.", "nodes..", "nodes.v1", "node.spec", "NODES.v1.apps.", "no.a-b.spec*"],
)
def test_words_for_nodes(word: str) -> None:
    """`SplitAndParseResourceRequest` reads a path of fields behind the resource, and `Validate` forgets it."""
    assert parse_command([word, "n", "a-"]).nodes == ("n",)


@pytest.mark.parametrize(
    "word",
    [
        pytest.param("nodess", id="another word"),
        pytest.param("nod", id="a shorter word"),
        pytest.param("", id="no word"),
        pytest.param(".", id="only a point"),
        pytest.param(".nodes", id="a point first"),
        pytest.param("nodes...", id="three points"),
        pytest.param("nodes..spec", id="JSONPath: any depth"),
        pytest.param("nodes.*", id="JSONPath: any field"),
        pytest.param("nodes.*.spec", id="JSONPath: any field in between"),
        pytest.param("nodes[0]", id="JSONPath: an entry"),
        pytest.param("nodes/n", id="a name behind a slash"),
        pytest.param("nodes,pods", id="two resources"),
        pytest.param("nodes.}{.x", id="two paths"),
        pytest.param("nodes\n", id="line end"),
        pytest.param("pods.v1", id="pods"),
        pytest.param("nodes['spec']", id="ours: kubectl reads JSONPath's quotes"),
        pytest.param("nodes@", id="ours: kubectl reads JSONPath's current object"),
    ],
)
def test_other_words(word: str) -> None:
    with pytest.raises(KubectlError) as caught:
        parse_command([word, "n", "a:NoExecute"])
    assert str(caught.value) == f"invalid resource type {word}, only node types are supported"


def test_one_command_may_also_remove_the_keys_other_effects() -> None:
    found = parse_command(["node", "n", "a:NoExecute", "a:NoSchedule-"])
    assert found.changes.remove == (Taint("a", "", NO_SCHEDULE),)


@pytest.mark.parametrize("options", [{"select_all": True}, {"selector": "a=b"}])
def test_all_and_selectors_need_no_name_and_ignore_names(options: dict[str, bool | str]) -> None:
    assert parse_command(["node", "a-"], **options).nodes == ()  # type: ignore[arg-type] # of each its own
    assert parse_command(["node", "n1", "a-"], **options).nodes == ()  # type: ignore[arg-type] # as above


@pytest.mark.parametrize(
    ("resources", "select_all", "selector", "message"),
    [
        pytest.param([], False, "myLabel=X", "", id="TestValidateFlags: with selector and without all"),
        pytest.param([], True, "", "", id="TestValidateFlags: without selector and all"),
        pytest.param(
            [],
            True,
            "myLabel=X",
            "setting 'all' parameter with a non empty selector is prohibited",
            id="TestValidateFlags: with selector and with all",
        ),
        pytest.param(
            ["node"],
            False,
            "",
            "at least one resource name must be specified since 'all' parameter is not set",
            id="TestValidateFlags: neither, and node name is not provided",
        ),
        pytest.param(["node", "node-name"], False, "", "", id="TestValidateFlags: neither, and node name is provided"),
    ],
)
def test_flags(resources: list[str], selector: str, message: str, *, select_all: bool) -> None:
    if not message:
        check_selection(resources, select_all=select_all, selector=selector)
        return
    with pytest.raises(KubectlError) as caught:
        check_selection(resources, select_all=select_all, selector=selector)
    assert str(caught.value) == message
