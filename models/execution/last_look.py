"""The last look: whether a pod still has to leave, by the present objects of the API server.

Feed, Kafka and the executor's queue delay a command. The objects that are read here are newer, so a pod that moved, an
edited toleration or a removed taint protects the pod before its `Cancel` arrives. The last look can only veto: the
service decides which pods leave, and when.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from evictstream.models.instants import SECOND_US, instant_us
from evictstream.models.kubernetes.handed_over import read_handed_over
from evictstream.models.kubernetes.matching import bounded_seconds, first_match, looks_at_value, tolerations_in_use
from evictstream.models.kubernetes.shapes import (
    DISRUPTION_TARGET,
    TERMINAL_PHASES,
    ZONE_LABEL,
    ConditionObject,
    LookedAtNode,
    LookedAtPod,
)
from evictstream.models.kubernetes.taints import HEALTH_KEYS, NO_EXECUTE, BareTaint, Taint, other_health_key, taint_text
from evictstream.models.kubernetes.tolerations import Toleration, is_same_toleration
from evictstream.models.messages.command import EvictionCommand
from evictstream.models.messages.vocabulary import Outcome
from evictstream.models.shallow_json import decode_any_depth


class SeenPod(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A pod as the API server has it.

    Attributes:
        resource_version: the precondition of a write after this look.
        is_disruption_target: whether it has the condition `DisruptionTarget` already.
        is_in_group: whether it is a member of a PodGroup.
        tolerations: in pod order, with the seconds in force.
    """

    uid: str
    resource_version: str
    node: str
    phase: str
    is_terminating: bool
    is_mirror: bool
    is_disruption_target: bool
    tolerations: Sequence[Toleration]
    is_in_group: bool = False


class SeenNode(msgspec.Struct, frozen=True, gc=False):
    """A node as the API server has it, with its `NoExecute` taints only.

    Attributes:
        zone: by its label `topology.kubernetes.io/zone`; None without.
    """

    uid: str
    taints: Sequence[Taint]
    zone: str | None = None


class Veto(msgspec.Struct, frozen=True, gc=False):
    """Why a command must not be carried out, and the outcome to report."""

    outcome: Outcome
    reason: str


_pods: Final = msgspec.json.Decoder(LookedAtPod)
_nodes: Final = msgspec.json.Decoder(LookedAtNode)


def read_seen_pod(text: bytes) -> SeenPod:
    """Read a pod. Fields that are nested too deeply for the decoder are left out; none of them matters here.

    Raises:
        msgspec.DecodeError: it is not a pod.
    """
    pod = decode_any_depth(_pods, text)
    return SeenPod(
        uid=pod.metadata.uid,
        resource_version=pod.metadata.resource_version or "",
        node=pod.spec.node_name or "",
        phase=pod.status.phase or "",
        is_terminating=pod.metadata.deletion_timestamp is not None,
        is_mirror=pod.metadata.is_mirror,
        is_disruption_target=ConditionObject(DISRUPTION_TARGET, "True") in (pod.status.conditions or ()),
        is_in_group=bytes(pod.spec.scheduling_group) != b"null",
        tolerations=read_handed_over(pod.spec.tolerations, pod.metadata.handed_over).tolerations,
    )


def read_seen_node(text: bytes) -> SeenNode:
    """Read a node. Raises what `read_seen_pod` raises."""
    node = decode_any_depth(_nodes, text)
    taints = [
        Taint(key=taint.key or "", value=taint.value or "", effect=taint.effect)
        for taint in node.spec.taints or ()
        if taint.effect == NO_EXECUTE
    ]
    return SeenNode(uid=node.metadata.uid, taints=taints, zone=(node.metadata.labels or {}).get(ZONE_LABEL))


