"""Which arguments of `kubectl taint` are nodes and which are taints, and which conflict (semantics.md 10).

    kubectl taint (node|nodes) NAME... SPEC... [--overwrite] [-l selector | --all]

Source: `staging/src/k8s.io/kubectl/pkg/cmd/taint/taint.go`, `Complete`, `Validate` and `validateFlags`.
"""

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from evictstream.kit.rules.kubectl.errors import KubectlError, Refusal
from evictstream.kit.rules.kubectl.specs import REMOVAL_MARK, TaintChanges, parse_taints

_NODE_KIND: Final = re.compile(r"(?:no|nodes?)(?:\.(?!\*(?:\.|$))[^][.,$@{}\\ \t\r\n]+)*\.{0,2}")
"""The word for nodes, and a path of fields behind it, which kubectl reads and forgets.

`SplitAndParseResourceRequest` in `staging/src/k8s.io/kubectl/pkg/explain/explain.go` reads JSONPath there, so that
`nodes['spec']`, `nodes@` and `no\\de` are nodes to kubectl too. Those are refused here: they mean the same as
`nodes`, and are nearly always typing errors.
"""


class TaintCommand(msgspec.Struct, frozen=True):
    """A command that kubectl would run.

    Attributes:
        nodes: names of the nodes; empty with `--all` or a selector, with which kubectl ignores names.
        changes: the changes to the taints of each node.
    """

    nodes: tuple[str, ...]
    changes: TaintChanges


def is_taint_argument(argument: str) -> bool:
    """Return whether an argument is a taint: it contains `=` or `:`, or ends in `-`."""
    return "=" in argument or ":" in argument or argument.endswith(REMOVAL_MARK)


def split_arguments(arguments: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Split the arguments into the resource with its names, and the taints.

    Raises:
        KubectlError: a name after a taint, no resource, or no taint.
    """
    first = next((index for index, argument in enumerate(arguments) if is_taint_argument(argument)), len(arguments))
    resources, specs = tuple(arguments[:first]), tuple(arguments[first:])
    for argument in specs:
        if not is_taint_argument(argument):
            raise KubectlError(Refusal.ARGUMENTS, f"all resources must be specified before taint changes: {argument}")
    if not resources:
        raise KubectlError(Refusal.ARGUMENTS, "one or more resources must be specified as <resource> <name>")
    if not specs:
        raise KubectlError(Refusal.ARGUMENTS, "at least one taint update is required")
    return resources, specs


def parse_command(arguments: Sequence[str], *, select_all: bool = False, selector: str = "") -> TaintCommand:
    """Read the arguments behind `kubectl taint`, without its flags.

    Args:
        arguments: resource, names and taints.
        select_all: `--all`.
        selector: `-l`, the text.

    Raises:
        KubectlError: the first error that kubectl would report.
    """
    resources, specs = split_arguments(arguments)
    changes = parse_taints(specs)
    kind = resources[0].lower()
    if not _NODE_KIND.fullmatch(kind):
        raise KubectlError(Refusal.ARGUMENTS, f"invalid resource type {kind}, only node types are supported")
    check_conflicts(changes)
    check_selection(resources, select_all=select_all, selector=selector)
    return TaintCommand(() if select_all or selector else resources[1:], changes)


def check_conflicts(changes: TaintChanges) -> None:
    """Refuse that one command adds and removes the same taint; a removal without effect stands for every effect.

    Raises:
        KubectlError: names each such pair by its removal.
    """
    pairs = [
        f"{removed.key}={removed.effect}"
        for added in changes.add
        for removed in changes.remove
        if added.key == removed.key and removed.effect in ("", added.effect)
    ]
    if pairs:
        raise KubectlError(
            Refusal.CONFLICT,
            f"can not both modify and remove the following taint(s) in the same command: {', '.join(pairs)}",
        )


def check_selection(resources: Sequence[str], *, select_all: bool = False, selector: str = "") -> None:
    """Refuse `--all` together with a selector, and neither of them without a name.

    Args:
        resources: the resource, and the names behind it.
        select_all: `--all`.
        selector: `-l`, the text.

    Raises:
        KubectlError: one of the two.
    """
    if select_all and selector:
        raise KubectlError(Refusal.ARGUMENTS, "setting 'all' parameter with a non empty selector is prohibited")
    if not select_all and not selector and len(resources) < len(("resource", "name")):
        raise KubectlError(
            Refusal.ARGUMENTS, "at least one resource name must be specified since 'all' parameter is not set"
        )
