"""`evictstream rules taint`: `kubectl taint` on a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from evictstream.streams.cli.output import OutputFormat, OutputOption, print_json, print_table, say
from evictstream.streams.cli.rules.problems import require, show_problems
from evictstream.streams.errors import ExitCode, FoundProblemError, WrongUseError

if TYPE_CHECKING:
    from evictstream.models.kubernetes import Taint
    from evictstream.models.kubernetes.kubectl import TaintChanges, TaintWord
    from evictstream.streams.cli.rules.checked_objects import NodeSubject


class _Changed(NamedTuple):
    """One node, kubectl's report about it, and its taints now."""

    node: NodeSubject
    word: TaintWord
    taints: tuple[Taint, ...]


def taint(
    node: Annotated[str, typer.Argument(help="File with nodes; - is stdin.", metavar="FILE")],
    specs: Annotated[
        list[str],
        typer.Argument(help="key=value:effect or key:effect adds; key:effect- or key- removes.", metavar="TAINT..."),
    ],
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Let a taint take the place of one with its key and effect.")
    ] = False,
    output: OutputOption = OutputFormat.TEXT,
) -> ExitCode:
    """Do to the nodes of a file what `kubectl taint` would do to them, and print them.

    The file itself stays as it is. The grammar, the order of taints, the reported word and the errors are those of
    kubectl. Prints a table of the taints; with `-o json` the changed node, or a list of them, which other commands
    read. If one node cannot be changed, none is printed.

    Exits with 0; with 1 if kubectl or the API server would refuse; with 2 if a taint or the file cannot be read.

    Examples:

    * `evictstream rules taint node.yaml dedicated=gpu:NoSchedule`
    * `evictstream rules taint node.json dedicated- maintenance:NoExecute --overwrite`
    * `evictstream rules taint node.json down:NoExecute -o json | evictstream rules verdict --node - --pod pod.json`
    """
    from evictstream.streams.cli.rules.checked_objects import NODE, nodes_of, unnamed_kinds
    from evictstream.streams.cli.rules.object_files import read_objects

    changes = _changes(specs)
    objects = read_objects(node)
    nodes, wrong = nodes_of(objects)
    if wrong := [*unnamed_kinds(objects), *wrong]:
        return show_problems(wrong, output)
    require(nodes, NODE, node, objects)
    changed = _apply(nodes, changes, overwrite=overwrite)
    if output is OutputFormat.JSON:
        items = [_object(each) for each in changed]
        print_json(items[0] if len(items) == 1 else {"apiVersion": "v1", "kind": "List", "items": items})
    else:
        for each in changed:
            say(f"node/{each.node.name} {each.word}")
        _show(changed)
    return ExitCode.DONE


def _changes(specs: list[str]) -> TaintChanges:
    from evictstream.models.kubernetes.kubectl import KubectlError, check_conflicts, parse_taints

    try:
        changes = parse_taints(specs)
        check_conflicts(changes)
    except KubectlError as error:
        raise WrongUseError(str(error)) from error
    return changes


def _apply(nodes: list[NodeSubject], changes: TaintChanges, *, overwrite: bool) -> list[_Changed]:
    from evictstream.models.kubernetes.kubectl import KubectlError, Refusal, apply_changes

    changed = []
    refusals = []
    for node in nodes:
        try:
            outcome = apply_changes(node.taints, changes, overwrite=overwrite, node_name=node.name)
        except KubectlError as error:
            # kubectl does not name the node that lacks a taint; with one node that is clear.
            is_clear = error.kind is not Refusal.NOT_FOUND or len(nodes) == 1
            refusals.append(str(error) if is_clear else f"node {node.name}: {error}")
        else:
            changed.append(_Changed(node, outcome.word, outcome.taints))
    if refusals:
        raise FoundProblemError("; ".join(refusals))
    return changed


def _object(changed: _Changed) -> dict[str, object]:
    """Write the taints into the node; an unchanged entry keeps its form in the file, with its `timeAdded`."""
    from evictstream.streams.cli.rules.formatting import taint_json

    raw = changed.node.raw
    spec = raw.get("spec")
    fields = dict(spec) if isinstance(spec, dict) else {}
    entries = dict(zip(changed.node.taints, fields.pop("taints", None) or (), strict=True))
    if changed.taints:
        fields["taints"] = [entries.get(taint) or taint_json(taint) for taint in changed.taints]
    return {"apiVersion": "v1"} | {str(name): value for name, value in raw.items()} | {"spec": fields}


def _show(changed: list[_Changed]) -> None:
    rows = []
    for each in changed:
        for found in each.taints:
            kept = found in each.node.taints
            rows.append([each.node.name, found.key, found.value, found.effect, "kept" if kept else "new"])
    if rows:
        print_table(["node", "key", "value", "effect", ""], rows)
