"""Audit logs of API servers (audit.k8s.io/v1), read as changes of nodes and pods.

A request that has succeeded is a change; with the level RequestResponse its answer holds the object as it is then. What
follows from a binding, an eviction and some deletions is not in their answers, and needs what was known before:
`audited_objects.py`.
"""

from __future__ import annotations

import re
from typing import Final, Literal, TypeAlias

import msgspec

from evictstream.kit.recordings.entries import ABSENT, Flaw, Skipped
from evictstream.models.instants import microseconds
from evictstream.models.kubernetes.objects import Moment
from evictstream.models.kubernetes.shapes import Kind

# Why lines are left out.
TOO_LATE: Final = "audit: too late to be put in order"
OTHER_RESOURCES: Final = "audit: other resources"
ONLY_READS: Final = "audit: reads"
EARLIER_STAGES: Final = "audit: earlier stages"
REFUSED_REQUEST: Final = "audit: refused"
DRY_RUNS: Final = "audit: dry runs"
WITHOUT_OBJECT: Final = "audit: changes without their object"

_API_VERSION: Final = "audit.k8s.io/v1"
_MARK: Final = re.compile(rb'"apiVersion\\?"\s*:\s*\\?"audit\.k8s\.io/|"io\.k8s\.|"stage"\s*:')
_STAGE: Final = "ResponseComplete"
_FIRST_ERROR_CODE: Final = 400
_READING: Final = frozenset({"get", "list", "watch"})
_KINDS: Final[dict[str, Kind]] = {"nodes": "Node", "pods": "Pod"}
_OF_OBJECTS: Final = frozenset({"", "status", "resize", "ephemeralcontainers"})
"""Subresources whose answer is the object; `log`, `exec`, `proxy` and the like change nothing."""

_DRY_RUN: Final = re.compile(r"[?&]dryRun=")

_Action: TypeAlias = Literal["object", "delete", "deletecollection", "bind", "evict"]


