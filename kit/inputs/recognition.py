"""What a file was cut into, recognised piece by piece: objects of Kubernetes, changes of a watch, events of audit logs.

Lists are taken apart, and what their items leave out because the list says it is put into each: the API server's
`NodeList` says once what its items are. Keys of JSON have no order; where the kind stands behind the items, these wait
for it. Events of audit logs are also found inside records of other logs.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

import msgspec

from evictstream.kit.inputs.delayed_items import DelayedItems
from evictstream.kit.inputs.json_documents import documents
from evictstream.kit.inputs.log_records import unwrapped
from evictstream.kit.inputs.pieces import Broken, Document, InputPiece, ListItem
from evictstream.models.messages.envelope import DECODE_ERRORS, unreadable

A_PAGE: Final = "one page of a list, without the next pages; list without a limit"
NO_LIST: Final = "a list whose items are no list"
WITHIN: Final = "an audit event inside a record of an unknown kind; extract it, for example with jq"

DEEPEST: Final = 3
"""Lists within lists, and records within records: `kubectl get` of several lists makes two of the former."""

_LIST: Final = "List"
_AUDIT: Final = "audit.k8s.io/"


class KubernetesObject(NamedTuple):
    """An object, or what could be one.

    Attributes:
        line: on which it begins.
        text: JSON of it, with its kind.
        kind: empty if neither it nor its list says a kind.
        version: of its API; `v1`, or empty, for nodes and pods.
        is_single: it stands in no list.
    """

    line: int
    text: bytes
    kind: str
    version: str
    is_single: bool


class ChangeOfWatch(NamedTuple):
    """A change as a watch shows it: the line on which it begins, and its JSON."""

    line: int
    text: bytes


class AuditEvent(NamedTuple):
    """An event of an audit log: the line on which it begins, and its JSON."""

    line: int
    text: bytes


class OtherLine(NamedTuple):
    """The text of a log record that is no JSON, such as the API server's own log next to its audit log."""

    line: int


class EndOfList(NamedTuple):
    """The line on which a list begins of which all came before, which may be nothing."""

    line: int


class NoObject(NamedTuple):
    """JSON that is no object: the line on which it begins."""

    line: int


Recognised: TypeAlias = KubernetesObject | ChangeOfWatch | AuditEvent | OtherLine | EndOfList | NoObject | Broken


class _Head(msgspec.Struct, rename="camel", gc=False):
    """As much of a document as tells what it is."""

    type: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    object: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    kind: msgspec.Raw = msgspec.Raw(b"null")
    api_version: msgspec.Raw = msgspec.Raw(b"null")
    metadata: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    items: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    stage: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    verb: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET

    @property
    def has_request(self) -> bool:
        """Whether it tells of a request; webhooks leave out what each item of a list says again."""
        return self.stage is not msgspec.UNSET and self.verb is not msgspec.UNSET


class _ListMetadata(msgspec.Struct, gc=False):
    continue_: str = msgspec.field(default="", name="continue")


class _List(msgspec.Struct, gc=False):
    kind: str = ""
    metadata: _ListMetadata | None = None


_head: Final = msgspec.json.Decoder(_Head)
_list: Final = msgspec.json.Decoder(_List)
_fields: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_text: Final = msgspec.json.Decoder(str)


def recognised(pieces: Iterable[InputPiece]) -> Iterator[Recognised]:
    """Go through what a file was cut into."""
    with DelayedItems() as waiting:
        yield from _Recognition(waiting).read(pieces, 0)


