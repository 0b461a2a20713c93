"""Judge a run."""

from __future__ import annotations

import dataclasses
import itertools
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from evictstream.kit.oracle.cluster_views import cluster_views, zone_turns
from evictstream.kit.oracle.commands import SeenCommand, check_names, check_stream, read_command
from evictstream.kit.oracle.dead_letters import RecordPlace, check_letters
from evictstream.kit.oracle.decision_records import check_decisions
from evictstream.kit.oracle.epochs import EpochReading, Epochs
from evictstream.kit.oracle.feed_silence import FeedSilence
from evictstream.kit.oracle.flying import check_flying
from evictstream.kit.oracle.guard_counts import CountedCluster
from evictstream.kit.oracle.guard_records import guard_revisions, seen_incidents
from evictstream.kit.oracle.guards import NO_GUARDS, GuardLog, PodGuards
from evictstream.kit.oracle.histories import HeardPod, PodHistories, node_history, pod_histories
from evictstream.kit.oracle.incidents import check_incidents
from evictstream.kit.oracle.leaving import GuardedPods, NodePods
from evictstream.kit.oracle.limits import OracleLimits, Promptness
from evictstream.kit.oracle.obligations import PodLog, RunFacts
from evictstream.kit.oracle.outages import check_outages
from evictstream.kit.oracle.pod_search import DeadEnd, PodSearch
from evictstream.kit.oracle.rates import check_rates
from evictstream.kit.oracle.readiness import NO_SPELLS, ReadySpells
from evictstream.kit.oracle.reading import Statement, UnreadableRecordError, read
from evictstream.kit.oracle.records import InputRecord, KeyedRecord, MessageRecord, Violation
from evictstream.kit.oracle.standing_brakes import PodBrakes, brake_spells

