"""What an answer to a request about one pod or node means: this depends on its sender, not on the HTTP status alone.

The status is set by the API server, by a webhook behind it, or by a proxy in between. Only a `Status` of Kubernetes
that names the object proves that there is no such object; only an object of Kubernetes proves that a write was done.
An answer about one object delays that object; an answer about the server delays its cluster; in doubt, `OtherObjects`
compares with the answers about other objects.
"""

from __future__ import annotations

import enum
import re
from typing import Final

import msgspec

from evictstream.models.shallow_json import decode_any_depth

_LONGEST_MESSAGE: Final = 1_000
"""Characters of a message that are kept: a webhook may answer with a page."""

MOST_DOUBTS: Final = 10_000
"""Objects in doubt that are remembered; beyond it all are dropped, and counting starts again."""

DOUBT_SECONDS: Final = 60.0
"""How long a doubtful answer about one object counts against the cluster: twice the longest pause between its tries."""

_SILENCE_SECONDS: Final = 10.0
"""How long one object alone may have strange answers before the cluster counts as not ready."""

WEBHOOK: Final = re.compile(r'(^|: )admission webhook "[^"]*" denied the request')
"""The API server's prefix of a webhook's message, in some versions after `pods "a" is forbidden: ` (apiserver,
admission/plugin/webhook/errors). Code, reason and details are the webhook's own."""

OVERLOADED: Final = b"Too many requests, please try again later."
"""The API server's answer when priority and fairness refuse (apiserver, server/filters), with a `Retry-After`."""


class Meaning(enum.Enum):
    """The meaning of an answer."""

    DONE = enum.auto()
    """The request was done, and Kubernetes confirms it."""
    GONE = enum.auto()
    """There is no such object."""
    CHANGED = enum.auto()
    """The object has changed since the look."""
    REFUSED = enum.auto()
    """The executor has no right, or a webhook denies it."""
    BUDGET = enum.auto()
    """A disruption budget does not allow it now."""
    OBJECT_WAITS = enum.auto()
    """Requests for this object fail now; other objects are not affected."""
    CLUSTER_WAITS = enum.auto()
    """The API server had no room for this request. Several in a row mean that it takes none now."""
    CREDENTIALS = enum.auto()
    """The API server does not know the sender."""
    DOUBTFUL = enum.auto()
    """It is not from the API server, or does not tell which objects it concerns."""
    FAILED = enum.auto()
    """It is refused, and would be refused again."""


class ApiReading(msgspec.Struct, frozen=True):
    """The meaning of an answer, and its text for people."""

    meaning: Meaning
    text: str = ""


class _Cause(msgspec.Struct):
    reason: str | None = None


class _Details(msgspec.Struct, rename="camel"):
    name: str | None = None
    kind: str | None = None
    causes: list[_Cause] | None = None
    retry_after_seconds: int | None = None


class _Metadata(msgspec.Struct):
    name: str | None = None


class _AnyObject(msgspec.Struct, rename="camel"):
    """Any object of Kubernetes, including `Status`."""

    kind: str
    api_version: str
    metadata: _Metadata | None = None
    message: str | None = None
    reason: str | None = None
    status: msgspec.Raw = msgspec.Raw(b"null")
    details: _Details | None = None


_decoder: Final = msgspec.json.Decoder(_AnyObject)

_KINDS: Final = {
    "pods": ("v1", "Pod"),
    "nodes": ("v1", "Node"),
    "evictionrequests": ("lifecycle.k8s.io/v1alpha1", "EvictionRequest"),
}
"""By resource: version and kind of its objects."""
_OBJECT_CODES: Final = frozenset({401, 404, 409, 429})
"""From a webhook these are not final: it may answer differently for the object later."""

_BUDGET_CODES: Final = frozenset({403, 429})
"""With these a disruption budget refuses an eviction: 403 if its status is not usable now (Kubernetes 1.37)."""

_BUDGET_CAUSE: Final = "DisruptionBudget"
_UNAVAILABLE: Final = frozenset({503, 504})
_OTHER_REFUSALS: Final = {403: Meaning.REFUSED, 409: Meaning.CHANGED}


def read_api_answer(code: int, body: bytes, *, plural: str, name: str, has_retry_after: bool = False) -> ApiReading:
    """Return what an answer means; no answer raises an error.

    Args:
        code: HTTP status.
        body: of the answer.
        plural: `pods`, `nodes` or `evictionrequests`: the resource of the request.
        name: of the object.
        has_retry_after: whether the answer has the header `Retry-After`.
    """
    answer = _decoded(body)
    if answer is None or not (answer.kind == "Status" or 200 <= code < 300):  # noqa: PLR2004 - what HTTP calls success
        if code == 429 and has_retry_after and body.strip() == OVERLOADED:  # noqa: PLR2004
            return ApiReading(Meaning.CLUSTER_WAITS, f"the API server answered {code}: {OVERLOADED.decode()}")
        text = body[:_LONGEST_MESSAGE].decode(errors="replace").strip()
        return ApiReading(Meaning.DOUBTFUL, f"a proxy, not the API server, answered {code}: {text}")
    text = (
        f"the API server answered {code}: {(answer.message or answer.reason or 'no reason given')[:_LONGEST_MESSAGE]}"
    )
    if 200 <= code < 300:  # noqa: PLR2004
        return ApiReading(*_of_success(answer, plural, name))
    return ApiReading(_of_refusal(code, answer, plural, name, has_retry_after=has_retry_after), text)


