"""A later version may add a field to any message of the same `apiVersion`: readers that run already pass over it."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Literal

import jsonschema  # type: ignore[import-untyped]
import msgspec
import pytest

from evictstream.models.eviction import Eviction, EvictionState, Origin, Outcome
from evictstream.models.eviction.pod_rows import eviction_value, read_eviction_value
from evictstream.models.eviction.state import Due
from evictstream.models.execution.command_log import CommandAnswer
from evictstream.models.kubernetes import Taint
from evictstream.models.messages.codec import encode
from evictstream.models.messages.command import EvictionCommand, decode_command
from evictstream.models.messages.decision import decode_decision
from evictstream.models.messages.decoding import read_node_record, read_pod_record, read_result_record
from evictstream.models.messages.result import decode_result, read_outcome
from evictstream.models.messages.schemas import schema_texts
from evictstream.models.messages.signals import Bookmark
from evictstream.models.messages.unreadable import Unreadable
from evictstream.models.messages.vocabulary import Verdict
from evictstream.models.messages.watch_event import decode_watch_event
from evictstream.streams.executor.results import result_text
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
DUE = Due(
    deadline_us=APPEND_US,
    verdict=Verdict.UNTOLERATED,
    taint=Taint("a", "", "NoExecute"),
    toleration=None,
    window_start_us=APPEND_US,
)
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


class ResultAsBeforeBrakes(msgspec.Struct, rename="camel", kw_only=True):
    """What a worker that knows no brakes reads of a result, and a person's program of a decision."""

    outcome: Literal["Accepted", "Succeeded", "Gone", "Failed", "Obsolete", "Refused", "Observed"]
    eviction_id: str
    attempt: int


def test_readers_before_brakes_wait_for_what_is_held() -> None:
    """In a result, in a decision, and in the row of an eviction."""
    result = result_text(STORY.commands[-1], CommandAnswer(Outcome.HELD, "the network flaps", "b-1"))
    assert (read := decode_result(result)).held_by == "b-1"
    assert read_outcome(read) is Outcome.HELD
    decision = msgspec.structs.replace(STORY.decisions[-1], outcome=Outcome.ACCEPTED, held_by="b-1")
    assert decode_decision(encode(decision)).result is Outcome.HELD
    for text in (result, encode(decision)):
        assert msgspec.json.decode(text, type=ResultAsBeforeBrakes).outcome == "Accepted"
    eviction = Eviction(state=EvictionState.ISSUED, ordinal=0, due=DUE, outcome=Outcome.HELD, held_by="b-1")
    row = eviction_value(eviction)
    assert read_eviction_value(b"e", row) == eviction
    *fields, _ = msgspec.msgpack.decode(row)  # the last one is of a later version
    assert fields[-1] == "b-1"
    before = read_eviction_value(b"e", msgspec.msgpack.encode(fields[:-1]))
    assert before == msgspec.structs.replace(eviction, outcome=Outcome.ACCEPTED, held_by=None)


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
