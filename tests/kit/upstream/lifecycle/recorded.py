"""Recorded incidents as the model's input: nodes and when they were observed, and when which heartbeats stopped."""

from __future__ import annotations

import dataclasses
import datetime as dt
import gzip
import json
from pathlib import Path

import msgspec

from evictstream.kit.upstream.lifecycle import OWNED_KEYS, WatchedNode
from evictstream.models.instants import microseconds
from evictstream.models.kubernetes import HEALTH_KEYS, NO_EXECUTE, NO_SCHEDULE, Taint
from tests.kit.upstream.lifecycle.reading import WatchedNodeObject, read_watched_node

_EXAMPLES = Path(__file__).parents[4] / "examples" / "incidents"
_TRIMMED = Path(__file__).parent / "recordings"


@dataclasses.dataclass(frozen=True, slots=True)
class Sight:
    """A node as it was observed; `node` is None once it is deleted."""

    at_us: int
    name: str
    node: WatchedNode | None


@dataclasses.dataclass(frozen=True, slots=True)
class Recorded:
    """An incident: sights in the order of observing, and (instant, names, whether they live) for heartbeats."""

    sights: tuple[Sight, ...]
    heartbeats: tuple[tuple[int, tuple[str, ...], bool], ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Turn:
    """A taint of the node lifecycle controller came (`+`) or went (`-`)."""

    node: str
    sign: str
    taint: str


def read_recorded(name: str) -> Recorded:
    """Read an incident, from the examples or from the trimmed copies beside this file."""
    folder = next(parent / name for parent in (_EXAMPLES, _TRIMMED) if (parent / name).is_dir())
    sights = []
    for line in gzip.decompress((folder / "events.jsonl.gz").read_bytes()).splitlines():
        event = json.loads(line)
        if event["type"] == "BOOKMARK" or event["object"]["kind"] != "Node":
            continue
        node = read_watched_node(msgspec.convert(event["object"], WatchedNodeObject))
        sights.append(Sight(instant_us(event["observedAt"]), node.name, None if event["type"] == "DELETED" else node))
    actions = [json.loads(line) for line in (folder / "actions.jsonl").read_text().splitlines()]
    heartbeats = [(instant_us(one["at"]), tuple(one["names"]), bool(one["up"])) for one in actions if "up" in one]
    return Recorded(tuple(sights), tuple(heartbeats))


def instant_us(text: str) -> int:
    return microseconds(dt.datetime.fromisoformat(text))


def is_owned(taint: Taint) -> bool:
    """Tell whether the controller puts taints like this one."""
    if taint.effect == NO_EXECUTE:
        return taint.key in HEALTH_KEYS
    return taint.effect == NO_SCHEDULE and taint.key in OWNED_KEYS


def taint_text(taint: Taint) -> str:
    return f"{taint.key.rpartition('/')[2]}:{taint.effect}"


def recorded_turns(sights: tuple[Sight, ...]) -> dict[Turn, list[int]]:
    """List when each taint of the controller came and went; what a node is created with is admission's."""
    turns: dict[Turn, list[int]] = {}
    carried: dict[str, set[str]] = {}
    for sight in sights:
        if sight.node is None:
            carried.pop(sight.name)
            continue
        now = {taint_text(taint) for taint in sight.node.taints if is_owned(taint)}
        before = carried.get(sight.name, now)
        for sign, texts in (("+", now - before), ("-", before - now)):
            for text in sorted(texts):
                turns.setdefault(Turn(sight.name, sign, text), []).append(sight.at_us)
        carried[sight.name] = now
    return turns
