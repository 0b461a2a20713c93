"""`evictstream rules verdict`: which pods are judged on which nodes, and that this may be any number of them."""

from __future__ import annotations

import contextlib
import gc
import io
import itertools
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from evictstream.streams.cli.main import run
from evictstream.streams.cli.output import LOOK_AHEAD_ROWS, print_long_json, print_long_table
from evictstream.streams.errors import ExitCode
from tests.kit.cli.rules.conftest import Answer, Rules, WriteFile

CLUSTER = """
kind: List
items:
- {kind: Node, metadata: {name: n1, labels: {zone: a}}, spec: {taints: [{key: k, effect: NoExecute}]}}
- {kind: Node, metadata: {name: n2, labels: {zone: b}}}
- {kind: Node, metadata: {name: n3, labels: {zone: b}}, spec: {taints: [{key: s, effect: PreferNoSchedule}]}}
- {kind: Pod, metadata: {name: web-1, namespace: shop, labels: {app: web}}, spec: {nodeName: n1}}
- {kind: Pod, metadata: {name: web-2, namespace: shop, labels: {app: web}}, spec: {nodeName: n3}}
- {kind: Pod, metadata: {name: db-1, namespace: shop, labels: {app: db}}, spec: {nodeName: n2}}
- {kind: Pod, metadata: {name: pending, namespace: shop, labels: {app: db}}}
- {kind: Pod, metadata: {name: lost, namespace: ops}, spec: {nodeName: n9}}
"""
EVERYWHERE = ["n1", "n2", "n3"]


def on(answer: Answer) -> list[tuple[str, str]]:
    return [(found["pod"], found["node"]) for found in answer.json["verdicts"]]


@pytest.mark.parametrize(
    ("options", "judged", "not_judged"),
    [
        pytest.param(
            [],
            [("shop/web-1", "n1"), ("shop/web-2", "n3"), ("shop/db-1", "n2")],
            [("shop/pending", None, "NotBound"), ("ops/lost", "n9", "NodeNotFound")],
            id="each where it runs",
        ),
        pytest.param(
            ["-n", "shop"],
            [("shop/web-1", "n1"), ("shop/web-2", "n3"), ("shop/db-1", "n2")],
            [("shop/pending", None, "NotBound")],
            id="of a namespace",
        ),
        pytest.param(["-l", "app=web"], [("shop/web-1", "n1"), ("shop/web-2", "n3")], [], id="with a label"),
        pytest.param(
            ["--node-selector", "zone=a"],
            [("shop/web-1", "n1")],
            [("shop/pending", None, "NotBound"), ("ops/lost", "n9", "NodeNotFound")],
            id="on nodes with a label",
        ),
        pytest.param(
            ["-l", "app=web", "--all-nodes"],
            [(pod, node) for pod in ("shop/web-1", "shop/web-2") for node in EVERYWHERE],
            [],
            id="on all nodes",
        ),
        pytest.param(
            ["-n", "ops", "--all-nodes", "--node-selector", "zone!=a"],
            [("ops/lost", "n2"), ("ops/lost", "n3")],
            [],
            id="on all nodes with a label",
        ),
    ],
)
def test_each_pod_is_judged_on_its_node(
    options: list[str],
    judged: list[tuple[str, str]],
    not_judged: list[tuple[str, str | None, str]],
    rules: Rules,
    write: WriteFile,
) -> None:
    path = write(CLUSTER)
    answer = rules("verdict", "--node", path, "--pod", path, *options, "-o", "json")
    assert answer.code == ExitCode.DONE
    assert on(answer) == judged
    assert [tuple(found.values()) for found in answer.json["notJudged"]] == not_judged


def test_a_table_has_a_row_for_each_unplaced_pod(rules: Rules, write: WriteFile) -> None:
    path = write(CLUSTER)
    answer = rules("verdict", "--node", path, "--pod", path)
    rows = {line.split()[0]: line for line in answer.out.splitlines()}
    assert len(rows) == 6
    assert " not judged " in rows["shop/pending"]
    assert " not bound to a node " in rows["shop/pending"]
    assert " n9 " in rows["ops/lost"]
    assert " node not in the file " in rows["ops/lost"]


def test_a_pod_is_judged_on_each_node_of_that_name(rules: Rules, write: WriteFile) -> None:
    path = write(
        "{kind: Node, metadata: {name: n1}}\n---\n"
        "{kind: Node, metadata: {name: n1}, spec: {taints: [{key: k, effect: NoExecute}]}}\n---\n"
        "{kind: Pod, metadata: {name: p}, spec: {nodeName: n1}}\n"
    )
    answer = rules("verdict", "--node", path, "--pod", path, "-o", "json")
    assert [found["eviction"]["verdict"] for found in answer.json["verdicts"]] == ["evict-never", "evict-now"]