NEVER_SEEN = (HeardPod(),)
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
    brakes: Sequence[KeyedRecord] = (),
    policies: Sequence[KeyedRecord] = (),
    incidents: Sequence[KeyedRecord] = (),
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
        brakes: everything that was appended to the topic of the brakes.
        policies: the records of policies that guard; of them, guards alone are judged.
        incidents: everything that a `read_committed` reader found in the topic of incidents.
    """
    spells = brake_spells(brakes)
    statements, unreadable = read_all(inputs, limits, partitions)
    commands = [read_command(message) for message in messages if message.topic == "commands"]
    epochs = Epochs(statements)
    feeds = FeedSilence(epochs.counting, limits)
    violations = [*check_stream(commands, partitions), *check_names(messages), *feeds.check(commands)]
    violations += check_decisions(commands, messages)
    violations += check_rates(commands, spells, early_us=early_us)
    violations += check_flying(commands, epochs.counting, spells, early_us=early_us)
    violations += check_letters(unreadable, messages)
    nodes = by_node(epochs.counting, commands)
    violations += check_outages(commands, _of_nodes(nodes), spells, limits)
    guards = NO_GUARDS
    if policies:
        clusters = _guarded_clusters(nodes, limits, may_forget=may_forget)
        guards = GuardLog(
            guard_revisions(policies),
            seen_incidents(incidents),
            clusters,
            view_age_us=limits.lag_us + limits.clock_skew_us,
            early_us=early_us,
        )
    looks = not any(of_key[-1].is_unreadable for of_key in spells)
    violations += check_incidents(guards, ended_at_us=ended_at_us, slack_us=limits.slack_us, looks=looks)
    for (cluster, node), of_node in nodes.items():
        facts = RunFacts(
            limits=limits,
            ended_at_us=ended_at_us,
            early_us=early_us,
            silent_at_end=feeds.is_silent(cluster, ended_at_us),
            promptness=promptness,
            cluster=cluster,
            brakes=spells,
            guards=guards,
        )
        first = _dead_ends(of_node, (of_node.nodes, of_node.pods), facts, may_forget=may_forget)
        if first:
            others = epochs.other_readings(cluster, of_node.nodes, of_node.pods)
            wrong = _in_every_reading(first, of_node, others, facts, may_forget=may_forget)
            violations += (Violation(end.rule, end.text, cluster=cluster, node=node, pod_uid=uid) for uid, end in wrong)
    return violations


def _guarded_clusters(
    nodes: Mapping[tuple[str, str], OfNode], limits: OracleLimits, *, may_forget: bool
) -> dict[str, CountedCluster]:
    found: dict[str, CountedCluster] = {}
    for cluster in dict.fromkeys(cluster for cluster, _ in nodes):
        of_cluster = {name: of_node for (where, name), of_node in nodes.items() if where == cluster}
        pods: dict[str, NodePods] = {}
        for name, of_node in of_cluster.items():
            histories = pod_histories(name, of_node.pods)
            pods[name] = NodePods(
                node_history(of_node.nodes, limits, of_node.ready),
                {uid: pod.states for uid, pod in histories.pods.items()},
                of_node.commands,
                is_unsure=may_forget and bool(histories.overtaken),
            )
        views = cluster_views(
            {name: one.states for name, one in pods.items()},
            {name: zone_turns(of_node.nodes) for name, of_node in of_cluster.items()},
        )
        found[cluster] = CountedCluster(views, GuardedPods(pods, limits.is_built_in_on(cluster)))
    return found


def _of_nodes(nodes: Mapping[tuple[str, str], OfNode]) -> dict[str, dict[str, list[Statement]]]:
    """Give what was said of nodes, by cluster and name."""
    found: defaultdict[str, dict[str, list[Statement]]] = defaultdict(dict)
    for (cluster, name), of_node in nodes.items():
        found[cluster][name] = of_node.nodes
    return found


def _in_every_reading(
    wrong: dict[str, DeadEnd], of_node: OfNode, others: Iterator[EpochReading], facts: RunFacts, *, may_forget: bool
) -> Iterator[tuple[str, DeadEnd]]:
    """Give the pods of a node that no reading explains, with the violation in the first reading."""
    unexplained = set(wrong)
    for reading in others:
        unexplained &= set(_dead_ends(of_node, reading, facts, may_forget=may_forget, only=unexplained))
        if not unexplained:
            break
    yield from ((uid, end) for uid, end in wrong.items() if uid in unexplained)


def _dead_ends(
    of_node: OfNode, reading: EpochReading, facts: RunFacts, *, may_forget: bool, only: Collection[str] | None = None
) -> dict[str, DeadEnd]:
    """Find the violation of each pod of a node, or of the given ones."""
    nodes = node_history(reading[0], facts.limits, of_node.ready)
    histories = pod_histories(of_node.name, reading[1])
    dead_ends: dict[str, DeadEnd] = {}
    commanded = (command.pod_uid for command in of_node.commands)
    for uid in dict.fromkeys((*histories.pods, *commanded)) if only is None else only:
        states = histories.pods[uid].states if uid in histories.pods else NEVER_SEEN
        namespace = histories.pods[uid].namespace if uid in histories.pods else ""
        braked = PodBrakes(facts.cluster, namespace, uid, facts.brakes)
        guarded = PodGuards(facts.guards, facts.cluster, namespace, uid, node=of_node.name)
        log = PodLog(
            nodes,
            states,
            of_node.results_of(uid),
            of_node.commands_about(uid),
            brakes=braked,
            guards=guarded,
        )
        dead_end = PodSearch(log, facts).dead_end()
        if dead_end is not None and not (
            may_forget and _is_forgotten(of_node.name, reading[1], uid, log, histories, facts)
        ):
            dead_ends[uid] = dead_end
    return dead_ends


def _is_forgotten(
    node: str, statements: Sequence[Statement], uid: str, log: PodLog, histories: PodHistories, facts: RunFacts
) -> bool:
    """Tell whether the commands about a pod are right if some overtaken records were taken as new."""
    for taken in _some_of(histories.overtaken):
        pods = pod_histories(node, statements, taken).pods
        if uid in pods and PodSearch(dataclasses.replace(log, pods=pods[uid].states), facts).dead_end() is None:
            return True
    return False


def _some_of(offsets: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Give each choice of one or more; only among the first ones, since each doubles the work."""
    first = offsets[:MOST_OVERTAKEN]
    for number in range(1, len(first) + 1):
        yield from itertools.combinations(first, number)


