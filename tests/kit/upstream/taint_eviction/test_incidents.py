"""The reference model against the real controller: fed with what was recorded, it deletes what that one deleted.

Recorded from kube-controller-manager v1.36.3 with its evictor on (`recorded/README.md`). Every deletion has to have its
counterpart, of the same pod (UID), within a second. `EXPLAINED` lists what differs, one by one: nothing does.
"""

from __future__ import annotations

import datetime as dt
import gzip
import json
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from evictstream.kit.upstream.taint_eviction import (
    ControllerInput,
    NodeGone,
    NodeSeen,
    PodDeleted,
    PodGone,
    PodSeen,
    TaintEvictionController,
    run_controller,
)
from evictstream.models.kubernetes import NodeObject, PodObject, read_node, read_pod

RECORDED = Path(__file__).parent / "recorded"
TOLERANCE_US = 1_000_000
AFTERMATH_US = 2_000_000

COUNTS = {
    "flapping-taints": 96,
    "manual-taints": 83,
    "node-conditions": 4,
    "recovery-before-deadline": 12,
    "single-node-unreachable": 24,
    "zone-dead": 100,
    "zone-outage-part-recovers": 68,
}
"""Deletions per incident, as the README of the recordings gives them."""

EXPLAINED: dict[str, dict[str, str]] = {name: {} for name in COUNTS}
"""Incident to UID to reason."""


class Deletion(NamedTuple):
    at_us: int
    uid: str
    pod: str


def instant_us(text: str) -> int:
    return (dt.datetime.fromisoformat(text) - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1)


def changes(name: str) -> list[ControllerInput]:
    """Read what the feed saw, in the order in which it did; an instant before that of its predecessor is lifted."""
    found: list[ControllerInput] = []
    at_us = 0
    with gzip.open(RECORDED / name / "events.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            event = json.loads(line)
            at_us = max(at_us, instant_us(event["observedAt"]))
            is_gone = event["type"] == "DELETED"
            text = json.dumps(event["object"])
            if event["object"]["kind"] == "Node":
                node = read_node(msgspec.json.decode(text, type=NodeObject))
                found.append(NodeGone(at_us, node.name) if is_gone else NodeSeen(at_us, node))
            else:
                pod = read_pod(msgspec.json.decode(text, type=PodObject))
                found.append(PodGone(at_us, pod) if is_gone else PodSeen(at_us, pod))
    return found


def upstream(name: str) -> list[Deletion]:
    rows = (RECORDED / name / "upstream.jsonl").read_text(encoding="utf-8").splitlines()
    return [
        Deletion(instant_us(row["at"]), row["uid"], f"{row['namespace']}/{row['pod']}") for row in map(json.loads, rows)
    ]


def modelled(name: str) -> list[Deletion]:
    recorded = changes(name)
    outcomes = run_controller(TaintEvictionController(), recorded, recorded[-1].at_us + AFTERMATH_US)
    return [Deletion(one.at_us, one.uid, one.address) for one in outcomes if isinstance(one, PodDeleted)]


def unmatched(ours: list[Deletion], theirs: list[Deletion]) -> tuple[list[Deletion], list[Deletion]]:
    """Pair deletions of the same pod within the tolerance, nearest first; give what is left on either side."""
    left, alone = list(ours), []
    for deletion in theirs:
        near = [one for one in left if one.uid == deletion.uid and abs(one.at_us - deletion.at_us) <= TOLERANCE_US]
        if near:
            left.remove(min(near, key=lambda one: abs(one.at_us - deletion.at_us)))
        else:
            alone.append(deletion)
    return left, alone


@pytest.mark.parametrize("name", COUNTS)
def test_the_model_deletes_what_the_recorded_controller_deleted(name: str) -> None:
    theirs = upstream(name)
    assert len(theirs) == COUNTS[name]
    only_ours, only_theirs = unmatched(modelled(name), theirs)
    differing = {one.uid for one in (*only_ours, *only_theirs)}
    assert differing == set(EXPLAINED[name])


def test_the_comparison_sees_differences() -> None:
    early = Deletion(0, "u", "ns/p")
    late = Deletion(TOLERANCE_US + 1, "u", "ns/p")
    other = Deletion(0, "another", "ns/p")
    assert unmatched([early], [late]) == ([early], [late])
    assert unmatched([early], [other]) == ([early], [other])
    assert unmatched([early, early], [early]) == ([early], [])


@pytest.mark.parametrize(
    ("name", "prefix", "deleted"),
    [
        pytest.param("single-node-unreachable", "sec-18446744074-n-000", 2, id="row 33 18446744074 s: at once"),
        pytest.param("single-node-unreachable", "sec-9223372037-n-000", 0, id="row 33 9223372037 s: never"),
        pytest.param("manual-taints", "addtol.8-seconds-to-20-", 2, id="6.7 seconds made longer"),
        pytest.param("manual-taints", "addtol.20-seconds-to-6-", 2, id="6.7 seconds made shorter"),
        pytest.param("manual-taints", "nodedel.8-", 3, id="row 9 its node is deleted"),
        pytest.param("manual-taints", "first-removed.k1-5-k2-20-", 2, id="row 4 the deciding taint is removed"),
        pytest.param("manual-taints", "second-taint-shorter.k1-20-k2-4-", 2, id="row 6 a second, shorter taint"),
        pytest.param("single-node-unreachable", "done-n-000", 1, id="row 12 a finished pod"),
        pytest.param("single-node-unreachable", "term-n-000", 1, id="row 14 a terminating pod"),
    ],
)
def test_weaknesses_that_were_recorded(name: str, prefix: str, deleted: int) -> None:
    def count(deletions: list[Deletion]) -> int:
        return sum(one.pod.startswith(f"lab/{prefix}") for one in deletions)

    assert count(upstream(name)) == deleted
    assert count(modelled(name)) == deleted