class AuditChange(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A request that has changed something.

    Attributes:
        source: name of its file, for people.
        line: line on which it begins.
        at_us: when its answer was complete, microseconds since 1970.
        action: what was done.
        name: of the object; empty for a collection.
        uid: of the object, if the request or the answer names it.
        version: of the object in the answer; 0 if there is none. API servers count all changes of nodes and pods alike.
        answer: the object, a list, a status, or only the metadata of one; null if the audit policy left it out.
        node: to which a pod was bound.
        grace_seconds: as the request asked for; None leaves it to the pod.
        is_creation: the object is new.
    """

    source: str
    line: int
    at_us: int
    action: _Action
    kind: Kind
    namespace: str
    name: str
    uid: str
    version: int
    answer: msgspec.Raw
    node: str = ""
    grace_seconds: int | None = None
    is_creation: bool = False

    @property
    def key(self) -> tuple[str, str, str]:
        """What names the object at any one time."""
        return self.kind, self.namespace, self.name


class _Reference(msgspec.Struct, rename="camel", gc=False):
    resource: str = ""
    api_group: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""


class _Status(msgspec.Struct, gc=False):
    code: int = 0


class _Event(msgspec.Struct, rename="camel", gc=False):
    kind: str | None = None
    api_version: str | None = None
    stage: str = ""
    verb: str = ""
    request_uri: str = msgspec.field(default="", name="requestURI")
    object_ref: _Reference | None = None
    response_status: _Status | None = None
    stage_timestamp: Moment | None = None
    request_object: msgspec.Raw = ABSENT
    response_object: msgspec.Raw = ABSENT


class _Metadata(msgspec.Struct, rename="camel", gc=False):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class _Details(msgspec.Struct, gc=False):
    uid: str = ""


class _Answer(msgspec.Struct, gc=False):
    kind: str = ""
    metadata: _Metadata | None = None
    details: _Details | None = None


class _Target(msgspec.Struct, gc=False):
    name: str = ""


class _Preconditions(msgspec.Struct, gc=False):
    uid: str | None = None


class _DeleteOptions(msgspec.Struct, rename="camel", gc=False):
    grace_period_seconds: int | None = None
    dry_run: list[str] | None = None
    preconditions: _Preconditions | None = None


class _Request(_DeleteOptions, rename="camel", gc=False):
    """A Binding, an Eviction or DeleteOptions."""

    metadata: _Metadata | None = None
    target: _Target | None = None
    delete_options: _DeleteOptions | None = None


_event_decoder: Final = msgspec.json.Decoder(_Event)
_answer_decoder: Final = msgspec.json.Decoder(_Answer | None)
_request_decoder: Final = msgspec.json.Decoder(_Request | None)


def is_audit_log(beginning: bytes) -> bool:
    """Tell by the first bytes of what cannot be read twice; clouds put events into texts, with escaped quotes."""
    return _MARK.search(beginning) is not None


def read_audit_event(source: str, line: int, text: bytes) -> AuditChange | Skipped | Flaw:
    """Read one event. Raises `DECODE_ERRORS`."""
    event = _event_decoder.decode(text)
    if event.api_version not in {None, _API_VERSION}:  # items of a list need not say what they are
        return Flaw(source, line, f"not an Event of {_API_VERSION}")
    about = event.object_ref
    kind = None if about is None or about.api_group else _kind_of(about)
    action = None if about is None or kind is None else _action_of(event.verb, about)
    if about is None or kind is None or action is None:
        return Skipped(source, line, ONLY_READS if kind is not None and event.verb in _READING else OTHER_RESOURCES)
    if event.stage != _STAGE:
        return Skipped(source, line, EARLIER_STAGES)
    if event.response_status is not None and event.response_status.code >= _FIRST_ERROR_CODE:
        return Skipped(source, line, REFUSED_REQUEST)
    if event.stage_timestamp is None:
        return Flaw(source, line, "no stageTimestamp")
    return _change(source, line, event, about, kind, action, microseconds(event.stage_timestamp))


def _change(
    source: str, line: int, event: _Event, about: _Reference, kind: Kind, action: _Action, at_us: int
) -> AuditChange | Skipped:
    request = None if action == "object" else _request_decoder.decode(event.request_object)
    options = request if request is None or request.delete_options is None else request.delete_options
    if _DRY_RUN.search(event.request_uri) or (options is not None and options.dry_run):
        return Skipped(source, line, DRY_RUNS)
    answer = _answer_decoder.decode(event.response_object)
    if not _is_enough(action, request, answer):
        return Skipped(source, line, WITHOUT_OBJECT)
    metadata = answer.metadata if answer is not None and answer.kind != "Status" else None
    named = request.metadata if request is not None and request.metadata is not None else None
    uid = named.uid if named is not None else ""
    if options is not None and options.preconditions is not None:
        uid = options.preconditions.uid or uid
    if answer is not None and answer.details is not None:
        uid = answer.details.uid or uid
    version = "" if metadata is None else metadata.resource_version
    return AuditChange(
        source=source,
        line=line,
        at_us=at_us,
        action=action,
        kind=kind,
        namespace=about.namespace,
        name=(metadata.name if metadata is not None else "") or about.name or (named.name if named is not None else ""),
        uid=(metadata.uid if metadata is not None else "") or uid,
        version=int(version) if version.isascii() and version.isdecimal() else 0,
        answer=event.response_object,
        node=request.target.name if request is not None and request.target is not None else "",
        grace_seconds=None if options is None else options.grace_period_seconds,
        is_creation=action == "object" and event.verb == "create",
    )


def _kind_of(about: _Reference) -> Kind | None:
    # `bindings` without a pod is how schedulers did it before pods had that subresource.
    return "Pod" if about.resource == "bindings" else _KINDS.get(about.resource)


def _action_of(verb: str, about: _Reference) -> _Action | None:
    if about.resource == "bindings" or about.subresource == "binding":
        return "bind" if verb == "create" else None
    if about.subresource == "eviction":
        return "evict" if verb == "create" else None
    if about.subresource not in _OF_OBJECTS:
        return None
    match verb:
        case "create" | "update" | "patch":
            return "object"
        case "delete":
            return "delete"
        case "deletecollection":
            return "deletecollection"
        case _:
            return None


def _is_enough(action: _Action, request: _Request | None, answer: _Answer | None) -> bool:
    """Tell whether the audit policy has kept what the action needs."""
    match action:
        case "object" | "deletecollection":
            return answer is not None and answer.metadata is not None
        case "bind":
            return request is not None and request.target is not None
        case _:
            return request is not None or answer is not None
