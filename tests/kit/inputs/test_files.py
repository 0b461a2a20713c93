"""The same objects, however a file holds them: packed, recoded, in YAML, inside records of other logs."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma

import pytest
import yaml  # type: ignore[import-untyped]

from evictstream.kit.inputs import delayed_items
from evictstream.kit.inputs.files import CUT, pieces_of
from evictstream.kit.inputs.pieces import Broken
from evictstream.kit.inputs.recognition import (
    WITHIN,
    AuditEvent,
    EndOfList,
    KubernetesObject,
    OtherLine,
    Recognised,
    recognised,
)
from evictstream.streams.errors import ObjectFileError, RecordingError
from tests.streams.feed.samples import Object, node, pod

LIST = {"kind": "List", "apiVersion": "v1", "items": [node("ä"), pod()]}
TEXT = json.dumps(LIST, ensure_ascii=False)
EVENT: Object = {"kind": "Event", "apiVersion": "audit.k8s.io/v1", "verb": "create", "stage": "ResponseComplete"}
EVENT_TEXT = json.dumps(EVENT)


def read(data: bytes) -> list[Recognised]:
    return [one for one in recognised(pieces_of("f", io.BytesIO(data))) if not isinstance(one, EndOfList)]


def objects(data: bytes) -> list[Object]:
    found = read(data)
    assert all(isinstance(one, KubernetesObject) for one in found), found
    return [json.loads(one.text) for one in found if isinstance(one, KubernetesObject)]


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(TEXT.encode("utf-8-sig"), id="byte-order-mark"),
        pytest.param(TEXT.encode("utf-16"), id="utf-16"),
        pytest.param(TEXT.encode("utf-16-be"), id="utf-16-without-a-mark"),
        pytest.param(TEXT.encode("utf-32"), id="utf-32"),
        pytest.param(gzip.compress(TEXT.encode()), id="gzip"),
        pytest.param(gzip.compress(TEXT.encode("utf-16")), id="gzip-of-utf-16"),
        pytest.param(bz2.compress(TEXT.encode()), id="bzip2"),
        pytest.param(lzma.compress(TEXT.encode()), id="xz"),
        pytest.param(json.dumps(LIST["items"]).encode(), id="array"),
        pytest.param(b"\n".join(json.dumps(one).encode() for one in LIST["items"]), id="single-objects"),
        pytest.param(yaml.safe_dump(LIST, allow_unicode=True).encode(), id="yaml"),
        pytest.param(yaml.safe_dump_all(LIST["items"], allow_unicode=True).encode(), id="yaml-documents"),
        pytest.param(b"# a comment\n---\n" + yaml.safe_dump(LIST["items"]).encode(), id="yaml-array"),
        pytest.param(yaml.safe_dump(LIST, default_flow_style=True).encode(), id="yaml-in-flow-style"),
        pytest.param(json.dumps({"kind": "List", "items": [LIST]}).encode(), id="list-in-a-list"),
    ],
)
def test_the_same_objects(data: bytes) -> None:
    assert objects(data) == LIST["items"]


@pytest.mark.parametrize("most", [0, 1_000_000])
def test_items_wait_for_the_kind_behind_them(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delayed_items, "MOST_IN_MEMORY", most)
    items = [{name: value for name, value in node(f"n-{number}").items() if name == "metadata"} for number in range(9)]
    text = json.dumps({"items": items, "kind": "NodeList"})
    for data in (text, f'{{"items": [{text[11:]}', json.dumps(json.loads(text), indent=0), f" {text[:-1]} }}"):
        found = objects(data.encode())
        assert [one["kind"] for one in found] == ["Node"] * 9
        assert [one["metadata"] for one in found] == [one["metadata"] for one in items]


@pytest.mark.parametrize(
    "data",
    [
        pytest.param({"category": "kube-audit", "properties": {"log": EVENT_TEXT, "stream": "stdout"}}, id="aks"),
        pytest.param({"records": [{"properties": {"log": EVENT_TEXT}}]}, id="aks-event-hub"),
        pytest.param([{"TimeGenerated": "t", "log_s": EVENT_TEXT}], id="aks-log-analytics"),
        pytest.param({"events": [{"timestamp": 1, "message": EVENT_TEXT}], "x": []}, id="eks-filter-log-events"),
        pytest.param({"messageType": "DATA_MESSAGE", "logEvents": [{"message": EVENT_TEXT}]}, id="eks-subscription"),
        pytest.param({"results": [[{"field": "@message", "value": EVENT_TEXT}]]}, id="eks-insights"),
        pytest.param([EVENT_TEXT], id="texts"),
        pytest.param({"log": EVENT_TEXT + "\n", "stream": "stdout"}, id="container"),
        pytest.param({"labels": {}, "line": EVENT_TEXT}, id="loki"),
        pytest.param({"_index": "i", "_source": EVENT}, id="elasticsearch"),
        pytest.param({"kind": "EventList", "apiVersion": "audit.k8s.io/v1", "items": [EVENT]}, id="webhook"),
        pytest.param({"kind": "Event", "verb": "create", "stage": "Panic"}, id="without-its-version"),
        pytest.param(
            [
                {
                    "timestamp": "2026-03-02T09:09:28Z",
                    "protoPayload": {
                        "methodName": "io.k8s.core.v1.pods.create",
                        "resourceName": "core/v1/namespaces/shop/pods/web-0",
                        "response": {"@type": "core.k8s.io/v1.Pod", "metadata": {}},
                    },
                }
            ],
            id="gke",
        ),
    ],
)
@pytest.mark.parametrize("indent", [None, 2])
def test_audit_events_inside_records_of_other_logs(data: object, indent: int | None) -> None:
    assert [type(one) for one in read(json.dumps(data, indent=indent).encode())] == [AuditEvent]


def test_an_entry_of_google_has_what_the_event_had() -> None:
    entry = {
        "timestamp": "2026-03-02T09:09:28Z",
        "protoPayload": {
            "methodName": "io.k8s.core.v1.pods.eviction.create",
            "resourceName": "core/v1/namespaces/shop/pods/web-0/eviction",
            "status": {"code": 7},
            "request": {"@type": "policy.k8s.io/v1.Eviction", "deleteOptions": {}},
        },
    }
    (found,) = read(json.dumps(entry).encode())
    assert isinstance(found, AuditEvent)
    event = json.loads(found.text)
    about = {"resource": "pods", "subresource": "eviction", "namespace": "shop", "name": "web-0", "apiGroup": ""}
    assert (event["verb"], event["objectRef"]) == ("create", about)
    assert (event["responseStatus"]["code"], event["requestObject"]["kind"]) == (500, "Eviction")


def test_other_lines_of_a_log_are_no_damage() -> None:
    assert read(json.dumps([{"message": "I0302 starting"}]).encode()) == [OtherLine(1)]


def test_an_event_inside_an_unknown_record_is_named() -> None:
    assert read(json.dumps({"payload": {"what": EVENT}}).encode()) == [Broken(1, WITHIN)]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        pytest.param(b"PK\x03\x04....", "a zip archive; give the files in it", id="zip"),
        pytest.param(b"\x28\xb5\x2f\xfd....", "zstd -dc", id="zstd"),
        pytest.param(b"now.json\0".ljust(257, b"\0") + b"ustar\0", "a tar archive", id="tar"),
        pytest.param(gzip.compress(b"now.json\0".ljust(257, b"\0") + b"ustar\0"), "a tar archive", id="tar-gz"),
        pytest.param(b"<!DOCTYPE html>", "an HTML page", id="html"),
        pytest.param(b"kind: " + b"x" * 5_000_000, "bytes of YAML", id="much-yaml"),
    ],
)
def test_what_is_not_read_is_refused_by_its_name(data: bytes, said: str) -> None:
    with pytest.raises(ObjectFileError, match=said):
        read(data)


def test_damage_is_said_where_it_is() -> None:
    lines = b"".join(json.dumps(node(f"n-{number}")).encode() + b"\n" for number in range(2_000))
    assert read(gzip.compress(lines)[:-9])[-1] == Broken(2_000, CUT)
    with pytest.raises(RecordingError, match="UTF-16"):
        read("{}".encode("utf-16") + b"\0")