def last_look(
    command: EvictionCommand,
    pod: SeenPod | None,
    node: SeenNode | None,
    *,
    now_us: int,
    comparison_operators: bool,
) -> Veto | None:
    """Return why an `Evict` must not be carried out; None if it still applies.

    Args:
        command: with the action `Evict`.
        pod: with the command's namespace and name; None if there is none.
        node: with the command's node name; None if there is none.
        now_us: the executor's clock. If it is behind the service's, `issuedAt` counts: the eviction was due then.
        comparison_operators: whether the tolerations `Gt` and `Lt` compare, as in the cluster.
    """
    if pod is None:
        return Veto(Outcome.GONE, "there is no such pod")
    if pod.uid != command.pod_uid:
        return Veto(Outcome.GONE, f"another pod has this name, with UID {pod.uid}")
    reason = _of_pod(command, pod)
    if reason is None and node is None:
        reason = "the node is gone"
    if reason is None and node is not None:
        if command.node_uid and node.uid != command.node_uid:
            reason = f"another node has this name, with UID {node.uid}"
        else:
            at_us = max(now_us, instant_us(command.issued_at))
            reason = _of_taints(command, pod, node, at_us, comparison_operators=comparison_operators)
    return None if reason is None else Veto(Outcome.OBSOLETE, reason)


def _of_pod(command: EvictionCommand, pod: SeenPod) -> str | None:
    if pod.is_terminating:
        return "the pod is already terminating"
    if pod.phase in TERMINAL_PHASES:
        return f"the pod has ended: {pod.phase}"
    if pod.node != command.node:
        return f"the pod is bound to {pod.node or 'no node'}"
    return "the pod is a mirror pod" if pod.is_mirror else None


def _of_taints(
    command: EvictionCommand, pod: SeenPod, node: SeenNode, at_us: int, *, comparison_operators: bool
) -> str | None:
    if not node.taints:
        return "the node has no NoExecute taint"
    in_use = tolerations_in_use(pod.tolerations, node.taints, comparison_operators=comparison_operators)
    if in_use is None:
        return None  # a taint is not tolerated: due at once, whatever the reason of the command
    if all(bounded_seconds(toleration) is None for toleration in in_use):
        return "the pod tolerates all NoExecute taints forever"
    before = command.reason.toleration
    if before is None:
        return f"the pod tolerates {taint_text(command.reason.taint)} now"
    taint = _same_reason(command.reason.taint, node.taints)
    if taint is None:
        return f"the taint {taint_text(command.reason.taint)} is gone"
    return _of_window(command, pod, taint, before, at_us=at_us, comparison_operators=comparison_operators)


def _of_window(
    command: EvictionCommand,
    pod: SeenPod,
    taint: Taint,
    before: Toleration,
    *,
    at_us: int,
    comparison_operators: bool,
) -> str | None:
    toleration = first_match(pod.tolerations, taint, comparison_operators=comparison_operators)
    seconds = None if toleration is None else bounded_seconds(toleration)
    if toleration is None or seconds is None:
        return f"the pod tolerates {taint_text(taint)} forever"
    reason = command.reason.taint
    is_another = taint.value != reason.value or not is_same_toleration(toleration, before)
    if (
        seconds
        and taint.key == reason.key
        and is_another
        and looks_at_value(pod.tolerations, taint, in_use=toleration, comparison_operators=comparison_operators)
    ):  # its window begins when the value was set (semantics.md 12.4), at a time that is unknown here
        return f"the pod tolerates {taint_text(taint)} for {seconds} s since it has that value"
    # The window has the same start; only the seconds can have been edited since.
    moved_us = (seconds - (bounded_seconds(before) or 0)) * SECOND_US
    if instant_us(command.deadline) + moved_us > at_us:
        return f"the pod tolerates {taint_text(taint)} for {seconds} s now"
    return None


def _same_reason(reason: BareTaint, taints: Sequence[Taint]) -> Taint | None:
    """Find the command's taint; not-ready and unreachable are one outage (semantics.md 7.2)."""
    by_key = {taint.key: taint for taint in taints}
    if reason.key not in by_key and reason.key in HEALTH_KEYS:
        return by_key.get(other_health_key(reason.key))
    return by_key.get(reason.key)
