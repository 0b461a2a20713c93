"""Judge a run."""

from __future__ import annotations

import dataclasses
import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence

from evictstream.streams.oracle.commands import SeenCommand, check_names, check_stream, read_command
from evictstream.streams.oracle.dead_letters import Origin, check_letters
from evictstream.streams.oracle.decision_records import check_decisions
from evictstream.streams.oracle.feed_silence import FeedSilence
from evictstream.streams.oracle.histories import PodHistories, node_history, pod_histories
from evictstream.streams.oracle.limits import OracleLimits, Promptness
from evictstream.streams.oracle.obligations import PodLog, RunFacts
from evictstream.streams.oracle.pod_search import PodSearch
from evictstream.streams.oracle.reading import Said, UnreadableRecordError, place, read
from evictstream.streams.oracle.records import InputRecord, MessageRecord, Violation

MOST_OVERTAKEN = 6  # of one node in one run; more were never seen


def judge(
    inputs: Sequence[InputRecord],
    messages: Sequence[MessageRecord],
    *,
    ended_at_us: int,
    partitions: int,
    limits: OracleLimits,
    early_us: int = 5_000,
    may_forget: bool = False,
    promptness: Promptness | None = None,
) -> list[Violation]:
    """Say what is wrong.

    Args:
        inputs: everything that was appended to the three inputs, each partition's records by offset.
        messages: everything that a `read_committed` reader found, each partition's records by offset.
        ended_at_us: when the run ended, quiet; microseconds since 1970 by the broker's clock.
        partitions: of each topic.
        limits: the settings of the service.
        early_us: how much before its deadline an eviction may be issued by the broker's clock: what the clocks of
            workers may be ahead, with the clock gate open.
        may_forget: whether a partition was taken over again, and what changed nothing may so have been forgotten.
        promptness: how soon everything had to happen; None asks only that it happened by the end.
    """
    said, unreadable = read_all(inputs, limits, partitions)
    commands = [read_command(message) for message in messages if message.topic == "commands"]
    feeds = FeedSilence(said, limits)
    found = [*check_stream(commands, partitions), *check_names(messages), *feeds.check(commands)]
    found += check_decisions(commands, messages)
    found += check_letters(unreadable, messages)
    for (cluster, node), of_node in by_node(said, commands).items():
        nodes = node_history(of_node.of_kind("Node"), limits)
        histories = pod_histories(of_node.of_kind("Pod"))
        for uid in {command.pod_uid for command in of_node.commands} - set(histories.pods):
            text = "commands about a pod that was never there"
            found.append(Violation("unfounded", text, cluster=cluster, node=node, pod_uid=uid))
        partition = place(f"{cluster}/{node}".encode(), partitions)
        facts = RunFacts(
            limits=limits,
            ended_at_us=ended_at_us,
            early_us=early_us,
            silent_at_end=feeds.is_silent(cluster, partition, ended_at_us),
            promptness=promptness,
        )
        for uid in histories.pods:
            log = PodLog(nodes, histories.pods[uid].states, of_node.results_of(uid), of_node.commands_about(uid))
            wrong = PodSearch(log, facts).dead_end()
            if wrong is None or (may_forget and _is_forgotten(of_node, uid, log, histories, facts)):
                continue
            found.append(Violation(wrong.rule, wrong.text, cluster=cluster, node=node, pod_uid=uid))
    return found


def _is_forgotten(of_node: _OfNode, uid: str, log: PodLog, histories: PodHistories, facts: RunFacts) -> bool:
    """Whether what was said about a pod is right if some of what was overtaken was taken for new."""
    for taken in _some_of(histories.overtaken):
        pods = pod_histories(of_node.of_kind("Pod"), taken).pods
        if uid in pods and PodSearch(dataclasses.replace(log, pods=pods[uid].states), facts).dead_end() is None:
            return True
    return False


def _some_of(offsets: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Give each choice of one or more; no more than the first ones can be chosen from, for they double the work."""
    first = offsets[:MOST_OVERTAKEN]
    for number in range(1, len(first) + 1):
        yield from itertools.combinations(first, number)


def read_all(
    inputs: Sequence[InputRecord], limits: OracleLimits, partitions: int
) -> tuple[list[Said], dict[Origin, InputRecord]]:
    """Give what records say, and those that say nothing."""
    said: list[Said] = []
    unreadable: dict[Origin, InputRecord] = {}
    for record in inputs:
        try:
            said.append(read(record, limits, partitions))
        except UnreadableRecordError:
            unreadable[record.topic, record.partition, record.offset] = record
    return said, unreadable


class _OfNode:
    """Everything under one key."""

    def __init__(self) -> None:
        self.said: list[Said] = []
        self.commands: list[SeenCommand] = []

    def of_kind(self, kind: str) -> list[Said]:
        return [one for one in self.said if one.kind == kind]

    def commands_about(self, uid: str) -> list[SeenCommand]:
        return [command for command in self.commands if command.pod_uid == uid]

    def results_of(self, uid: str) -> list[Said]:
        """Results of attempts that were really made; all others change nothing."""
        made = {(one.eviction_id, one.attempt) for one in self.commands_about(uid) if one.action == "Evict"}
        found = [one for one in self.of_kind("Result") if one.content["podUid"] == uid]
        return [one for one in found if (one.content["evictionId"], one.content["attempt"]) in made]


def by_node(said: Sequence[Said], commands: Sequence[SeenCommand]) -> dict[tuple[str, str], _OfNode]:
    """Put together what is about one node, by cluster and name."""
    nodes: dict[tuple[str, str], _OfNode] = defaultdict(_OfNode)
    for one in said:
        if one.kind in ("Node", "Pod", "Result"):
            nodes[one.cluster, one.node].said.append(one)
    for command in commands:
        nodes[command.cluster, command.node].commands.append(command)
    return nodes
