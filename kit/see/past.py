"""What the rows do not hold: labels of nodes, from the nodes topic, and evictions that have ended, from decisions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evictstream.kit.recordings.topic_reader import read_topic
from evictstream.kit.rules.selectors import SelectorError, parse_selector, selects
from evictstream.kit.see.evictions import ListedEviction, ended_eviction
from evictstream.kit.what_if.facts import NodeFacts, read_node_facts
from evictstream.models.kubernetes.resource_versions import Version, is_older
from evictstream.models.messages.decision import decode_decision
from evictstream.models.messages.unreadable import Unreadable
from evictstream.streams.errors import WrongUseError

if TYPE_CHECKING:
    from evictstream.streams.broker.follow import Start
    from evictstream.streams.settings import Settings


def read_labelled(settings: Settings, selector: str, cluster: str | None) -> set[tuple[str, str]]:
    """Read which nodes a label selector matches, as pairs of cluster and UID of the node.

    The nodes topic is read from its beginning, as far back as it reaches: a node whose labels it does not hold matches
    no selector. A hundred thousand records take about three seconds.

    Args:
        settings: which Kafka, and which service.
        selector: in the grammar of `kubectl -l`.
        cluster: of this one alone; None for all.

    Raises:
        WrongUseError: the selector cannot be read.
        BrokerError: the topic cannot be read.
    """
    try:
        requirements = parse_selector(selector)
    except SelectorError as error:
        raise WrongUseError(str(error)) from error
    known: dict[tuple[str, str], tuple[Version, NodeFacts | None]] = {}
    clusters = () if cluster is None else (cluster,)
    for batch in read_topic(settings, "nodes", since="beginning", clusters=clusters, is_stopped=lambda: False):
        for record in batch:
            if record.value is None:
                continue
            try:
                read = read_node_facts(record.value)
            except Unreadable:
                continue  # a dead letter says so
            name = record.cluster, read.uid
            if read.uid and not (name in known and is_older(read.version, known[name][0])):
                known[name] = read.version, read.facts if isinstance(read.facts, NodeFacts) else None
    return {
        name
        for name, (_, facts) in known.items()
        if facts is not None and facts.has_all_labels and selects(requirements, facts.labels)
    }


def read_ended(settings: Settings, since: Start) -> list[ListedEviction]:
    """Read which evictions have ended since an instant, the first one first.

    Raises:
        BrokerError: the topic cannot be read.
    """
    ended = []
    for batch in read_topic(settings, "decisions", since=since, clusters=(), is_stopped=lambda: False):
        for record in batch:
            if record.value is None:
                continue
            try:
                eviction = ended_eviction(decode_decision(record.value))
            except Unreadable:
                continue  # nothing of the service, which writes decisions that can be read
            if eviction is not None:
                ended.append(eviction)
    return sorted(ended, key=lambda one: one.at)
