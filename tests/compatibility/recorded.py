"""What a release leaves in Kafka, recorded from a short story: `python -m tests.compatibility.recorded VERSION`.

A file is made once, when its version is released, and never again: it stands for what lies in the topics of those who
upgrade. Each line is a record; the last ones say what has to follow from the rows alone.
"""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path
from typing import Any, Final

from tests.harness.plans import taken_over
from tests.streams.worker.story import NOON_US, TAINT, Story

FOLDER: Final = Path(__file__).parent
EPOCH: Final = 1
LATER_SECONDS: Final = (60, 61, 90, 300, 1_000)
"""When the next owner fires: just before, at and long after what is due."""


class ReleaseStory(Story):
    """A story that keeps its records, and has one of each kind."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[dict[str, Any]] = []

    def raw(self, at: float, topic: str, value: bytes, key: bytes = b"lab") -> None:
        super().raw(at, topic, value, key)
        self.records.append({"topic": topic, "at": at, "key": key.decode(), "value": text_of(value)})

    def event(self, at: float, topic: str, event_type: str, obj: dict[str, Any]) -> None:
        value = {"cluster": "lab", "type": event_type, "epoch": EPOCH, "object": obj}
        self.raw(at, topic, json.dumps(value).encode())

    def heartbeat(self, at: float) -> None:
        named = {"cluster": "lab", "type": "HEARTBEAT", "clusterUid": "kube-system-uid", "epoch": EPOCH}
        for topic in ("nodes", "pods"):
            self.raw(at, topic, json.dumps(named).encode())

    def tell(self) -> None:
        """Leave evictions in each state, and rows and messages of each kind."""
        self.heartbeat(0)
        self.node(1)
        for name, seconds in {"soon": 60, "late": 600, "never": None, "gone": 60, "saved": 5}.items():
            self.pod(2, name, seconds)
        self.pod(2, "failing", None)
        self.node(3, TAINT)
        self.fire(4)
        self.result(5, "Failed")
        self.pod(6, "gone", 60, "DELETED")
        self.pod(7, "saved", 5, "MODIFIED", deletionTimestamp="2026-11-21T12:00:00Z")
        self.raw(8, "nodes", b"{not json")
        self.pod(9, "accepted", None)
        self.fire(9)
        self.result(10, "Accepted")
        self.pod(11, "done", None)
        self.fire(11)
        self.result(12, "Succeeded")
        report = {
            "apiVersion": "evictstream.io/v1",
            "kind": "ExecutorReport",
            "cluster": "lab",
            "executor": "e-1",
            "waiting": 1,
            "readTo": "2026-11-21T12:00:09Z",
        }
        self.raw(13, "results", json.dumps(report).encode())


def text_of(value: bytes | None) -> str | None:
    """Write bytes as JSON holds them."""
    return None if value is None else base64.b64encode(value).decode()


def bytes_of(text: str) -> bytes:
    """Read what `text_of` wrote."""
    return base64.b64decode(text)


def later(rows: dict[bytes, bytes]) -> list[dict[str, Any]]:
    """Return the commands of the next owner, which has the rows and hears from the feed before each look."""
    story = ReleaseStory()
    story.now_us = NOON_US + 20_000_000
    story.logic, story.outbox = taken_over(story.config, rows)
    for at in LATER_SECONDS:
        story.heartbeat(at)
        story.fire(at)
    return [json.loads(command.value) for command in story.outbox.messages.get("commands", [])]


def record() -> list[dict[str, Any]]:
    """Tell the story and return the lines of a file."""
    story = ReleaseStory()
    story.tell()
    rows = {key: value for key, value in story.outbox.rows.items() if value is not None}
    lines: list[dict[str, Any]] = [{"what": "input", **each} for each in story.records]
    lines += [{"what": "row", "key": text_of(key), "value": text_of(value)} for key, value in rows.items()]
    lines += [
        {
            "what": "message",
            "topic": topic,
            "value": text_of(message.value),
            "headers": [[name, text_of(content)] for name, content in message.headers],
        }
        for topic, messages in story.outbox.messages.items()
        for message in messages
    ]
    return [*lines, *({"what": "later", "command": command} for command in later(rows))]


if __name__ == "__main__":
    (version,) = sys.argv[1:]
    with (FOLDER / f"{version}.jsonl").open("x", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in record())