def test_a_score_is_one_among_all_nodes_of_the_file(rules: Rules, write: WriteFile) -> None:
    path = write(CLUSTER)
    answer = rules("verdict", "--node", path, "--pod", path, "--node-selector", "zone=b", "-o", "json")
    scores = {found["pod"]: found["scheduling"]["score"] for found in answer.json["verdicts"]}
    assert scores == {"shop/web-2": 0, "shop/db-1": 100}


@pytest.mark.parametrize(
    ("options", "told"),
    [(["-n", "nobody"], "no pod is selected"), (["--node-selector", "zone=c", "--all-nodes"], "no node is selected")],
)
@pytest.mark.parametrize("form", ["text", "json"])
def test_a_selection_of_nothing_is_said(
    options: list[str], told: str, form: str, rules: Rules, write: WriteFile
) -> None:
    path = write(CLUSTER)
    answer = rules("verdict", "--node", path, "--pod", path, *options, "-o", form)
    assert answer.code == ExitCode.DONE
    assert answer.err == f"evictstream: {told}\n"
    assert len(answer.out.splitlines()) == 1 if form == "text" else on(answer) == []


@pytest.mark.parametrize("option", ["-l", "--node-selector"])
def test_what_is_no_selector_is_wrong_use(option: str, rules: Rules, write: WriteFile) -> None:
    path = write(CLUSTER)
    answer = rules("verdict", "--node", path, "--pod", path, option, "app=web=x")
    assert answer.code == ExitCode.WRONG_USE
    assert answer.out == ""
    assert "'app=web=x' is no label selector" in answer.err


def test_table_rows_are_printed_before_later_ones_are_made(capsys: pytest.CaptureFixture[str]) -> None:
    def rows() -> Iterator[tuple[str, str]]:
        for number in range(10 * LOOK_AHEAD_ROWS):
            if number > LOOK_AHEAD_ROWS:
                out = capsys.readouterr().out
                assert out.splitlines()[-1].split() == ["row", str(number - 1)]
            yield "row", str(number)

    print_long_table(["a", "b"], rows())


def test_json_items_are_printed_before_later_ones_are_made(capsys: pytest.CaptureFixture[str]) -> None:
    def items() -> Iterator[dict[str, object]]:
        for number in itertools.count():
            assert f'{{"number":{number - 1}}}' in capsys.readouterr().out or number == 0
            if number == 1_000:
                return
            yield {"number": number}

    print_long_json({"head": True}, "items", items())


def test_a_wide_cell_far_down_brings_titles_and_loses_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    print_long_table(["a", "b"], [("x", "y")] * LOOK_AHEAD_ROWS + [("x" * 500, "y"), ("x", "y")])
    *_, before, titles, wide, after = capsys.readouterr().out.splitlines()
    assert (before, wide) == ("x  y", f"{'x' * 500}  y")
    assert (titles.split(), after.split()) == (["a", "b"], ["x", "y"])
    assert titles.index("b") == after.index("y") == wide.index("y")


class _MostHeld(io.StringIO):
    """Keeps nothing that is written, only how much memory was held at most when it was."""

    held_bytes = 0

    def write(self, text: str) -> int:
        self.held_bytes = max(self.held_bytes, tracemalloc.get_traced_memory()[0])
        return len(text)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["text", "json"])
def test_memory_does_not_grow_with_the_rows(form: str, tmp_path: Path) -> None:
    """20,000 rows instead of 50 of the same objects; a list with no more than one pointer to each has 160 kB."""
    nodes = "\n".join(f'{{"kind": "Node", "metadata": {{"name": "n{number}"}}}}' for number in range(400))
    pods = "\n".join(
        f'{{"kind": "Pod", "metadata": {{"name": "p{number}"}}, "spec": {{"nodeName": "n{number}"}}}}'
        for number in range(50)
    )
    path = tmp_path / "objects"
    path.write_text(f"{nodes}\n{pods}", encoding="utf-8")

    def most_held(*options: str) -> int:
        gc.collect()
        with contextlib.redirect_stdout(_MostHeld()) as out:
            tracemalloc.start()
            try:
                assert run(["rules", "verdict", "--node", str(path), "--pod", str(path), "-o", form, *options]) == 0
            finally:
                tracemalloc.stop()
        return out.held_bytes

    most_held()  # imports
    few, many = most_held(), most_held("--all-nodes")
    assert few > 0
    assert many - few < 100_000
