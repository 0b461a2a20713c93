"""Watch events for upstream's controller; each is handled at once.

An event has the new object alone; the old one is in the controller's cache, as with client-go's informers. A pod that
was deleted and created again under its name between two events is one `PodSeen`.
"""

from collections.abc import Iterable
from typing import TypeAlias

import msgspec

from evictstream.kit.upstream.taint_eviction.cache import address_of
from evictstream.kit.upstream.taint_eviction.controller import TaintEvictionController
from evictstream.kit.upstream.taint_eviction.outcomes import ControllerOutcome
from evictstream.models.kubernetes.objects import Node, Pod


class NodeSeen(msgspec.Struct, frozen=True, gc=False):
    """A node was added or modified, seen at an instant (microseconds since 1970)."""

    at_us: int
    node: Node


class NodeGone(msgspec.Struct, frozen=True, gc=False):
    """A node was deleted."""

    at_us: int
    name: str


class PodSeen(msgspec.Struct, frozen=True, gc=False):
    """A pod was added or modified."""

    at_us: int
    pod: Pod


class PodGone(msgspec.Struct, frozen=True, gc=False):
    """A pod was deleted; `pod` is its last state."""

    at_us: int
    pod: Pod


ControllerInput: TypeAlias = NodeSeen | NodeGone | PodSeen | PodGone


def apply(controller: TaintEvictionController, change: ControllerInput) -> list[ControllerOutcome]:
    """Let time pass up to a change, including timers of that instant, then apply and handle the change.

    Raises:
        ValueError: the change lies before one that was handed in earlier.
    """
    outcomes = controller.advance(change.at_us)
    match change:
        case NodeSeen(node=node):
            controller.see_node(node)
        case NodeGone(name=name):
            controller.lose_node(name)
        case PodSeen(pod=pod):
            controller.see_pod(pod)
        case PodGone(pod=pod):
            controller.lose_pod(address_of(pod))
    return outcomes + controller.work(change.at_us)


def run_controller(
    controller: TaintEvictionController, changes: Iterable[ControllerInput], until_us: int
) -> list[ControllerOutcome]:
    """Apply changes in order of time, then let time pass until an instant; returns all outcomes.

    Raises:
        ValueError: the changes are not in order, or go on after `until_us`.
    """
    outcomes = [outcome for change in changes for outcome in apply(controller, change)]
    return outcomes + controller.advance(until_us)
