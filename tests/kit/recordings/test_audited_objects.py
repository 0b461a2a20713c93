"""What audit logs make of nodes and pods: what a watch would have shown."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from evictstream.kit.recordings import Entry, Flaw, read_items
from evictstream.kit.recordings.audit_log import AuditChange
from evictstream.kit.recordings.audited_objects import AuditedObjects
from tests.kit.recordings.audit_samples import (
    BINDING,
    CREATED,
    EVICTION,
    GRACE_SECONDS,
    METADATA_ONLY,
    SUCCESS,
    UNBOUND,
    at,
    event,
    lines,
    node,
    pod,
    read,
    terminating,
    told,
)


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param([CREATED], [("01.0", "ADDED", "p", "n-1")], id="created"),
        pytest.param(
            [CREATED, event(2, "patch", pod(version=11), subresource="status"), event(3, "update", pod(version=12))],
            [("01.0", "ADDED", "p", "n-1"), ("02.0", "MODIFIED", "p", "n-1"), ("03.0", "MODIFIED", "p", "n-1")],
            id="changed",
        ),
        pytest.param([event(2, "patch", pod())], [("02.0", "MODIFIED", "p", "n-1")], id="first-seen-by-a-patch"),
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
            [("01.0", "MODIFIED", "p", "n-1"), ("02.0", "MODIFIED", "p", "n-1")],
            id="lines-in-another-order-than-times",
        ),
        pytest.param(
            [event(2, "patch", pod(version=12)), event(3, "patch", pod(version=11))],
            [("02.0", "MODIFIED", "p", "n-1"), ("02.0", "MODIFIED", "p", "n-1")],
            id="answers-in-another-order-than-versions",
        ),
        pytest.param(
            [event(3, "patch", pod(version=11)), event(2, "patch", pod(version=12))],
            [("02.0", "MODIFIED", "p", "n-1"), ("02.0", "MODIFIED", "p", "n-1")],
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
                event(30, "patch", pod(version=11)),
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
        changes = [item for item in read_items("f", file) if isinstance(item, AuditChange)]
    found = Counter(item.type for item in objects.entries(changes) if isinstance(item, Entry))
    assert found == {"ADDED": 500, "DELETED": 500}
    assert len(objects) == 0
