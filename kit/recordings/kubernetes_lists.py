"""Objects as `kubectl get nodes,pods -A -o json` and the API server list them: a state to begin with."""

from __future__ import annotations

from typing import Final

import msgspec

from evictstream.kit.inputs.recognition import KubernetesObject
from evictstream.kit.recordings.entries import Flaw, Item, Skipped, entry_of
from evictstream.models.messages.envelope import DECODE_ERRORS, unreadable

OTHER_OBJECTS: Final = "other objects"
"""Neither nodes nor pods, as in what `kubectl get all` lists."""

UNNAMED: Final = "an object without kind: neither a node, a pod or a list of them, nor a change or an audit event"
REFUSAL: Final = "the API server refuses the request"
SAME_AGAIN: Final = (
    "the same object again: a watch without the types of its changes; record with --watch --output-watch-events"
)


class _Metadata(msgspec.Struct, gc=False):
    uid: str = ""


class _Object(msgspec.Struct, gc=False):
    kind: str | None = None
    metadata: _Metadata | None = None


_object: Final = msgspec.json.Decoder(_Object)


def compact(text: bytes) -> bytes:
    """Leave out the white space of printers, which is not worth sending."""
    return msgspec.json.format(text, indent=-1) if b"\n" in text else text


class ListedObjects:
    """Reads the objects of one file. The UIDs of objects outside lists are remembered."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._uids: set[str] = set()

    def read(self, listed: KubernetesObject) -> Item:
        """Read an object that is there."""
        source, line, lines = self._source, listed.line, listed.text.count(b"\n") + 1
        try:
            about = _object.decode(listed.text)
        except DECODE_ERRORS as error:
            return Flaw(source, line, str(unreadable(error)), lines)
        if listed.kind == "":
            return Flaw(source, line, UNNAMED, lines)
        if listed.kind == "Status":
            return Flaw(source, line, REFUSAL, lines)
        if listed.kind not in {"Node", "Pod"} or listed.version not in {"", "v1"}:
            return Skipped(source, line, OTHER_OBJECTS)
        if listed.is_single and about.metadata is not None and about.metadata.uid:
            if about.metadata.uid in self._uids:
                return Flaw(source, line, SAME_AGAIN, lines)
            self._uids.add(about.metadata.uid)
        text = msgspec.Raw(compact(listed.text))
        return entry_of(text, source=source, line=line, type_="ADDED", is_listed=True)