def read_all(
    inputs: Sequence[InputRecord], limits: OracleLimits, partitions: int
) -> tuple[list[Statement], dict[RecordPlace, InputRecord]]:
    """Give the statements, and the records that become dead letters."""
    statements: list[Statement] = []
    unreadable: dict[RecordPlace, InputRecord] = {}
    for record in inputs:
        place = record.topic, record.partition, record.offset
        try:
            statement = read(record, limits, partitions)
        except UnreadableRecordError:
            unreadable[place] = record
            continue
        statements.append(statement)
        if statement.is_beyond:
            unreadable[place] = record
    return statements, unreadable


class OfNode:
    """All records about one node.

    Attributes:
        name: the node's.
        nodes: statements of the nodes topic, with the parts of listings about this node.
        pods: the same of the pods topic; also of all nodes with which it shares the name of a pod.
        results: results of executors, and reports of their queues.
        commands: commands to them.
        ready: when nodes of its cluster were Ready.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.nodes: list[Statement] = []
        self.pods: list[Statement] = []
        self.results: list[Statement] = []
        self.commands: list[SeenCommand] = []
        self.ready = NO_SPELLS

    def take(self, statement: Statement) -> None:
        """Add the next statement."""
        of_topic = {"nodes": self.nodes, "pods": self.pods, "results": self.results}
        of_topic[statement.record.topic].append(statement)

    def commands_about(self, uid: str) -> list[SeenCommand]:
        """Commands about one pod."""
        return [command for command in self.commands if command.pod_uid == uid]

    def results_of(self, uid: str) -> list[Statement]:
        """Results of attempts that were really made, and reports of queues; all others change nothing."""
        made = {
            (command.eviction_id, command.attempt) for command in self.commands_about(uid) if command.action == "Evict"
        }
        return [
            said
            for said in self.results
            if (said.kind == "Report" and made)
            or (
                said.kind == "Result"
                and said.content["podUid"] == uid
                and (said.content["evictionId"], said.content["attempt"]) in made
            )
        ]


def by_node(statements: Sequence[Statement], commands: Sequence[SeenCommand]) -> dict[tuple[str, str], OfNode]:
    """Group statements and commands by cluster and node; a listing is about its range, a report about all nodes."""
    places = dict.fromkeys((statement.cluster, statement.node) for statement in statements if statement.node)
    places |= dict.fromkeys((command.cluster, command.node) for command in commands)
    nodes = {(cluster, node): OfNode(node) for cluster, node in places}
    names: dict[str, list[str]] = defaultdict(list)
    for cluster, node in places:
        names[cluster].append(node)
    sharing = _sharing_names(statements)
    for statement in statements:
        cluster, is_pods = statement.cluster, statement.record.topic == "pods"
        for part in _by_its_nodes(statement, names[cluster]):
            alone = {part.node}
            for node in sharing.get((cluster, part.node), alone) if is_pods else alone:
                nodes[cluster, node].take(part)
    for command in commands:
        nodes[command.cluster, command.node].commands.append(command)
    for cluster, of_cluster in names.items():
        ready = ReadySpells(nodes[cluster, name].nodes for name in of_cluster)
        for name in of_cluster:
            nodes[cluster, name].ready = ready
    return nodes


def _by_its_nodes(statement: Statement, names: Iterable[str]) -> Iterator[Statement]:
    if statement.kind == "LISTED":
        yield from filter(None, map(statement.about, names))
    elif statement.kind == "Report":
        yield from (dataclasses.replace(statement, node=name) for name in names)
    elif statement.node:
        yield statement


def _sharing_names(statements: Sequence[Statement]) -> dict[tuple[str, str], set[str]]:
    """Give for each node with pods the nodes that have had a pod of the same name, and so on; itself among them."""
    sharing: dict[tuple[str, str], set[str]] = {}
    first: dict[tuple[str, str, str], str] = {}
    for statement in statements:
        if statement.kind != "Pod":
            continue
        cluster, node, meta = statement.cluster, statement.node, statement.content["metadata"]
        own = sharing.setdefault((cluster, node), {node})
        others = sharing[cluster, first.setdefault((cluster, meta["namespace"], meta["name"]), node)]
        if others is not own:
            own |= others
            sharing.update(((cluster, other), own) for other in others)
    return sharing
