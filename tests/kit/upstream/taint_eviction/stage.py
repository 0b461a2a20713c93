"""A stage for the reference model: steps in seconds go in, a log of short lines comes out."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import TypeAlias

import pytest

from evictstream.kit.upstream.taint_eviction import (
    AdditionSkipped,
    ApiServer,
    AttemptFailed,
    ControllerOutcome,
    EventEmitted,
    EvictionForgotten,
    NodeGone,
    NodeSeen,
    PodDeleted,
    PodGone,
    PodSeen,
    TaintEvictionController,
    TimerCancelled,
    TimerKept,
    TimerSet,
    apply,
)
from evictstream.models.kubernetes import NO_EXECUTE, Node, Pod, Taint, Toleration

A = Taint("a", "", NO_EXECUTE)
B = Taint("b", "", NO_EXECUTE)
HORIZON = 100_000.0

Step: TypeAlias = Callable[["Stage"], list[ControllerOutcome]]


def us(seconds: float) -> int:
    return round(seconds * 1_000_000)


def tol(key: str = "", seconds: int | None = None, value: str = "", effect: str = NO_EXECUTE) -> Toleration:
    """Tolerate a key, or everything, with `Exists`; with `Equal` if a value is given."""
    return Toleration(key, "Equal" if value else "Exists", value, effect, seconds)


class Stage:
    def __init__(self, api: ApiServer | None = None, *, comparison_operators: bool = False) -> None:
        self.controller = TaintEvictionController(api, comparison_operators=comparison_operators)
        self.outcomes: list[ControllerOutcome] = []
        self.versions = itertools.count(1)

    def play(self, steps: Iterable[Step], until: float = HORIZON) -> Stage:
        for step in steps:
            self.outcomes += step(self)
        self.outcomes += self.controller.advance(us(until))
        return self

    @property
    def log(self) -> list[str]:
        """All but Events."""
        return [line for outcome in self.outcomes if (line := _line(outcome))]

    @property
    def events(self) -> list[str]:
        return [
            f"{_seconds(outcome.at_us)} {outcome.message}"
            for outcome in self.outcomes
            if isinstance(outcome, EventEmitted)
        ]


def node(at: float, *taints: Taint, name: str = "n1") -> Step:
    return lambda stage: apply(
        stage.controller, NodeSeen(us(at), Node(name, f"uid-{name}", str(next(stage.versions)), taints))
    )


def node_gone(at: float, name: str = "n1") -> Step:
    return lambda stage: apply(stage.controller, NodeGone(us(at), name))


def pod(
    at: float,
    *tolerations: Toleration,
    name: str = "p1",
    on: str = "n1",
    uid: str = "",
    namespace: str = "ns",
    phase: str = "Running",
    terminating: bool = False,
    mirror: bool = False,
) -> Step:
    return lambda stage: apply(
        stage.controller,
        PodSeen(
            us(at),
            Pod(
                namespace,
                name,
                uid or f"uid-{name}",
                str(next(stage.versions)),
                on,
                tolerations,
                phase,
                terminating,
                mirror,
            ),
        ),
    )


def pod_gone(at: float, name: str = "p1", namespace: str = "ns") -> Step:
    return lambda stage: apply(stage.controller, PodGone(us(at), Pod(namespace, name, "", "")))


def restart(at: float) -> Step:
    return lambda stage: stage.controller.restart(us(at))


def _line(outcome: ControllerOutcome) -> str:
    at, name = _seconds(outcome.at_us), outcome.address.removeprefix("ns/")
    match outcome:
        case TimerSet(fire_at_us=fire_at_us):
            return f"{at} set {name} {_seconds(fire_at_us)}"
        case TimerKept(fire_at_us=fire_at_us):
            return f"{at} keep {name} {_seconds(fire_at_us)}"
        case TimerCancelled(is_too_late=is_too_late):
            return f"{at} cancel {name}" + (" too late" if is_too_late else "")
        case AdditionSkipped():
            return f"{at} skip {name}"
        case EventEmitted():
            return ""
        case AttemptFailed(attempt=attempt, request=request):
            return f"{at} fail {name} {attempt} {request}"
        case PodDeleted():
            return f"{at} delete {name}"
        case EvictionForgotten():
            return f"{at} forget {name}"


def _seconds(at_us: int) -> str:
    return f"{at_us / 1_000_000:.12g}"


def case(name: str, steps: list[Step], *log: str) -> object:
    """One row of a table: `name` quotes its source, `log` is what has to come out."""
    return pytest.param(steps, list(log), id=name)
