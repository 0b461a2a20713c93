"""`evictstream rules taint`: `kubectl taint` on a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from evictstream.kit.cli.rules.problems import end_with_problems, require, show_problems
from evictstream.streams.cli.output import OutputFormat, OutputOption, print_json, print_table, say, warn
from evictstream.streams.errors import ExitCode, FoundProblemError, WrongUseError

if TYPE_CHECKING:
    from evictstream.kit.cli.rules.checked_objects import NodeSubject
    from evictstream.kit.rules.kubectl import TaintChanges, TaintWord
    from evictstream.models.kubernetes import Taint


class _Changed(NamedTuple):
    """One node, kubectl's report about it, and its taints now."""

    node: NodeSubject
    word: TaintWord
    taints: tuple[Taint, ...]


class _Refused(NamedTuple):
    """A node that kubectl would not change, and its error."""

    node: NodeSubject
    line: str


def taint(
    node: Annotated[str, typer.Argument(help="File with nodes; - for stdin.", metavar="FILE")],
    specs: Annotated[
        list[str],
        typer.Argument(help="key=value:effect or key:effect adds; key:effect- or key- removes.", metavar="TAINT..."),
    ],
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a taint with the same key and effect.")
    ] = False,
    output: OutputOption = OutputFormat.TEXT,
) -> ExitCode:
    """Do to the nodes of a file what `kubectl taint` would do to them, and print them.

    The file itself stays as it is. The grammar, the order of taints, the reported word and the errors are those of
    kubectl. Prints a table of the taints; with `-o json` the changed node, or a list of them, which other commands
    read. Each node is changed for itself: one that cannot be stays as it is, and in the list, and the error names it.

    Exits with 0; with 1 if kubectl or the API server would refuse a node; with 2 if a taint or the file cannot be read.

    Examples:

    * `evictstream rules taint node.yaml dedicated=gpu:NoSchedule`
    * `evictstream rules taint node.json dedicated- maintenance:NoExecute --overwrite`
    * `evictstream rules taint node.json down:NoExecute -o json | evictstream rules verdict --node - --pod pod.json`
    """
    from evictstream.kit.cli.rules.checked_objects import NODE, nodes_of, unnamed_kinds
    from evictstream.kit.cli.rules.object_files import read_objects

    changes = _changes(specs)
    objects = read_objects(node)
    nodes, wrong = nodes_of(objects)
    wrong = [*unnamed_kinds(objects), *wrong]
    if wrong and not nodes:
        return show_problems(wrong, output)
    require(nodes, NODE, node, objects)
    outcomes = _apply(nodes, changes, overwrite=overwrite)
    refusals = [each for each in outcomes if isinstance(each, _Refused)]
    if len(refusals) == len(nodes):
        raise FoundProblemError("; ".join(each.line for each in refusals))
    if output is OutputFormat.JSON:
        items = [_object(each) for each in outcomes]
        print_json(items[0] if len(items) == 1 else {"apiVersion": "v1", "kind": "List", "items": items})
    else:
        changed = [each for each in outcomes if isinstance(each, _Changed)]
        for each in changed:
            say(f"node/{each.node.name} {each.word}")
        _show(changed)
    for refused in refusals:
        warn(refused.line)
    code = end_with_problems(wrong, output)
    return ExitCode.FOUND_PROBLEM if refusals else code


def _changes(specs: list[str]) -> TaintChanges:
    from evictstream.kit.rules.kubectl import KubectlError, check_conflicts, parse_taints

    try:
        changes = parse_taints(specs)
        check_conflicts(changes)
    except KubectlError as error:
        raise WrongUseError(str(error)) from error
    return changes


def _apply(nodes: list[NodeSubject], changes: TaintChanges, *, overwrite: bool) -> list[_Changed | _Refused]:
    """Change each node for itself: kubectl goes on behind one that it cannot change."""
    from evictstream.kit.rules.kubectl import KubectlError, Refusal, apply_changes

    outcomes: list[_Changed | _Refused] = []
    for node in nodes:
        try:
            outcome = apply_changes(node.taints, changes, overwrite=overwrite, node_name=node.name)
        except KubectlError as error:
            # kubectl does not name the node that lacks a taint; with one node that is clear.
            is_clear = error.kind is not Refusal.NOT_FOUND or len(nodes) == 1
            outcomes.append(_Refused(node, str(error) if is_clear else f"node {node.name}: {error}"))
        else:
            outcomes.append(_Changed(node, outcome.word, outcome.taints))
    return outcomes


def _object(changed: _Changed | _Refused) -> dict[str, object]:
    """Write the taints into the node; an unchanged entry keeps its form in the file, with its `timeAdded`."""
    from evictstream.kit.cli.rules.formatting import taint_json

    raw = changed.node.raw
    if isinstance(changed, _Refused):
        return {"apiVersion": "v1"} | {str(name): value for name, value in raw.items()}
    spec = raw.get("spec")
    fields = dict(spec) if isinstance(spec, dict) else {}
    entries = dict(zip(changed.node.taints, fields.pop("taints", None) or (), strict=True))
    if changed.taints:
        fields["taints"] = [entries.get(taint) or taint_json(taint) for taint in changed.taints]
    return {"apiVersion": "v1"} | {str(name): value for name, value in raw.items()} | {"spec": fields}


def _show(changed: list[_Changed]) -> None:
    rows = []
    for each in changed:
        for shown in each.taints:
            kept = shown in each.node.taints
            rows.append([each.node.name, shown.key, shown.value, shown.effect, "kept" if kept else "new"])
    if rows:
        print_table(["node", "key", "value", "effect", ""], rows)
