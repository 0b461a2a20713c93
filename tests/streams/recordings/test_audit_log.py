"""Audit logs, read as what a watch would have shown."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evictstream.models.instants import instant_text
from evictstream.streams.recordings import Entry, Flaw, Skipped, WatchEnded, open_recordings
from evictstream.streams.recordings.audit_log import (
    DRY_RUNS,
    EARLIER_STAGES,
    OTHER_RESOURCES,
    READS,
    REFUSED,
    WITHOUT_OBJECT,
    AuditChange,
    read_audit_log,
    what_is_missing,
)
from evictstream.streams.recordings.audited_objects import OVERTAKEN, UNCHANGED, UNKNOWN, AuditedObjects
from evictstream.streams.recordings.entries import Item
from tests.streams.recordings.audit_samples import GRACE_SECONDS, SUCCESS, at, event, lines, node, pod, terminating

Found = list[Item | WatchEnded]

UNBOUND = pod(node=None)
BINDING = {"metadata": {"name": "p", "uid": "uid-p"}, "target": {"kind": "Node", "name": "n-7"}}
EVICTION = {"kind": "Eviction", "metadata": {"name": "p", "namespace": "shop"}}
CREATED = event(1, "create", pod())
METADATA_ONLY = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}


def read(folder: Path, *logs: bytes) -> Found:
    names = []
    for number, log in enumerate(logs):
        (folder / f"{number}.log").write_bytes(log)
        names.append(str(folder / f"{number}.log"))
    with open_recordings(names) as items:
        return list(items)


def told(found: Found) -> list[tuple[str, str, str, str]]:
    """Second, type, name, and `terminating`, the node, or nothing."""
    result = []
    for item in found:
        if isinstance(item, Entry):
            thing = json.loads(bytes(item.object))
            state = "terminating" if "deletionTimestamp" in thing["metadata"] else item.node_name
            result.append((instant_text(item.observed_at_us or 0)[17:21], item.type, thing["metadata"]["name"], state))
    return result


def left_out(found: Found) -> Counter[str]:
    return Counter(item.type for item in found if isinstance(item, Skipped))


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param([CREATED], [("01.0", "ADDED", "p", "n-1")], id="created"),
        pytest.param(
            [CREATED, event(2, "patch", pod(version=11), subresource="status"), event(3, "update", pod(version=12))],
            [("01.0", "ADDED", "p", "n-1"), ("02.0", "MODIFIED", "p", "n-1"), ("03.0", "MODIFIED", "p", "n-1")],
            id="changed",
        ),
        pytest.param([event(2, "patch", pod())], [("02.0", "ADDED", "p", "n-1")], id="first-seen-by-a-patch"),
        pytest.param(
            [
                event(1, "create", node(), resource="nodes"),
                event(2, "patch", node(version=11, taints=[]), resource="nodes"),
            ],
            [("01.0", "ADDED", "n-1", "n-1"), ("02.0", "MODIFIED", "n-1", "n-1")],
            id="nodes",
        ),
        pytest.param(
            [event(1, "create", UNBOUND), event(2, "create", SUCCESS, subresource="binding", request=BINDING)],
            [("01.0", "ADDED", "p", ""), ("02.0", "MODIFIED", "p", "n-7")],
            id="bound",
        ),
        pytest.param(
            [event(1, "create", SUCCESS, subresource="binding", request=BINDING), event(2, "create", UNBOUND)],
            [("02.0", "ADDED", "p", ""), ("02.0", "MODIFIED", "p", "n-7")],
            id="bound-before-the-answer-to-its-creation",
        ),
        pytest.param(
            [
                event(1, "create", UNBOUND),
                event(2, "create", SUCCESS, resource="bindings", request=BINDING, objectRef={
                    "resource": "bindings", "namespace": "shop", "name": "p"
                }),
            ],
            [("01.0", "ADDED", "p", ""), ("02.0", "MODIFIED", "p", "n-7")],
            id="bound-as-of-old",
        ),
        pytest.param(
            [
                event(1, "create", UNBOUND),
                event(2, "create", SUCCESS, subresource="binding", request=BINDING),
                event(3, "patch", pod(version=11, node=None), subresource="status"),
            ],
            [("01.0", "ADDED", "p", ""), ("02.0", "MODIFIED", "p", "n-7")],
            id="no-binding-is-taken-back",
        ),
        pytest.param(
            [
                CREATED,
                event(2, "delete", terminating(pod(), 11), request={}),
                event(3, "delete", terminating(pod(), 12, 0), request={"gracePeriodSeconds": 0}),
            ],
            [
                ("01.0", "ADDED", "p", "n-1"),
                ("02.0", "MODIFIED", "p", "terminating"),
                ("03.0", "DELETED", "p", "terminating"),
            ],
            id="deleted-with-its-grace-period",
        ),
        pytest.param(
            [CREATED, event(2, "delete", SUCCESS | {"details": {"uid": "uid-p"}}, request={})],
            [("01.0", "ADDED", "p", "n-1"), ("02.0", "DELETED", "p", "n-1")],
            id="deleted-with-a-status",
        ),
        pytest.param(
            [
                event(1, "create", node(), resource="nodes"),
                event(2, "delete", SUCCESS | {"details": {"uid": "uid-n-1"}}, resource="nodes", request={}),
            ],
            [("01.0", "ADDED", "n-1", "n-1"), ("02.0", "DELETED", "n-1", "n-1")],
            id="node-deleted",
        ),
        pytest.param(
            [
                CREATED,
                event(2, "delete", terminating(pod(), 11, 0, finalizers=["f"]), request={"gracePeriodSeconds": 0}),
                event(3, "patch", terminating(pod(), 12, 0)),
            ],
            [
                ("01.0", "ADDED", "p", "n-1"),
                ("02.0", "MODIFIED", "p", "terminating"),
                ("03.0", "DELETED", "p", "terminating"),
            ],
            id="ended-by-its-last-finalizer",
        ),
        pytest.param(
            [
                CREATED,
                event(2, "delete", METADATA_ONLY | {"metadata": terminating(pod(), 11)["metadata"]}, request={}),
                event(3, "delete", METADATA_ONLY | {"metadata": terminating(pod(), 12, 0)["metadata"]}, request={}),
            ],
            [
                ("01.0", "ADDED", "p", "n-1"),
                ("02.0", "MODIFIED", "p", "terminating"),
                ("03.0", "DELETED", "p", "terminating"),
            ],
            id="deleted-by-a-client-of-metadata",
        ),
        pytest.param(
            [CREATED, event(2, "create", SUCCESS, subresource="eviction", request=EVICTION)],
            [("01.0", "ADDED", "p", "n-1"), ("02.0", "MODIFIED", "p", "terminating")],
            id="evicted",
        ),
        pytest.param(
            [
                CREATED,
                event(
                    2,
                    "create",
                    SUCCESS,
                    subresource="eviction",
                    request=EVICTION | {"deleteOptions": {"gracePeriodSeconds": 0}},
                ),
            ],
            [("01.0", "ADDED", "p", "n-1"), ("02.0", "DELETED", "p", "n-1")],
            id="evicted-at-once",
        ),
        pytest.param(
            [
                CREATED,
                event(2, "create", SUCCESS, subresource="eviction", request=EVICTION),
                event(2.5, "patch", pod(version=11), subresource="status"),
            ],
            [("01.0", "ADDED", "p", "n-1"), ("02.0", "MODIFIED", "p", "terminating")],
            id="no-deletion-is-taken-back",
        ),
        pytest.param(
            [event(1, "create", UNBOUND), event(2, "delete", request={}, level="Request")],
            [("01.0", "ADDED", "p", ""), ("02.0", "DELETED", "p", "")],
            id="unbound-pods-go-at-once",
        ),
        pytest.param(
            [
                CREATED,
                event(2, "delete", request={}, level="Request"),
                event(3, "delete", request={"gracePeriodSeconds": 0}, level="Request"),
            ],
            [
                ("01.0", "ADDED", "p", "n-1"),
                ("02.0", "MODIFIED", "p", "terminating"),
                ("03.0", "DELETED", "p", "terminating"),
            ],
            id="deletions-need-no-answer",
        ),
        pytest.param(
            [
                CREATED,
                event(1, "create", pod("q", 11)),
                event(
                    2,
                    "deletecollection",
                    {"kind": "PodList", "metadata": {}, "items": [pod(), pod("q", 11), pod("r", 12)]},
                    request={},
                ),
            ],
            [
                ("01.0", "ADDED", "p", "n-1"),
                ("01.0", "ADDED", "q", "n-1"),
                ("02.0", "MODIFIED", "p", "terminating"),
                ("02.0", "MODIFIED", "q", "terminating"),
            ],
            id="a-collection",
        ),
        pytest.param(
            [CREATED, event(2, "create", pod(version=20, uid="uid-new"))],
            [("01.0", "ADDED", "p", "n-1"), ("02.0", "DELETED", "p", "n-1"), ("02.0", "ADDED", "p", "n-1")],
            id="created-anew-under-its-name",
        ),
        pytest.param(
            [event(2, "patch", pod(version=12)), event(1, "patch", pod(version=11))],
            [("01.0", "ADDED", "p", "n-1"), ("02.0", "MODIFIED", "p", "n-1")],
            id="lines-in-another-order-than-times",
        ),
        pytest.param(
            [event(2, "patch", pod(version=12)), event(3, "patch", pod(version=11))],
            [("02.0", "ADDED", "p", "n-1"), ("02.0", "MODIFIED", "p", "n-1")],
            id="answers-in-another-order-than-versions",
        ),
        pytest.param(
            [event(3, "patch", pod(version=11)), event(2, "patch", pod(version=12))],
            [("02.0", "ADDED", "p", "n-1"), ("02.0", "MODIFIED", "p", "n-1")],
            id="lines-by-version-and-answers-not",
        ),
        pytest.param(
            [CREATED, event(2, "delete", terminating(pod(), 12, 0), request={}), event(3, "patch", pod(version=11))],
            [("01.0", "ADDED", "p", "n-1"), ("02.0", "MODIFIED", "p", "n-1"), ("02.0", "DELETED", "p", "terminating")],
            id="a-late-answer-before-the-end",
        ),
        pytest.param(
            [
                CREATED,
                event(2, "delete", terminating(pod(), 12, 0), request={}),
                event(20, "create", node(version=13), resource="nodes"),
                event(9, "patch", pod(version=11)),
            ],
            [("01.0", "ADDED", "p", "n-1"), ("02.0", "DELETED", "p", "terminating"), ("20.0", "ADDED", "n-1", "n-1")],
            id="nothing-too-late-brings-back-the-dead",
        ),
    ],
)  # fmt: skip
def test_what_a_watch_would_have_shown(
    events: list[dict[str, Any]], expected: list[tuple[str, str, str, str]], tmp_path: Path
) -> None:
    found = read(tmp_path, lines(*events))
    assert told(found) == expected
    assert not [item for item in found if isinstance(item, Flaw)]


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        pytest.param([event(1, "get", pod())], READS, id="get"),
        pytest.param([event(1, "list", {"kind": "PodList", "metadata": {}})], READS, id="list"),
        pytest.param([event(1, "watch")], READS, id="watch"),
        pytest.param([event(1, "create", subresource="exec")], OTHER_RESOURCES, id="exec"),
        pytest.param(
            [event(1, "create", pod(), objectRef={"resource": "pods", "apiGroup": "metrics.k8s.io", "name": "p"})],
            OTHER_RESOURCES,
            id="pods-of-another-group",
        ),
        pytest.param(
            [event(1, "patch", objectRef={"resource": "leases", "apiGroup": "coordination.k8s.io"})],
            OTHER_RESOURCES,
            id="leases",
        ),
        pytest.param([event(1, "get", objectRef=None)], OTHER_RESOURCES, id="no-resource"),
        pytest.param([event(1, "create", stage="RequestReceived")], EARLIER_STAGES, id="stage"),
        pytest.param(
            [event(1, "create", SUCCESS, subresource="eviction", request=EVICTION, responseStatus={"code": 429})],
            REFUSED,
            id="eviction-against-a-budget",
        ),
        pytest.param([event(1, "create", pod(), requestURI="/api/v1/pods?dryRun=All")], DRY_RUNS, id="dry-run"),
        pytest.param(
            [event(1, "delete", terminating(pod(), 11), request={"dryRun": ["All"]})], DRY_RUNS, id="dry-deletion"
        ),
        pytest.param(
            [event(1, "create", SUCCESS, subresource="eviction", request={"deleteOptions": {"dryRun": ["All"]}})],
            DRY_RUNS,
            id="dry-eviction",
        ),
        pytest.param([event(1, "create", level="Metadata")], WITHOUT_OBJECT, id="metadata-level"),
        pytest.param([event(1, "patch", request={"spec": {}}, level="Request")], WITHOUT_OBJECT, id="request-level"),
        pytest.param([event(1, "delete", level="Metadata")], WITHOUT_OBJECT, id="deletion-at-metadata-level"),
        pytest.param([event(1, "create", subresource="binding")], WITHOUT_OBJECT, id="binding-at-metadata-level"),
        pytest.param([event(1, "deletecollection", request={})], WITHOUT_OBJECT, id="collection-without-answer"),
        pytest.param([event(1, "delete", SUCCESS, request={})], UNKNOWN, id="deletion-of-what-was-never-seen"),
        pytest.param(
            [event(1, "create", SUCCESS, subresource="binding", request=BINDING)], UNKNOWN, id="binding-of-the-same"
        ),
        pytest.param([CREATED, event(2, "patch", pod())], UNCHANGED, id="patch-without-effect"),
        pytest.param(
            [CREATED, event(2, "delete", SUCCESS, request={"preconditions": {"uid": "uid-of-another"}})],
            OVERTAKEN,
            id="deletion-of-an-earlier-one",
        ),
    ],
)
def test_what_is_left_out_is_counted(events: list[dict[str, Any]], reason: str, tmp_path: Path) -> None:
    found = read(tmp_path, lines(*events))
    assert left_out(found) == {reason: 1}
    assert len(told(found)) == len(events) - 1


def test_a_missing_level_is_said_in_a_sentence() -> None:
    assert what_is_missing({READS: 5}) is None
    assert "12 changes" in (what_is_missing({WITHOUT_OBJECT: 12}) or "")
    assert "RequestResponse" in (what_is_missing({WITHOUT_OBJECT: 12}) or "")


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        pytest.param(b'{"kind":"Event","apiVersion":"audit.k8s.io/v1",', "ends in the middle", id="cut"),
        pytest.param(b"E1121 panic", "not JSON", id="words"),
        pytest.param(b'{"kind":"Event","apiVersion":"audit.k8s.io/v1beta1"}', "not an Event", id="another-version"),
        pytest.param(b'{"type":"ADDED","object":{}}', "not an Event", id="watch-event"),
        pytest.param(b'{"kind":"Event","apiVersion":"audit.k8s.io/v1","verb":7}', "WrongType", id="wrong-type"),
        pytest.param(lines(event(1, "create", pod(), stageTimestamp=None)), "no stageTimestamp", id="no-time"),
        pytest.param(lines(event(1, "create", pod(), stageTimestamp="noon")), "BadTime", id="bad-time"),
        pytest.param(lines(event(1, "create", node())), "no Pod", id="another-kind"),
    ],
)
def test_flaws_name_their_line_and_the_rest_is_kept(line: bytes, problem: str, tmp_path: Path) -> None:
    found = read(tmp_path, lines(CREATED) + line.rstrip() + b"\n" + lines(event(3, "patch", pod(version=11))))
    assert told(found) == [("01.0", "ADDED", "p", "n-1"), ("03.0", "MODIFIED", "p", "n-1")]
    assert [(item.line, problem in item.problem) for item in found if isinstance(item, Flaw)] == [(2, True)]


def test_an_evicted_pod_leaves_after_its_grace_period(tmp_path: Path) -> None:
    found = read(tmp_path, lines(CREATED, event(2, "create", SUCCESS, subresource="eviction", request=EVICTION)))
    (metadata,) = [
        json.loads(bytes(item.object))["metadata"]
        for item in found
        if isinstance(item, Entry) and item.type == "MODIFIED"
    ]
    assert metadata["deletionTimestamp"] == at(2 + GRACE_SECONDS).replace(".000000", "")
    assert metadata["deletionGracePeriodSeconds"] == GRACE_SECONDS


def test_logs_of_several_servers_are_one_cluster(tmp_path: Path) -> None:
    one = lines(CREATED, event(4, "create", node(version=13), resource="nodes"))
    other = gzip.compress(lines(event(2, "delete", SUCCESS, request={})))
    assert [change[1] for change in told(read(tmp_path, other, one))] == ["ADDED", "DELETED", "ADDED"]


def test_a_list_tells_what_was_there_before(tmp_path: Path) -> None:
    listed = json.dumps({"kind": "List", "items": [pod()]}).encode()
    found = read(tmp_path, lines(event(2, "delete", SUCCESS, request={})), listed)
    assert [change[1] for change in told(found)] == ["ADDED", "DELETED"]


@pytest.mark.parametrize("indent", [None, 2])
def test_a_webhook_keeps_lists_of_events(indent: int | None, tmp_path: Path) -> None:
    items = [CREATED, event(2, "patch", pod(version=11))]
    listed = {"kind": "EventList", "apiVersion": "audit.k8s.io/v1", "metadata": {}, "items": items}
    assert len(told(read(tmp_path, json.dumps(listed, indent=indent).encode()))) == 2


def test_only_the_living_are_remembered(tmp_path: Path) -> None:
    events = []
    for number in range(500):
        name = f"p-{number}"
        events += [
            event(number, "create", pod(name, 10 * number)),
            event(number + 0.5, "delete", terminating(pod(name), 10 * number + 1, 0), request={}),
        ]
    (tmp_path / "log").write_bytes(lines(*events))
    objects = AuditedObjects()
    with (tmp_path / "log").open("rb") as file:
        changes = [item for item in read_audit_log("f", file) if isinstance(item, AuditChange)]
    found = Counter(item.type for item in objects.entries(changes) if isinstance(item, Entry))
    assert found == {"ADDED": 500, "DELETED": 500}
    assert len(objects) == 0


GOOD = [event(second, "create", pod(f"p-{second}", 10 + second)) for second in range(5)]
DAMAGE = st.sampled_from([b"nope\n", b'{"kind":"Event",\n', b"}\n", b'{"a":"\n', b"\n", b"[]\n", b"\xff\xfe\n"])


@given(order=st.permutations(range(len(GOOD))), damage=st.lists(st.tuples(st.integers(0, 5), DAMAGE), max_size=8))
def test_damage_anywhere_keeps_all_good_lines(
    order: list[int], damage: list[tuple[int, bytes]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    written = [lines(GOOD[number]) for number in order]
    for place, text in sorted(damage, reverse=True):
        written.insert(place, text)
    found = told(read(tmp_path_factory.mktemp("audit"), b"".join(written)))
    assert [name for _, _, name, _ in found] == [f"p-{number}" for number in range(len(GOOD))]
