"""The comparison of rows with what was said: what it lets pass, and what not."""

from __future__ import annotations

import json

import msgspec
import pytest

from evictstream.kit.oracle.records import MessageRecord, OutputTopic
from tests.faults.real.state import Rows, disagreements

KEY = b"c"
EVICTION = "0" * 32


def message(topic: OutputTopic, what: str, revision: int) -> MessageRecord:
    field = "action" if topic == "commands" else "decision"
    pod = {"cluster": "c", "node": "n", "podUid": "u"}
    value = {field: what, "revision": revision, "attempt": 0, "evictionId": EVICTION, **pod}
    return MessageRecord(
        topic=topic, partition=0, offset=0, append_at_us=0, key=KEY, headers={}, value=json.dumps(value).encode()
    )


def rows(revision: int) -> Rows:
    eviction = [1, "scheduled", 0, revision, 0, True, 60, "Untolerated", "k", "", None, 60, None, None, None, None]
    table = {b"eviction\0c/n\0u": msgspec.msgpack.encode(eviction), b"pod\0c/n\0u": msgspec.msgpack.encode([1])}
    return Rows({}, table)


@pytest.mark.parametrize(
    ("revision", "messages", "rules"),
    [
        pytest.param(1, [message("commands", "Schedule", 1)], [], id="as-announced"),
        pytest.param(2, [message("commands", "Schedule", 1)], ["state: other revision"], id="moved-without-a-word"),
        pytest.param(
            2,
            [message("commands", "Schedule", 1), message("decisions", "Moved", 2)],
            [],
            id="moved-to-now-and-recorded",
        ),
        pytest.param(
            1,
            [message("commands", "Schedule", 1), message("decisions", "Moved", 2)],
            ["state: other revision"],
            id="recorded-and-not-in-the-row",
        ),
        pytest.param(1, [], ["state: nothing said"], id="nothing-said"),
        pytest.param(1, [message("commands", "Cancel", 1)], ["state: cancelled but open"], id="cancelled"),
    ],
)
def test_rows_and_messages_tell_of_the_same(revision: int, messages: list[MessageRecord], rules: list[str]) -> None:
    assert [found.rule for found in disagreements(rows(revision), messages)] == rules
