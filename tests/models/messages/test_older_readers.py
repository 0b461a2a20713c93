"""A later version may add a field to any message of the same `apiVersion`: readers that run already pass over it."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Literal

import jsonschema  # type: ignore[import-untyped]
import msgspec
import pytest

from evictstream.models.eviction import Origin
from evictstream.models.messages.codec import encode
from evictstream.models.messages.command import EvictionCommand, decode_command
from evictstream.models.messages.decision import decode_decision
from evictstream.models.messages.decoding import read_node_record, read_pod_record, read_result_record
from evictstream.models.messages.result import decode_result
from evictstream.models.messages.schemas import schema_texts
from evictstream.models.messages.signals import Bookmark
from evictstream.models.messages.unreadable import Unreadable
from evictstream.models.messages.watch_event import decode_watch_event
from tests.models.messages.test_commands_and_decisions import told
from tests.models.messages.test_decoding import APPEND_US, NODE, ORIGIN, POD, RESULT

ADDED = "addedLater"
STORY = told()
SIGNALS: dict[str, dict[str, Any]] = {
    "HEARTBEAT": {"listedAt": "2026-11-21T02:15:53Z", "epoch": 2, "clusterUid": "u"},
    "LISTED": {"clusterUid": "u", "listing": {"resourceVersion": "7", "after": "", "through": None, "uids": {}}},
    "FORGET": {},
    "ACCEPT_GAP": {},
}
Reader = Callable[[bytes], object]
RecordReader = Callable[[bytes, bytes, int, Origin], object]


def in_record(read: RecordReader) -> Reader:
    return lambda value: read(b"c", value, APPEND_US, ORIGIN)


def messages() -> Iterator[tuple[str, dict[str, Any], Reader]]:
    """Yield each kind of message, one of them, and the function that reads it."""
    for command in STORY.commands:
        yield "command", json.loads(encode(command)), decode_command
    for decision in STORY.decisions:
        yield "decision", json.loads(encode(decision)), decode_decision
    yield "result", RESULT | {"evictionId": "0" * 32}, decode_result
    yield "result", RESULT | {"evictionId": "0" * 32}, in_record(read_result_record)
    for event, read in ((NODE, read_node_record), (POD, read_pod_record)):
        yield "watch-event", event, decode_watch_event
        yield "watch-event", event, in_record(read)
    for type_, fields in SIGNALS.items():
        signal = {"cluster": "c", "type": type_} | fields
        yield "watch-event", signal, decode_watch_event
        yield "watch-event", signal, in_record(read_node_record)
        yield "watch-event", signal, in_record(read_pod_record)


def with_added_fields(message: dict[str, Any], path: tuple[str, ...] = ()) -> Iterator[dict[str, Any]]:
    """Yield the message with a field more, at each level; what a feed lists by name has no fields."""
    found: Any = message
    for name in path:
        found = found[name]
    if path[-1:] != ("uids",):
        changed = copy.deepcopy(message)
        inner: Any = changed
        for name in path:
            inner = inner[name]
        inner[ADDED] = {"any": ["thing"]}
        yield changed
    for name, value in found.items():
        if isinstance(value, dict):
            yield from with_added_fields(message, (*path, name))


def meaning(found: object) -> object:
    """What a reader makes of a record; a watch event keeps its object as it came."""
    return msgspec.structs.replace(found, object=msgspec.UNSET) if hasattr(found, "object") else found  # type: ignore[type-var]


def test_added_fields_change_nothing_for_readers() -> None:
    levels = 0
    for _, message, read in messages():
        expected = meaning(read(json.dumps(message).encode()))
        for changed in with_added_fields(message):
            assert meaning(read(json.dumps(changed).encode())) == expected
            levels += 1
    assert levels > 100


@pytest.mark.parametrize("name", ["command", "decision", "result", "watch-event"])
def test_schemas_allow_added_fields(name: str) -> None:
    validator = jsonschema.Draft202012Validator(json.loads(schema_texts()[f"{name}.json"]))
    for kind, message, _ in messages():
        if kind == name:
            for changed in with_added_fields(message):
                validator.validate(changed)


class CommandAsOnceWritten(msgspec.Struct, rename="camel", kw_only=True):
    """The fields of a command that an executor of the first day needed; `clusterUid` came later."""

    api_version: Annotated[Literal["evictstream.io/v1"], "the only one"]
    action: str
    eviction_id: str
    revision: int
    attempt: int
    pod_uid: str
    node: str


def test_an_executor_of_fewer_fields_reads_todays_commands() -> None:
    command = msgspec.structs.replace(STORY.commands[0], cluster_uid="0a54f6a0")
    assert isinstance(command, EvictionCommand)
    older = msgspec.json.decode(encode(command), type=CommandAsOnceWritten)
    assert (older.eviction_id, older.revision, older.node) == (command.eviction_id, command.revision, command.node)


def test_another_api_version_is_refused() -> None:
    for kind, message, read in messages():
        if kind != "watch-event":
            with pytest.raises(Unreadable):
                read(json.dumps(message | {"apiVersion": "evictstream.io/v2"}).encode())


def test_an_unknown_type_is_a_dead_letter() -> None:
    """A signal must not be lost in silence: the types of watch events are closed, their fields are not."""
    for read in (read_node_record, read_pod_record):
        with pytest.raises(Unreadable, match="UnknownEventType"):
            read(b"c", b'{"cluster":"c","type":"PAUSE"}', APPEND_US, ORIGIN)
        assert read(b"c", b'{"cluster":"c","type":"BOOKMARK","addedLater":1}', APPEND_US, ORIGIN) == Bookmark("c")
