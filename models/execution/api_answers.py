"""What an answer to a request about one pod or node means: it counts by who gave it, not by its number alone.

The number is that of the API server, of a webhook that speaks through it, or of a proxy on the way. Only a `Status` of
Kubernetes that names the object says that there is none; only an object of Kubernetes says that something was done.
What speaks of one object holds up that object; what speaks of the server holds up its cluster; for the rest
`OtherObjects` looks at what happens to the others.
"""

from __future__ import annotations

import enum
import re
from typing import Final

import msgspec

from evictstream.models.shallow_json import decode_any_depth

LONGEST_MESSAGE: Final = 1_000
"""Characters that are kept of what is said: a webhook may answer with a page."""

MOST_DOUBTS: Final = 10_000
"""Objects in doubt that are remembered; beyond it all are dropped, and counted from the begin again."""

DOUBT_SECONDS: Final = 60.0
"""How long a doubtful answer about one object speaks against the cluster: twice the longest pause between its tries."""

SILENCE_SECONDS: Final = 10.0
"""How long one object alone may have strange answers before the cluster counts as not ready."""

WEBHOOK: Final = re.compile(r'(^|: )admission webhook "[^"]*" denied the request')
"""What the API server hands on of a webhook begins so, in some versions after `pods "a" is forbidden: ` (apiserver,
admission/plugin/webhook/errors). Codes, reasons and details are the webhook's own."""

OVERLOADED: Final = b"Too many requests, please try again later."
"""All that the API server says where priority and fairness refuse (apiserver, server/filters), beside `Retry-After`."""


class Meaning(enum.Enum):
    """What to make of an answer."""

    DONE = enum.auto()
    """What was asked for was done, and Kubernetes says so."""
    GONE = enum.auto()
    """There is no such object."""
    CHANGED = enum.auto()
    """It is not as it was at the look."""
    REFUSED = enum.auto()
    """The executor may not, or a webhook says no."""
    BUDGET = enum.auto()
    """A disruption budget does not allow it now."""
    OBJECT_WAITS = enum.auto()
    """Something about this object fails now; others are not concerned."""
    CLUSTER_WAITS = enum.auto()
    """The API server takes nothing now."""
    CREDENTIALS = enum.auto()
    """The API server does not know the sender."""
    DOUBTFUL = enum.auto()
    """It is not the API server's, or does not tell whom it concerns."""
    FAILED = enum.auto()
    """It is refused, and would be again."""


class ApiReading(msgspec.Struct, frozen=True):
    """An answer as it was understood: what it means, and what was said, for people."""

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


class _Found(msgspec.Struct, rename="camel"):
    """Any object of Kubernetes, a `Status` among them."""

    kind: str
    api_version: str
    metadata: _Metadata | None = None
    message: str | None = None
    reason: str | None = None
    status: msgspec.Raw = msgspec.Raw(b"null")
    details: _Details | None = None


_decoder: Final = msgspec.json.Decoder(_Found)

_KINDS: Final = {"pods": "Pod", "nodes": "Node"}
_OBJECT_CODES: Final = frozenset({401, 404, 409, 429})
"""Of a webhook these are no verdict for good: it may say something else of the object later."""

_UNAVAILABLE: Final = frozenset({503, 504})
_OTHER_REFUSALS: Final = {403: Meaning.REFUSED, 409: Meaning.CHANGED}


def read_api_answer(code: int, body: bytes, *, plural: str, name: str, has_retry_after: bool = False) -> ApiReading:
    """Say what an answer means. Total: nothing that anybody answers raises an error.

    Args:
        code: status of HTTP.
        body: of the answer.
        plural: `pods` or `nodes`: what the request was about.
        name: of that object.
        has_retry_after: whether the header `Retry-After` came with it.
    """
    found = _found(body)
    if found is None or not (found.kind == "Status" or 200 <= code < 300):  # noqa: PLR2004 - what HTTP calls success
        if code == 429 and has_retry_after and body.strip() == OVERLOADED:  # noqa: PLR2004
            return ApiReading(Meaning.CLUSTER_WAITS, f"the API server answered {code}: {OVERLOADED.decode()}")
        said = body[:LONGEST_MESSAGE].decode(errors="replace").strip()
        return ApiReading(Meaning.DOUBTFUL, f"somebody on the way, not the API server, answered {code}: {said}")
    text = f"the API server answered {code}: {(found.message or found.reason or 'no reason given')[:LONGEST_MESSAGE]}"
    if 200 <= code < 300:  # noqa: PLR2004
        return ApiReading(*_of_success(found, plural, name))
    return ApiReading(_of_refusal(code, found, plural, name, has_retry_after=has_retry_after), text)


