"""What `evictstream describe` prints: fields and their values, then a table of a node's pods; or all of it as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from evictstream.kit.cli.rules.formatting import toleration_words
from evictstream.kit.cli.see_tables import gate_or_result, since_words, until_words
from evictstream.kit.see.evictions import ListedEviction, SeenGate
from evictstream.kit.see.nodes import ListedNode
from evictstream.kit.see.pods import ListedPod
from evictstream.models.eviction.state import NodeState
from evictstream.models.instants import instant_text
from evictstream.models.kubernetes.taints import taint_text
from evictstream.streams.cli.lists import ListColumn, ListFormat, ListKind, ListPrinter
from evictstream.streams.cli.output import OutputFormat, print_json, say

_NAME_WIDTH: Final = 14
"""Characters of the longest name of a field, and two spaces."""

Field = tuple[str, str]


class DescribedNode(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """A node, with what holds its evictions back, and its pods."""

    node: ListedNode
    gate: SeenGate | None = None
    heard_at: str | None = None
    pods_on_it: tuple[ListedPod, ...] = ()


def print_pod(pod: ListedPod, node: NodeState | None, at_us: int, *, output: OutputFormat, is_first: bool) -> None:
    """Print one pod; `node` is what is known of its node, `at_us` now in microseconds since 1970."""
    if output is OutputFormat.JSON:
        print_json(msgspec.to_builtins(pod))
        return
    _print_fields(list(_pod_fields(pod, node, at_us)), is_first=is_first)


def _pod_fields(pod: ListedPod, node: NodeState | None, at_us: int) -> Iterator[Field]:
    yield "Pod", f"{pod.namespace}/{pod.pod}"
    yield "UID", pod.pod_uid
    yield "Cluster", pod.cluster
    yield "Node", f"{pod.node}, since {pod.since}"
    for taint in () if node is None else node.taints:
        yield "Taint", f"{taint_text(taint.taint)}, since {instant_text(taint.since_us)}"
    for toleration in pod.tolerations:
        yield "Toleration", toleration_words(toleration)
    yield "Now", pod.text
    if pod.eviction is not None:
        yield from _eviction_fields(pod.eviction, at_us)
    yield "History", f"evictstream explain {pod.namespace}/{pod.pod} --cluster {pod.cluster}"


def _eviction_fields(one: ListedEviction, at_us: int) -> Iterator[Field]:
    yield "Eviction", f"{one.state}, {one.verdict}"
    yield "In", f"{until_words(one.at, at_us)}, at {one.at}"
    yield "Gate/result", gate_or_result(one)
    if one.built_in_at is not None:
        yield (
            "Built-in",
            f"the built-in controller goes on in {until_words(one.built_in_at, at_us)}, at {one.built_in_at}",
        )
    yield "Attempts", str(one.attempt)
    if one.issued_at is not None:
        yield "Issued", one.issued_at
    if one.unanswered_since is not None:
        yield "Unanswered", f"since {one.unanswered_since}"
    if one.next_attempt_at is not None and not one.queued:  # else none is owed while its executor reports it
        yield "Next attempt", f"in {until_words(one.next_attempt_at, at_us)}, at {one.next_attempt_at}"


def print_node(described: DescribedNode, at_us: int, *, output: OutputFormat, is_first: bool) -> None:
    """Print one node and its pods; `at_us` is now, microseconds since 1970."""
    if output is OutputFormat.JSON:
        print_json(msgspec.to_builtins(described))
        return
    _print_fields(list(_node_fields(described, at_us)), is_first=is_first)
    if described.pods_on_it:
        say()
        ListPrinter(_pods_kind(at_us), ListFormat.TABLE).whole(described.pods_on_it)


def _node_fields(described: DescribedNode, at_us: int) -> Iterator[Field]:
    node = described.node
    yield "Node", node.node
    yield "UID", node.uid or "not known: only its pods are"
    yield "Cluster", node.cluster
    yield "Feed heard", "sends no heartbeats" if described.heard_at is None else since_words(described.heard_at, at_us)
    if described.gate is not None:
        yield "Gate", f"{described.gate} is closed: nothing is issued"
    for one in node.taints:
        yield "Taint", f"{taint_text(one.taint)}, since {one.since}"
    if node.undecidable:
        yield "Taints", "too many or too long: its pods are left alone"
    if node.outage_since is not None:
        yield "Unhealthy", f"since {node.outage_since}"
    yield "Pods", str(node.pods)
    yield "Pending", str(node.pending)


def _pods_kind(at_us: int) -> ListKind[ListedPod]:
    return ListKind(
        name="Pod",
        columns=(
            ListColumn("POD", lambda one: f"{one.namespace}/{one.pod}", least=14),
            ListColumn("IN", lambda one: "-" if one.eviction is None else until_words(one.eviction.at, at_us)),
            ListColumn("STATE", lambda one: one.case if one.eviction is None else one.eviction.state, rank=1),
            ListColumn(
                "GATE/RESULT", lambda one: "-" if one.eviction is None else gate_or_result(one.eviction), rank=2
            ),
        ),
        name_of=lambda one: f"{one.namespace}/{one.pod}",
    )


def _print_fields(fields: Sequence[Field], *, is_first: bool) -> None:
    """Print fields as kubectl describes: a name that comes again stands once."""
    if not is_first:
        say()
    before = ""
    for name, value in fields:
        label = "" if name == before else f"{name}:"
        say(f"{label:{_NAME_WIDTH}}{value}")
        before = name
