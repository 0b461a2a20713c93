"""What the fake API server does instead of answering as it should, and what it remembers of requests."""

from __future__ import annotations

import dataclasses
import json
import re
from typing import Any, Final, NamedTuple

Object = dict[str, Any]

_DEEP: Final = re.compile(rb'"@deep (\d+)@"')

_REASONS: Final = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    409: "Conflict",
    410: "Expired",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}
"""What Kubernetes calls a status (`metav1.StatusReason`)."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What happens to one request.

    Attributes:
        status: the answer instead; nothing is done. 0 leaves the answer as it is.
        message: of that answer.
        cause: of that answer, as `DisruptionBudget` for an eviction that a budget does not allow.
        retry_after_seconds: header `Retry-After`.
        hold_seconds: the request is looked at so late.
        delay_seconds: delay of the answer; the request is carried out before.
        cut: the connection ends `before` the request is done, `after` it, or in the `middle` of the answer.
        line: what a watch sends instead of its next line: `error` (an event with 410), `garbage`, or `half` of it,
            where the watch then ends in order.
        text: of that answer, as it is: somebody on the way answers, not the API server.
    """

    status: int = 0
    message: str = ""
    cause: str = ""
    retry_after_seconds: int | None = None
    hold_seconds: float = 0.0
    delay_seconds: float = 0.0
    cut: str = ""
    line: str = ""
    text: str = ""

    @classmethod
    def of(cls, fault: int | str | Fault) -> Fault:
        """Read the short forms: a status, `cut` (in the middle), `error`, `garbage`, `half`."""
        if isinstance(fault, int):
            return cls(status=fault)
        if isinstance(fault, str):
            return cls(cut="middle") if fault == "cut" else cls(line=fault)
        return fault


class FakeAnswer(NamedTuple):
    """Status and JSON of an answer; `text` comes instead of the JSON."""

    status: int
    body: Object
    retry_after_seconds: int | None = None
    text: str = ""

    @property
    def is_done(self) -> bool:
        """Whether the request is carried out."""
        return 200 <= self.status < 300  # noqa: PLR2004 - what HTTP calls success


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FakeRequest:
    """A request as the server has read it.

    Attributes:
        verb: as RBAC has it: `get`, `list`, `watch`, `create`, `update`, `patch` or `delete`.
        group: API group; empty for the core.
        version: of the group.
        resource: plural, with its subresource: `pods/eviction`.
        namespace: empty for what has none.
        name: empty for lists.
        query: parameters of the URL.
        body: JSON, an empty object without one.
        content_type: of the body.
    """

    verb: str
    group: str = ""
    version: str = ""
    resource: str
    namespace: str = ""
    name: str = ""
    query: dict[str, str] = dataclasses.field(default_factory=dict)
    body: Any = dataclasses.field(default_factory=dict)
    content_type: str = ""

    @property
    def what(self) -> str:
        """Verb and resource, as `delete pods`."""
        return f"{self.verb} {self.resource}"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ApiWrite:
    """A request that was meant to change something.

    Attributes:
        at: when it was looked at, seconds since 1970.
        what: verb and resource, as `delete pods` or `create pods/eviction`.
        namespace: of the object.
        name: of the object.
        uid: the UID that it named as precondition; None if it named none.
        done_to: UID of the pod that it deleted or changed; None if it changed none.
        status: of the answer, also where the connection was cut instead; 0 if it was cut before.
        body: body of the request.
        is_dry_run: it asked that nothing be changed.
    """

    at: float
    what: str
    namespace: str
    name: str
    uid: str | None
    done_to: str | None
    status: int
    body: Any
    is_dry_run: bool

    @property
    def is_success(self) -> bool:
        """Whether the API server has carried out the request."""
        return FakeAnswer(self.status, {}).is_done

    @property
    def is_removal(self) -> bool:
        """Whether it is a delete, or an eviction, of a pod."""
        return self.what in {"delete pods", "create pods/eviction"}


def deep(levels: int) -> str:
    """Return what stands in an object for objects within one another, so many levels; `deep_json` writes them."""
    return f"@deep {levels}@"


def deep_json(body: Object) -> bytes:
    """Write an object as JSON, with what `deep` stands for: deeper than `json` itself can write."""
    return _DEEP.sub(lambda match: b'{"f:a":' * int(match[1]) + b"{}" + b"}" * int(match[1]), json.dumps(body).encode())


def refusal(
    status: int,
    message: str,
    *,
    cause: str = "",
    retry_after_seconds: int | None = None,
    about: FakeRequest | None = None,
) -> FakeAnswer:
    """Make the `Status` with which Kubernetes refuses; with `about` it names the object of that request."""
    body: Object = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": _REASONS.get(status, "Unknown"),
        "code": status,
    }
    details: Object = {"causes": [{"reason": cause, "message": message}]} if cause else {}
    if about is not None:
        details |= {"name": about.name, "kind": about.resource.partition("/")[0]}
    if retry_after_seconds is not None:
        details["retryAfterSeconds"] = retry_after_seconds
    return FakeAnswer(status, body | ({"details": details} if details else {}), retry_after_seconds)