def _of_success(found: _Found, plural: str, name: str) -> tuple[Meaning, str]:
    if found.kind == "Status" and bytes(found.status) == b'"Success"':  # to evictions
        return Meaning.DONE, ""
    is_it = found.metadata is not None and found.metadata.name == name
    if found.kind == _KINDS[plural] and is_it:
        return Meaning.DONE, ""
    return Meaning.DOUBTFUL, f"what came for {plural}/{name} is something else: {found.kind}"[:LONGEST_MESSAGE]


def _of_refusal(code: int, said: _Found, plural: str, name: str, *, has_retry_after: bool) -> Meaning:
    details = said.details or _Details()
    if WEBHOOK.search(said.message or ""):
        return Meaning.OBJECT_WAITS if code in _OBJECT_CODES or code >= 500 else Meaning.REFUSED  # noqa: PLR2004
    is_of_object = details.name == name
    if code == 404:  # noqa: PLR2004
        is_none = said.reason == "NotFound" and is_of_object and details.kind == plural
        return Meaning.GONE if is_none else Meaning.DOUBTFUL
    if code == 429:  # noqa: PLR2004
        has_time = has_retry_after or bool(details.retry_after_seconds)
        return _of_too_many(details, is_of_object=is_of_object, has_time=has_time)
    if code == 401:  # noqa: PLR2004 - a policy may answer so, and names the object
        return Meaning.REFUSED if is_of_object else Meaning.CREDENTIALS
    if code in _UNAVAILABLE:
        return Meaning.OBJECT_WAITS if is_of_object else Meaning.DOUBTFUL
    if code >= 500:  # noqa: PLR2004 - a webhook that failed, or several disruption budgets for one pod
        return Meaning.OBJECT_WAITS
    return _OTHER_REFUSALS.get(code, Meaning.FAILED)


def _of_too_many(details: _Details, *, is_of_object: bool, has_time: bool) -> Meaning:
    if any(cause.reason == "DisruptionBudget" for cause in details.causes or ()):
        return Meaning.BUDGET
    if is_of_object:
        return Meaning.OBJECT_WAITS
    return Meaning.CLUSTER_WAITS if has_time else Meaning.DOUBTFUL


def _found(body: bytes) -> _Found | None:
    try:
        found = decode_any_depth(_decoder, body)
    except msgspec.DecodeError:
        return None
    return found if found.api_version == "v1" else None


class Trouble(enum.Enum):
    """Whose trouble a doubtful answer is."""

    OF_OBJECT = enum.auto()
    """The API server answers about others."""
    PERHAPS_OF_CLUSTER = enum.auto()
    """Nothing has been heard about others."""
    PROBABLY_OF_CLUSTER = enum.auto()
    """Nothing has been heard about others for `SILENCE_SECONDS`."""
    OF_CLUSTER = enum.auto()
    """Others get no answer either."""


class OtherObjects:
    """Tells whose trouble a doubtful answer is, by what is answered about other objects. Used by several threads."""

    def __init__(self) -> None:
        self._doubts: dict[str, tuple[float, float]] = {}  # by UID, the first and the newest since it was forgotten
        self._answered: list[tuple[str, float]] = []  # the newest answers about two objects, the newest last

    def note_answer(self, uid: str, now: float) -> None:
        """Take note that the API server has answered about an object."""
        self._answered = [*(one for one in self._answered if one[0] != uid), (uid, now)][-2:]

    def forget(self, uid: str) -> None:
        """Forget what was doubted about an object that is done with."""
        self._doubts.pop(uid, None)

    def trouble(self, uid: str, now: float) -> Trouble:
        """Take note of a doubtful answer about an object, and tell whose trouble it is."""
        if len(self._doubts) >= MOST_DOUBTS:
            self._doubts.clear()
        since, _ = self._doubts.get(uid, (now, now))
        self._doubts[uid] = (since, now)
        if any(other != uid and at > since for other, at in self._answered):
            return Trouble.OF_OBJECT
        if any(other != uid and now - at < DOUBT_SECONDS for other, (_, at) in list(self._doubts.items())):
            return Trouble.OF_CLUSTER
        return Trouble.PERHAPS_OF_CLUSTER if now - since < SILENCE_SECONDS else Trouble.PROBABLY_OF_CLUSTER