def _of_success(answer: _AnyObject, plural: str, name: str) -> tuple[Meaning, str]:
    if answer.kind == "Status" and bytes(answer.status) == b'"Success"':  # to evictions
        return Meaning.DONE, ""
    has_name = answer.metadata is not None and answer.metadata.name == name
    if (answer.api_version, answer.kind) == _KINDS[plural] and has_name:
        return Meaning.DONE, ""
    return Meaning.DOUBTFUL, f"the answer for {plural}/{name} is another object: {answer.kind}"[:_LONGEST_MESSAGE]


def _of_refusal(code: int, status: _AnyObject, plural: str, name: str, *, has_retry_after: bool) -> Meaning:
    details = status.details or _Details()
    if WEBHOOK.search(status.message or ""):
        return Meaning.OBJECT_WAITS if code in _OBJECT_CODES or code >= 500 else Meaning.REFUSED  # noqa: PLR2004
    if code in _BUDGET_CODES and any(cause.reason == _BUDGET_CAUSE for cause in details.causes or ()):
        return Meaning.BUDGET
    is_of_object = details.name == name
    if code == 404:  # noqa: PLR2004
        is_gone = status.reason == "NotFound" and is_of_object and details.kind == plural
        return Meaning.GONE if is_gone else Meaning.DOUBTFUL
    if code == 429:  # noqa: PLR2004
        has_time = has_retry_after or bool(details.retry_after_seconds)
        return _of_too_many(is_of_object=is_of_object, has_time=has_time)
    if code == 401:  # noqa: PLR2004 - a policy may answer so, and names the object
        return Meaning.REFUSED if is_of_object else Meaning.CREDENTIALS
    if code in _UNAVAILABLE:
        return Meaning.OBJECT_WAITS if is_of_object else Meaning.DOUBTFUL
    if code >= 500:  # noqa: PLR2004 - a webhook that failed, or several disruption budgets for one pod
        return Meaning.OBJECT_WAITS
    return _OTHER_REFUSALS.get(code, Meaning.FAILED)


def _of_too_many(*, is_of_object: bool, has_time: bool) -> Meaning:
    if is_of_object:
        return Meaning.OBJECT_WAITS
    return Meaning.CLUSTER_WAITS if has_time else Meaning.DOUBTFUL


def _decoded(body: bytes) -> _AnyObject | None:
    try:
        answer = decode_any_depth(_decoder, body)
    except msgspec.DecodeError:
        return None
    is_status = answer.kind == "Status"
    return answer if answer.api_version == "v1" or not is_status else None


class Trouble(enum.Enum):
    """Whether a doubtful answer concerns one object or its cluster."""

    OF_OBJECT = enum.auto()
    """The API server answers about other objects."""
    PERHAPS_OF_CLUSTER = enum.auto()
    """There is no answer about other objects yet."""
    PROBABLY_OF_CLUSTER = enum.auto()
    """There has been no answer about other objects for `_SILENCE_SECONDS`."""
    OF_CLUSTER = enum.auto()
    """Answers about other objects are doubtful too."""


class OtherObjects:
    """Compares a doubtful answer with the answers about other objects. Used by several threads."""

    def __init__(self) -> None:
        self._doubts: dict[str, tuple[float, float]] = {}  # by UID, the first and the newest since `forget`
        self._answered: list[tuple[str, float]] = []  # the newest answers about two objects, the newest last

    def note_answer(self, uid: str, now: float) -> None:
        """Record that the API server has answered about an object."""
        self._answered = [*((other, at) for other, at in self._answered if other != uid), (uid, now)][-2:]

    def forget(self, uid: str) -> None:
        """Forget the doubts about an object whose eviction has ended."""
        self._doubts.pop(uid, None)

    def trouble(self, uid: str, now: float) -> Trouble:
        """Record a doubtful answer about an object, and return whom it concerns."""
        if len(self._doubts) >= MOST_DOUBTS:
            self._doubts.clear()
        since, _ = self._doubts.get(uid, (now, now))
        self._doubts[uid] = (since, now)
        if any(other != uid and at > since for other, at in self._answered):
            return Trouble.OF_OBJECT
        if any(other != uid and now - at < DOUBT_SECONDS for other, (_, at) in list(self._doubts.items())):
            return Trouble.OF_CLUSTER
        return Trouble.PERHAPS_OF_CLUSTER if now - since < _SILENCE_SECONDS else Trouble.PROBABLY_OF_CLUSTER
