"""Audit events inside the records of other logs: what the clouds' tools and log stores put around them.

A record holds the event in one of a few fields, mostly as a text. Google's has fields of its own for what is in it.
"""

from __future__ import annotations

from typing import Final, TypeAlias, TypeGuard

import msgspec

from evictstream.models.messages.envelope import DECODE_ERRORS

_GOOGLE_METHOD: Final = "io.k8s."
_CORE: Final = "core"
_FAILED: Final = 500
_LEAST_HTTP_STATUS: Final = 100


_Field: TypeAlias = msgspec.Raw | msgspec.UnsetType


class _Record(msgspec.Struct, gc=False):
    """Where records of logs have their line.

    `message` CloudWatch and most shippers, `@message` CloudWatch Logs Insights, `log` containers, `line` Loki, `log_s`
    and `properties.log` diagnostic settings of Azure, `textPayload` and `jsonPayload` Google, `_source` Elasticsearch.
    """

    message: _Field = msgspec.UNSET
    at_message: _Field = msgspec.field(default=msgspec.UNSET, name="@message")
    log: _Field = msgspec.UNSET
    line: _Field = msgspec.UNSET
    log_s: _Field = msgspec.UNSET
    text_payload: _Field = msgspec.field(default=msgspec.UNSET, name="textPayload")
    json_payload: _Field = msgspec.field(default=msgspec.UNSET, name="jsonPayload")
    source: _Field = msgspec.field(default=msgspec.UNSET, name="_source")
    properties: _Field = msgspec.UNSET


class _Cell(msgspec.Struct, gc=False):
    field: str = ""
    value: str = ""


class _GoogleStatus(msgspec.Struct, gc=False):
    code: int = 0


class _Payload(msgspec.Struct, rename="camel", gc=False):
    method_name: str = ""
    resource_name: str = ""
    status: _GoogleStatus | None = None
    request: dict[str, msgspec.Raw] | None = None
    response: dict[str, msgspec.Raw] | None = None


class _Entry(msgspec.Struct, rename="camel", gc=False):
    proto_payload: _Payload | None = None
    timestamp: msgspec.Raw = msgspec.Raw(b"null")


_record: Final = msgspec.json.Decoder(_Record)
_row: Final = msgspec.json.Decoder(list[_Cell])
_entry: Final = msgspec.json.Decoder(_Entry)
_text: Final = msgspec.json.Decoder(str)


def unwrapped(text: bytes) -> bytes | None:
    """Return what a record of another log holds; None if it is none that is known."""
    try:
        match text[:1]:
            case b'"':
                return _text.decode(text).encode()
            case b"[":
                cells = {cell.field: cell.value for cell in _row.decode(text)}
                return cells["@message"].encode() if "@message" in cells else None
            case _:
                return _of_google(text) or _line(_record.decode(text))
    except DECODE_ERRORS:
        return None


def _line(record: _Record) -> bytes | None:
    for value in map(bytes, filter(_is_there, msgspec.structs.astuple(record))):
        if value.startswith(b'"'):
            return _text.decode(value).encode()
        if value.startswith(b"{"):
            return value
    return None


def _is_there(value: object) -> TypeGuard[msgspec.Raw]:
    return isinstance(value, msgspec.Raw)


def _of_google(text: bytes) -> bytes | None:
    """Return an entry of Google's Cloud Audit Logs as the audit event of Kubernetes that it was made of."""
    entry = _entry.decode(text)
    payload = entry.proto_payload
    if payload is None or not payload.method_name.startswith(_GOOGLE_METHOD):
        return None
    group, _, *resource, verb = payload.method_name.removeprefix(_GOOGLE_METHOD).split(".")
    names = payload.resource_name.split("/")[2:]
    namespace = names[1] if names[:1] == ["namespaces"] and len(names) > 2 else ""  # noqa: PLR2004 - a name follows it
    name = names[3:4] if namespace else names[1:2]
    code = 0 if payload.status is None else payload.status.code
    return msgspec.json.encode(
        {
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "stage": "ResponseComplete",
            "verb": verb,
            "stageTimestamp": entry.timestamp,
            "objectRef": {
                "apiGroup": "" if group == _CORE else group,
                "resource": resource[0] if resource else "",
                "subresource": "/".join(resource[1:]),
                "namespace": namespace,
                "name": name[0] if name else "",
            },
            # Codes of gRPC are small, and all but 0 are refusals.
            "responseStatus": {"code": code if code == 0 or code >= _LEAST_HTTP_STATUS else _FAILED},
            "requestObject": _typed(payload.request),
            "responseObject": _typed(payload.response),
        }
    )


def _typed(fields: dict[str, msgspec.Raw] | None) -> dict[str, msgspec.Raw] | None:
    """Put the kind where Kubernetes has it: `@type` is such as `core.k8s.io/v1.Pod`."""
    if fields is None or "kind" in fields or "@type" not in fields:
        return fields
    kind = _text.decode(fields["@type"]).rpartition(".")[2]
    return fields | {"kind": msgspec.Raw(msgspec.json.encode(kind))}