class _Recognition:
    def __init__(self, waiting: DelayedItems) -> None:
        self._delayed = waiting

    def read(self, pieces: Iterable[InputPiece], depth: int) -> Iterator[Recognised]:
        for piece in pieces:
            if isinstance(piece, Broken):
                yield piece
                continue
            try:
                if isinstance(piece, Document) and piece.is_list:
                    yield from self._list_ended(piece)
                else:
                    yield from self._value(piece, depth)
            except DECODE_ERRORS as error:
                yield Broken(piece.line, str(unreadable(error)), piece.text.count(b"\n") + 1)
        yield from self._waiting("")

    def _value(self, piece: Document | ListItem, depth: int) -> Iterator[Recognised]:
        line, text = piece.line, piece.text
        if not text.startswith(b"{"):
            yield from self._record(piece, depth)
            return
        head = _head.decode(text)
        kind, version = _word(head.kind), _word(head.api_version)
        if version.startswith(_AUDIT) or (head.has_request and kind in {"", "Event"}):
            yield AuditEvent(line, text)
        elif head.object is not msgspec.UNSET or (head.type is not msgspec.UNSET and not kind):
            yield ChangeOfWatch(line, text)
        elif isinstance(head.items, msgspec.Raw) and kind.endswith(_LIST):
            yield from self._list(piece, bytes(head.items), depth)
        elif kind:
            yield KubernetesObject(
                line=line, text=text, kind=kind, version=version, is_single=isinstance(piece, Document)
            )
        elif isinstance(piece, ListItem) and (kind := kind_of_items(piece.head)):
            yield _typed(line, text, kind)
        elif isinstance(piece, ListItem) and head.metadata is not msgspec.UNSET:
            self._delayed.keep(line, text)
        else:
            yield from self._record(piece, depth)

    def _list(self, piece: Document | ListItem, items: bytes, depth: int) -> Iterator[Recognised]:
        """Look at a list within a list, or at one that is empty as Go writes it: its items are null."""
        if items == b"null":
            yield from self._list_ended(piece)
        elif not items.startswith(b"[") or depth == DEEPEST:
            yield Broken(piece.line, NO_LIST)
        else:
            for inner in self.read(documents(io.BytesIO(piece.text)), depth + 1):
                yield inner._replace(line=inner.line + piece.line - 1)

    def _record(self, piece: Document | ListItem, depth: int) -> Iterator[Recognised]:
        """Look into a record of another log."""
        is_value = isinstance(piece, ListItem) or piece.text.startswith(b"{")
        text = unwrapped(piece.text) if is_value and depth < DEEPEST else None
        if text is None and _AUDIT.encode() in piece.text:
            yield Broken(piece.line, WITHIN, piece.text.count(b"\n") + 1)
        elif text is None and piece.text.startswith(b"{"):
            yield KubernetesObject(
                line=piece.line, text=piece.text, kind="", version="", is_single=isinstance(piece, Document)
            )
        elif text is None:
            yield NoObject(piece.line)
        elif text.lstrip().startswith(b"{"):
            yield from self._value(Document(piece.line, text.strip()), depth + 1)
        else:
            yield OtherLine(piece.line)

    def _list_ended(self, end: Document | ListItem) -> Iterator[Recognised]:
        """Look at a list without its items: a page says that others follow."""
        yield from self._waiting(kind_of_items(end.text))
        if end.text.startswith(b"{"):
            metadata = _list.decode(end.text).metadata
            if metadata is not None and metadata.continue_:
                yield Broken(end.line, A_PAGE)
                return
        yield EndOfList(end.line)

    def _waiting(self, kind: str) -> Iterator[Recognised]:
        """Give what has waited for the kind of its list."""
        for line, text in self._delayed.taken():
            yield (
                _typed(line, text, kind)
                if kind
                else KubernetesObject(line=line, text=text, kind="", version="", is_single=False)
            )


def _word(text: msgspec.Raw) -> str:
    return _text.decode(text) if bytes(text)[:1] == b'"' else ""


@lru_cache(maxsize=4)
def kind_of_items(head: bytes) -> str:
    """Return what a list holds, by the list without its items; empty if that is not said, or each item says it."""
    try:
        kind = _list.decode(head).kind
    except DECODE_ERRORS:
        return ""
    return kind.removesuffix(_LIST) if kind.endswith(_LIST) else ""


def _typed(line: int, text: bytes, kind: str) -> KubernetesObject:
    """Put kind and version into an object of a list that says them once."""
    type_ = {"kind": msgspec.Raw(msgspec.json.encode(kind)), "apiVersion": msgspec.Raw(b'"v1"')}
    return KubernetesObject(
        line=line, text=msgspec.json.encode(type_ | _fields.decode(text)), kind=kind, version="", is_single=False
    )
