"""The story on the messages page, played by the real decision code.

Records go in as the page shows them; what comes out has to be what it shows.
"""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter, deque
from typing import Any

from evictstream.models.eviction import Origin, RuleParameters, apply_pod, apply_result, fire
from evictstream.models.eviction.cluster import Cluster
from evictstream.models.eviction.step import Changes
from evictstream.models.instants import microseconds
from evictstream.models.messages.codec import encode
from evictstream.models.messages.command import EvictionCommand, decode_command
from evictstream.models.messages.decision import DecisionRecord
from evictstream.models.messages.decoding import read_node_record, read_pod_record, read_result_record
from evictstream.models.messages.events import NodeEvent, PodEvent, ResultEvent
from evictstream.models.messages.result import decode_result
from evictstream.models.messages.watch_event import decode_watch_event
from evictstream.streams.partition.overdue import open_evictions
from evictstream.streams.partitioner import partition_of
from evictstream.streams.settings import Settings
from tests.deploy.pages import Example
from tests.harness.whole_steps import apply_node

DELAY_US = 40_000  # from the feed to the log; what counts is `observedAt` all the same

SETTINGS = Settings()


class Story:
    """One node's records in, messages out, one step for each example.

    Attributes:
        sent: all commands in order, each with the changes that it came in.
        cluster: of the node; its key is that of all records.
        partition: of that key.
    """

    def __init__(self, cluster: str, node: str) -> None:
        self.sent: list[tuple[EvictionCommand, Changes]] = []
        self.cluster = Cluster(cluster)
        self.partition = partition_of(self.cluster.key, SETTINGS.partitions)
        self._aggregate = self.cluster.new_node(node)
        self._offsets: Counter[str] = Counter()
        self._rules = RuleParameters()
        self._unseen: deque[EvictionCommand] = deque()
        self._decisions: list[DecisionRecord] = []

    def tell(self, example: Example) -> Any:
        """Go on to an example of the page; return what really comes where it shows a message, else what it shows."""
        match example.words:
            case ("json", "watch-event", topic):
                self._record(topic, example.text)
            case ("json", "result"):
                self._record("results", example.text)
            case ("json", "command"):
                return self._command(example.text)
            case ("json", "decision"):
                return json.loads(encode(self._decisions[-1]))
        return json.loads(example.text)

    @property
    def is_complete(self) -> bool:
        """Whether every command that was sent has been looked at."""
        return not self._unseen

    @property
    def is_owed(self) -> bool:
        """Whether an eviction is open."""
        return bool(open_evictions(self._aggregate))

    def _record(self, topic: str, text: str) -> None:
        observed_at = (decode_result if topic == "results" else decode_watch_event)(text).observed_at
        assert observed_at is not None
        appended_us = microseconds(observed_at) + DELAY_US
        origin = Origin(f"{SETTINGS.topic_prefix}{topic}", self.partition, self._offsets[topic])
        self._offsets[topic] += 1
        if topic == "results":
            result = read_result_record(self.cluster.key, text.encode(), appended_us, origin)
            assert isinstance(result, ResultEvent)
            self._take(apply_result(self._aggregate, result, self._rules))
            return
        read = read_node_record if topic == "nodes" else read_pod_record
        event = read(self.cluster.key, text.encode(), appended_us, origin)
        if isinstance(event, NodeEvent):
            self._take(apply_node(self._aggregate, event, self._rules))
        else:
            assert isinstance(event, PodEvent)
            self._take(apply_pod(self._aggregate, event, self._rules))

    def _command(self, text: str) -> Any:
        """What no record has caused comes from the timer, which fires when the page says so."""
        if not self._unseen:
            shown = decode_command(text)
            at_us = microseconds(dt.datetime.fromisoformat(shown.issued_at))
            self._take(fire(self._aggregate, shown.pod_uid, at_us, self._rules))
        assert self._unseen, "nothing is due yet"
        return json.loads(encode(self._unseen.popleft()))

    def _take(self, changes: Changes) -> None:
        self._unseen.extend(changes.commands)
        self._decisions.extend(changes.decisions)
        self.sent.extend((command, changes) for command in changes.commands)
