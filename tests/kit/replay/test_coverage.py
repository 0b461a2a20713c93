"""Whether a recording tells its clusters from the beginning."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evictstream.kit.recordings.record import RecordedRecord, Role
from evictstream.kit.replay.coverage import ListingCoverage

Value = dict[str, Any]
SECOND = 1_795_255_200
OLD, NEW = "2026-11-20T00:00:00Z", "2026-11-21T10:00:01Z"


def seen(*values: tuple[Role, str, Value]) -> list[str]:
    coverage = ListingCoverage()
    for number, (topic, node, value) in enumerate(values):
        if node:
            about = value["object"]
            value = value | {"object": about | named(topic, node, about["metadata"])}  # noqa: PLW2901
        coverage.take(
            RecordedRecord(
                topic=topic,
                partition=0,
                offset=number,
                timestamp=(SECOND + number) * 1_000,
                key=b"lab",
                value=json.dumps({"cluster": "lab"} | value).encode(),
            )
        )
    return [
        f"{one.kind} {one.amount} {one.text.partition(';')[0].partition(' as they')[0]}"
        for one in coverage.shortfalls()
    ]


def named(topic: Role, node: str, metadata: Value) -> Value:
    if topic == "nodes":
        return {"metadata": metadata | {"name": node}}
    return {"spec": {"nodeName": node}}


def change(uid: str, type_: str = "MODIFIED", created: str | None = None) -> Value:
    metadata = {"uid": uid} | ({} if created is None else {"creationTimestamp": created})
    return {"type": type_, "object": {"metadata": metadata}}


def listed(**uids: list[str]) -> Value:
    return {"type": "LISTED", "listing": {"uids": uids}}


NODE_ADDED: tuple[Role, str, Value] = ("nodes", "n", change("n", "ADDED"))
NODE_LISTED: tuple[Role, str, Value] = ("nodes", "", listed(n=["n"]))
POD_ADDED: tuple[Role, str, Value] = ("pods", "n", change("p", "ADDED"))
BEAT: tuple[Role, str, Value] = ("nodes", "", {"type": "HEARTBEAT"})


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param([], [], id="nothing"),
        pytest.param([NODE_ADDED, POD_ADDED], [], id="a watch that begins with all"),
        pytest.param(
            [NODE_ADDED, NODE_LISTED, POD_ADDED, ("pods", "", listed(n=["p"])), BEAT, ("pods", "n", change("q"))],
            [],
            id="a whole listing",
        ),
        pytest.param(
            [NODE_LISTED, BEAT, ("pods", "n", change("p")), ("pods", "", listed(n=["p", "q"]))],
            ["listing 4 no listing of lab: the earlier state of 2 nodes and 2 pods is missing"],
            id="a listing that began before",
        ),
        pytest.param(
            [BEAT, ("nodes", "n", change("n")), ("pods", "n", change("p"))],
            ["listing 2 no listing of lab: the earlier state of 1 node and 1 pod is missing"],
            id="a feed that listed before",
        ),
        pytest.param(
            [BEAT],
            ["listing 0 no listing of lab: the earlier state of 0 nodes and 0 pods is missing"],
            id="signs of life",
        ),
        pytest.param(
            [NODE_ADDED, ("pods", "n", change("p", created=OLD))],
            ["listing 1 no listing of lab: the earlier state of 0 nodes and 1 pod is missing"],
            id="a pod from before",
        ),
        pytest.param([NODE_ADDED, ("pods", "n", change("p", created=NEW))], [], id="a pod that was bound late"),
        pytest.param([NODE_ADDED, ("pods", "n", change("p"))], [], id="a pod of which nobody can tell"),
        pytest.param(
            [NODE_ADDED, ("pods", "m", change("p", "ADDED")), ("pods", "o", change("q", "ADDED"))],
            ["nodes 2 pods of lab are bound to 2 nodes that the recording does not have: m, o"],
            id="pods whose nodes are nowhere",
        ),
    ],
)
def test_what_a_recording_never_saw(values: list[tuple[Role, str, Value]], expected: list[str]) -> None:
    assert seen(*values) == expected


def test_a_pod_that_was_seen_unbound_is_known() -> None:
    coverage = ListingCoverage()
    coverage.see_unbound(json.dumps({"metadata": {"uid": "p"}}).encode())
    assert list(coverage.shortfalls()) == []


def test_many_nodes_are_named_in_part() -> None:
    (told,) = seen(*(("pods", f"n-{number}", change(f"p-{number}", "ADDED")) for number in range(9)))
    assert told.endswith("n-0, n-1, n-2 and 6 more")
