"""A `Due` and the `Issued` after it in one transaction are one record that says what both would have said."""

from __future__ import annotations

import json
from typing import Any

from evictstream.models.messages.decision import decode_decision
from evictstream.streams.engine.core.outbox import Outbox
from tests.streams.worker.story import TAINT, Story

OTHER = {"key": "other", "effect": "NoExecute"}


def untolerated() -> Story:
    """A pod that has to leave at once, since second 10."""
    story = Story()
    story.node(0)
    story.pod(1, "p", None)
    story.outbox = Outbox()
    story.node(10, TAINT)
    return story


def decided(*outboxes: Outbox) -> list[dict[str, Any]]:
    return [json.loads(message.value) for outbox in outboxes for message in outbox.messages.get("decisions", ())]


def kinds(*outboxes: Outbox) -> list[str]:
    return [found["decision"] for found in decided(*outboxes)]


def test_due_and_issued_in_one_transaction_are_one_record() -> None:
    story = untolerated()
    story.fire(10.5)
    (found,) = decided(story.outbox)
    assert (found["decision"], found["attempt"], found["cause"]["kind"]) == ("Issued", 1, "Timer")
    decode_decision(json.dumps(found))


def test_the_one_record_says_all_that_both_say() -> None:
    apart, together = untolerated(), untolerated()
    first = apart.outbox.take()
    for story in (apart, together):
        story.fire(10.5)
    (due,), (issued,), (joined,) = decided(first), decided(apart.outbox), decided(together.outbox)
    assert joined.pop("dueCause") == due["cause"]
    issued.pop("previous")  # the eviction that was due, which had not been there before
    assert joined == issued
    told_by_kind = {"decision", "attempt", "cause"}
    assert {name for name in due if due[name] != joined.get(name)} == told_by_kind


def test_a_record_that_was_taken_is_not_replaced() -> None:
    story = untolerated()
    first = story.outbox.take()
    story.fire(10.5)
    assert kinds(first, story.outbox) == ["Due", "Issued"]
    assert "dueCause" not in decided(story.outbox)[0]


def test_another_reason_in_between_keeps_both_records() -> None:
    story = untolerated()
    story.node(10, OTHER, TAINT)
    story.fire(10.5)
    assert [found["taint"]["key"] for found in decided(story.outbox)] == ["lab", "other"]
    assert kinds(story.outbox) == ["Due", "Issued"]


def test_due_and_cancelled_in_one_transaction_are_two_records() -> None:
    story = untolerated()
    story.node(10.2)
    story.fire(10.5)
    assert kinds(story.outbox) == ["Due", "Cancelled"]


def test_counts_are_of_decisions_not_of_records() -> None:
    story = untolerated()
    story.fire(10.5)
    assert {kind: number for (kind, _), number in story.config.counters.decisions.items()} == {"Due": 1, "Issued": 1}


def test_bytes_and_entries_are_those_of_what_is_written() -> None:
    story = untolerated()
    entries = story.outbox.entries
    story.fire(10.5)
    messages = [message for each in story.outbox.messages.values() for message in each]
    rows = sum(len(key) + len(value or b"") for key, value in story.outbox.rows.items())
    assert story.outbox.entries == entries + 2  # a command, and the row of the eviction once more
    least = rows + sum(len(message.key) + len(message.value) for message in messages)
    assert least <= story.outbox.size_bytes < least + rows, "a row that was written twice counts twice"


def test_drafts_that_were_put_aside_keep_their_place() -> None:
    outbox = Outbox()
    outbox.aside().send_draft("e", None, "t", b"k", b"draft", [])
    outbox.send("t", b"k", b"first", [])
    outbox.end_step()
    outbox.replace("e", b"final")
    assert [message.value for message in outbox.messages["t"]] == [b"first", b"final"]
    assert not outbox.drafts


def test_a_transaction_takes_nothing_that_is_put_aside() -> None:
    outbox = Outbox()
    outbox.aside().put(b"half", b"row")
    outbox.put(b"fired", b"row")
    assert set(outbox.take().rows) == {b"fired"}
    assert not outbox
    outbox.end_step()
    assert (set(outbox.rows), outbox.entries, outbox.is_in_step) == ({b"half"}, 1, False)


def test_messages_of_a_kind_share_their_headers() -> None:
    story = untolerated()
    story.pod(10.1, "q", None)
    story.fire(10.5)
    for messages in story.outbox.messages.values():
        assert len({id(message.headers) for message in messages}) == 1
        assert len(messages) == 2
