"""Whether the rows of a service that has stopped in order agree with what it said on its topics.

The rows are read here without the service's own code, from their documented layout: key
`<what>\0<cluster>/<node>\0<uid>`, value a msgpack array (see `models/eviction/node_rows.py` and `pod_rows.py`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from evictstream.kit.oracle import Violation
from evictstream.kit.oracle.records import MessageRecord
from evictstream.streams.settings import Settings
from tests.faults.real.reading import new_consumer, read_all

POSITIONS_KEY = b"\x00positions"
REVISION, ATTEMPT, ANNOUNCED = 3, 4, 5  # places in an eviction's row


@dataclass(frozen=True, slots=True)
class Rows:
    """The changelog, compacted.

    Attributes:
        positions: by partition, next offset by topic.
        table: value by key, what was deleted left out.
    """

    positions: dict[int, dict[str, int]]
    table: dict[bytes, bytes]

    def of(self, kind: str) -> dict[tuple[str, str], list[Any]]:
        """Rows of a kind by `<cluster>/<node>` and UID."""
        found = {}
        for key, value in self.table.items():
            what, _, rest = key.decode().partition("\0")
            if what == kind:
                node, _, uid = rest.partition("\0")
                found[node, uid] = msgspec.msgpack.decode(value)
        return found


def read_rows(settings: Settings) -> Rows:
    """Read the changelog of a service from start to end."""
    rows = Rows({}, {})
    for record in read_all(settings, [settings.changelog_topic])[settings.changelog_topic]:
        if record.key == POSITIONS_KEY:
            rows.positions[record.partition] = json.loads(record.value)
        elif record.value is None:
            rows.table.pop(record.key, None)
        else:
            rows.table[record.key] = record.value
    return rows


def check_state(settings: Settings, rows: Rows, messages: Sequence[MessageRecord]) -> list[Violation]:
    """Compare rows with the log, after all workers have stopped in order."""
    return [*unread(settings, rows), *_strays(rows), *disagreements(rows, messages)]


def unread(settings: Settings, rows: Rows) -> Iterator[Violation]:
    """Say where the rows do not say that all input was read."""
    consumer = new_consumer(settings, settings.input_topics)
    ends = consumer.end_offsets(consumer.assignment())
    consumer.close()
    for partition, end in ends.items():
        position = rows.positions.get(partition.partition, {}).get(partition.topic, 0)
        if position != end:
            text = f"{partition.topic}-{partition.partition} is read up to {position} of {end}"
            yield Violation("state: positions", text)


def _strays(rows: Rows) -> Iterator[Violation]:
    """An eviction's row goes with its pod's."""
    pods = rows.of("pod")
    for node, uid in rows.of("eviction"):
        if (node, uid) not in pods:
            yield _about("state: eviction without pod", node, uid, "its pod has no row")


def disagreements(rows: Rows, messages: Sequence[MessageRecord]) -> Iterator[Violation]:
    """The newest command about a pod and its eviction's row tell of the same.

    A move to what is due at once is recorded and not announced (semantics.md 12.6): until the timer issues it, which a
    silent feed or another gate may put off beyond the end of the run, its decision tells the revision.
    """
    newest: dict[tuple[str, str], dict[str, Any]] = {}
    moved: dict[str, int] = {}
    # A pod that has left may be seen once more by a late feed; its eviction is over all the same.
    completed = {
        json.loads(message.value)["evictionId"]
        for message in messages
        if message.topic == "decisions" and b'"Completed"' in message.value
    }
    for message in messages:
        if message.topic == "commands":
            command = json.loads(message.value)
            newest[f"{command['cluster']}/{command['node']}", command["podUid"]] = command
        elif message.topic == "decisions" and b'"Moved"' in message.value:
            decision = json.loads(message.value)
            moved[decision["evictionId"]] = max(decision["revision"], moved.get(decision["evictionId"], 0))
    evictions, pods = rows.of("eviction"), rows.of("pod")
    for (node, uid), row in evictions.items():
        wrong = _differs(row, newest.get((node, uid)), moved)
        if wrong is not None:
            yield _about(wrong, node, uid, f"{row} after {newest.get((node, uid))}")
    for (node, uid), command in newest.items():
        is_over = command["action"] == "Cancel" or command["evictionId"] in completed
        if not is_over and (node, uid) in pods and (node, uid) not in evictions:
            yield _about("state: forgotten", node, uid, f"no eviction after {command}")


def _differs(row: list[Any], command: dict[str, Any] | None, moved: Mapping[str, int]) -> str | None:
    is_said = row[ANNOUNCED] or row[ATTEMPT]
    if command is None or command["action"] == "Cancel":
        if is_said:
            return "state: nothing said" if command is None else "state: cancelled but open"
    elif row[ATTEMPT] != command["attempt"]:
        return "state: other attempt"
    elif command["action"] == "Schedule" and row[REVISION] != max(
        command["revision"], moved.get(command["evictionId"], 0)
    ):
        return "state: other revision"
    return None


def _about(rule: str, node: str, uid: str, text: str) -> Violation:
    cluster, _, name = node.partition("/")
    return Violation(rule, text, cluster=cluster, node=name, pod_uid=uid)
