"""Lists of nodes and pods, as `kubectl get nodes,pods -A -o json` and the API server write them: a state to begin with.

kubectl's list is a `List`, whose items say their kind. The API server's is a `NodeList` or `PodList`, whose items do
not, so it is put into each.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import msgspec

from evictstream.models.messages.envelope import DECODE_ERRORS, unreadable
from evictstream.streams.recordings.entries import Flaw, Item, Skipped, entry_of
from evictstream.streams.recordings.json_documents import ListItem

OTHER_OBJECTS: Final = "other objects"
"""Neither nodes nor pods, as in what `kubectl get all` lists."""

_LIST: Final = "List"


class _ListMetadata(msgspec.Struct, gc=False):
    continue_: str = msgspec.field(default="", name="continue")


class _List(msgspec.Struct, gc=False):
    kind: str = ""
    metadata: _ListMetadata | None = None


class _Kind(msgspec.Struct, gc=False):
    kind: str | None = None


_list_decoder: Final = msgspec.json.Decoder(_List)
_kind_decoder: Final = msgspec.json.Decoder(_Kind)
_fields_decoder: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])


def compact(text: bytes) -> bytes:
    """Leave out the white space of printers, which is not worth sending."""
    return msgspec.json.format(text, indent=-1) if b"\n" in text else text


def is_list(kind: str | None) -> bool:
    """Tell a list by its kind."""
    return kind is not None and kind.endswith(_LIST)


def listed(source: str, item: ListItem) -> Item:
    """Read an item as an object that is there."""
    try:
        text = compact(item.text)
        kind = _kind_decoder.decode(text).kind
        if kind is None:
            kind = _kind_of_items(item.head)
            text = msgspec.json.encode(_fields_decoder.decode(text) | _type_of(kind))
    except DECODE_ERRORS as error:
        return Flaw(source, item.line, str(unreadable(error)))
    if kind not in {"Node", "Pod"}:
        return Skipped(source, item.line, OTHER_OBJECTS)
    return entry_of(msgspec.Raw(text), source=source, line=item.line, type_="ADDED", is_listed=True)


def unfinished(source: str, line: int, text: bytes) -> Flaw | None:
    """Look at the end of a list, which is there without its items: a page says that others follow."""
    try:
        metadata = _list_decoder.decode(text).metadata
    except DECODE_ERRORS as error:
        return Flaw(source, line, str(unreadable(error)))
    if metadata is None or not metadata.continue_:
        return None
    return Flaw(source, line, "a page of a list: what was to follow it is missing; list without a limit")


def _type_of(kind: str) -> dict[str, msgspec.Raw]:
    return {"kind": msgspec.Raw(msgspec.json.encode(kind)), "apiVersion": msgspec.Raw(b'"v1"')}


@lru_cache(maxsize=4)
def _kind_of_items(head: bytes) -> str:
    return _list_decoder.decode(head).kind.removesuffix(_LIST)
