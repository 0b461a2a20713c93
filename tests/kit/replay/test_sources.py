"""One incident in every format that can be replayed: the same evictions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from evictstream.kit.inputs.opening import live
from evictstream.kit.replay.sources import open_source
from evictstream.models.instants import instant_us
from evictstream.streams.errors import WrongUseError
from tests.harness.incidents import INCIDENTS, events_of, incidents
from tests.kit.recordings.audit_samples import SUCCESS
from tests.kit.replay.recorded import outcomes

NAMES = sorted(folder.name for folder in INCIDENTS.iterdir() if folder.is_dir())
HEARTBEAT_US = 10_000_000

Event = dict[str, Any]


def incident(name: str) -> list[Event]:
    return events_of(INCIDENTS / name)


def written(path: Path, events: Sequence[Event]) -> Path:
    path.write_text("".join(json.dumps(event) + "\n" for event in events))
    return path


def audited(event: Event) -> Event:
    """What an API server logs of the request behind a watch event."""
    found, verb = event["object"], {"ADDED": "create", "MODIFIED": "patch", "DELETED": "delete"}[event["type"]]
    metadata = found["metadata"]
    about = {"resource": found["kind"].lower() + "s", "name": metadata["name"], "apiVersion": "v1"}
    result = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "RequestResponse",
        "stage": "ResponseComplete",
        "requestURI": "/",
        "verb": verb,
        "objectRef": about | ({"namespace": metadata["namespace"]} if "namespace" in metadata else {}),
        "responseStatus": {"code": 200},
        "stageTimestamp": event["observedAt"],
        "responseObject": found,
    }
    if verb == "delete":
        result |= {"requestObject": {}, "responseObject": SUCCESS | {"details": {"uid": metadata["uid"]}}}
    return result


@pytest.mark.parametrize("name", incidents(NAMES))
def test_audit_log_and_list_replay_as_the_watch_does(name: str, tmp_path: Path) -> None:
    events = incident(name)
    watch = outcomes([written(tmp_path / "watch", events)])
    assert outcomes([written(tmp_path / "audit", [audited(event) for event in events])]) == watch

    seen: set[str] = set()
    begins = 0
    for event in events:  # as long as each object is new, it is the listing with which the watch began
        if event["type"] != "ADDED" or event["observedAt"] != events[0]["observedAt"]:
            break
        seen.add(event["object"]["metadata"]["uid"])
        begins += 1
    listed = {"kind": "List", "apiVersion": "v1", "items": [event["object"] for event in events[:begins]]}
    (tmp_path / "list").write_text(json.dumps(listed, indent=4))
    log = written(tmp_path / "rest of the audit log", [audited(event) for event in events[begins:]])
    assert outcomes([tmp_path / "list", log], at=events[0]["observedAt"]) == watch


@pytest.mark.parametrize("name", incidents(NAMES))
def test_assumed_times_evict_the_same_pods_somewhat_earlier(name: str, tmp_path: Path) -> None:
    events = incident(name)
    files = [
        written(
            tmp_path / kind,
            [{"type": e["type"], "object": e["object"]} for e in events if e["object"]["kind"] == kind],
        )
        for kind in ("Node", "Pod")
    ]
    watch, assumed = outcomes([written(tmp_path / "watch", events)]), outcomes(files)
    evicted = {pod for pod in watch if pod[1] == "Evict"}
    assert evicted == {pod for pod in assumed if pod[1] == "Evict"}
    for pod in evicted:
        earlier_us = instant_us(watch[pod][0]) - instant_us(assumed[pod][0])
        assert 0 <= earlier_us <= HEARTBEAT_US  # a taint leaves no time in its node, but the next heartbeat does


def test_what_was_assumed_is_told(tmp_path: Path) -> None:
    event = incident(NAMES[0])[0]
    kubectl = written(tmp_path / "kubectl", [{"type": "ADDED", "object": event["object"]}])
    listed = tmp_path / "list"
    listed.write_text(json.dumps({"kind": "List", "items": [event["object"]]}))
    source = open_source(live([str(kubectl), str(listed)]), cluster="c", partitions=1)
    assert len(list(source.read())) == 2
    rows = dict(source.rows())
    assert rows.pop("events whose time is assumed") == 1
    assert [(name.partition(" of ")[0], count) for name, count in rows.items()] == [("listed objects, assumed", 1)]
    given = open_source(live([str(listed)]), cluster="c", partitions=1, at="2030-01-01T00:00:00Z")
    (record,) = given.read()
    assert record.timestamp * 1_000 == instant_us("2030-01-01T00:00:00Z")
    assert dict(given.rows()) == {"listed objects, given of 2030-01-01T00:00:00.000000Z": 1}


def test_counts_are_those_of_the_first_whole_reading(tmp_path: Path) -> None:
    events = incident(NAMES[0])[:3]
    name = written(tmp_path / "watch", events)
    name.write_text("nope\n" + name.read_text() + '{"type":"LISTED"}\n')
    source = open_source(live([str(name)]), cluster="c", partitions=1)
    for _ in range(2):
        assert len(list(source.read())) == len(events)
    assert next(source.read(), None) is not None  # a reading that ends early
    assert (source.unreadable, source.summary()["leftOut"]) == (1, {"LISTED": 1})


def test_an_instant_of_lists_has_to_be_one(tmp_path: Path) -> None:
    with pytest.raises(WrongUseError, match="not a time"):
        open_source(live([str(tmp_path)]), cluster=None, partitions=1, at="noon")
