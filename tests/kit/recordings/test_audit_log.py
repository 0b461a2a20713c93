"""Audit logs: what of them counts, what is left out, and what is damaged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evictstream.kit.recordings import Flaw
from evictstream.kit.recordings.audit_log import (
    DRY_RUNS,
    EARLIER_STAGES,
    ONLY_READS,
    OTHER_RESOURCES,
    REFUSED_REQUEST,
    WITHOUT_OBJECT,
)
from evictstream.kit.recordings.audited_objects import NOTHING_CHANGED, OVERTAKEN, UNSEEN_OBJECT
from tests.kit.recordings.audit_samples import (
    BINDING,
    CREATED,
    EVICTION,
    SUCCESS,
    event,
    left_out,
    lines,
    node,
    pod,
    read,
    terminating,
    told,
)


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        pytest.param([event(1, "get", pod())], ONLY_READS, id="get"),
        pytest.param([event(1, "list", {"kind": "PodList", "metadata": {}})], ONLY_READS, id="list"),
        pytest.param([event(1, "watch")], ONLY_READS, id="watch"),
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
            REFUSED_REQUEST,
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
        pytest.param([event(1, "delete", SUCCESS, request={})], UNSEEN_OBJECT, id="deletion-of-what-was-never-seen"),
        pytest.param(
            [event(1, "create", SUCCESS, subresource="binding", request=BINDING)],
            UNSEEN_OBJECT,
            id="binding-of-the-same",
        ),
        pytest.param([CREATED, event(2, "patch", pod())], NOTHING_CHANGED, id="patch-without-effect"),
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


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        pytest.param(b'{"kind":"Event","apiVersion":"audit.k8s.io/v1",', "ends in the middle", id="cut"),
        pytest.param(b"E1121 panic", "not JSON", id="words"),
        pytest.param(b'{"kind":"Event","apiVersion":"audit.k8s.io/v1beta1"}', "not an Event", id="another-version"),
        pytest.param(b'{"type":"ADDED","object":{}}', "neither a Node nor a Pod", id="watch-event"),
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


@pytest.mark.parametrize("indent", [None, 2])
def test_a_webhook_keeps_lists_of_events(indent: int | None, tmp_path: Path) -> None:
    items = [CREATED, event(2, "patch", pod(version=11))]
    listed = {"kind": "EventList", "apiVersion": "audit.k8s.io/v1", "metadata": {}, "items": items}
    assert len(told(read(tmp_path, json.dumps(listed, indent=indent).encode()))) == 2


GOOD = [event(second, "create", pod(f"p-{second}", 10 + second)) for second in range(5)]
DAMAGE = st.sampled_from([b"nope\n", b'{"kind":"Event",\n', b"}\n", b'{"a":"\n', b"\n", b"[]\n", b"\xff\xfd\n"])


@given(order=st.permutations(range(len(GOOD))), damage=st.lists(st.tuples(st.integers(0, 5), DAMAGE), max_size=8))
def test_damage_anywhere_keeps_all_good_lines(
    order: list[int], damage: list[tuple[int, bytes]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    written = [lines(GOOD[number]) for number in order]
    for place, text in sorted(damage, reverse=True):
        written.insert(place, text)
    found = told(read(tmp_path_factory.mktemp("audit"), b"".join(written)))
    assert [name for _, _, name, _ in found] == [f"p-{number}" for number in range(len(GOOD))]
