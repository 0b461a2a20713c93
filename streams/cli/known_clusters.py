"""The rows of each cluster by partition: read with progress, shown as sentences and as JSON."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import TYPE_CHECKING, TypedDict

from evictstream.streams.cli.progress import ProgressLine
from evictstream.streams.errors import TopicsDifferError

if TYPE_CHECKING:
    from evictstream.streams.settings import Settings
    from evictstream.streams.worker.stored_rows import ClusterRows, PartitionRows

NAMES_LISTED = 20
"""Most clusters that a message lists; a service may have hundreds. `-o json` has all."""


class GapJson(TypedDict):
    """A gap as JSON: its partition, when it was found, records lost by topic, topics not listed again by cluster."""

    partition: int
    foundAt: str
    lost: dict[str, int]
    unlisted: dict[str, list[str]]


class KnownClusters:
    """What all partitions keep of their clusters."""

    def __init__(self, rows: dict[int, PartitionRows]) -> None:
        self._rows = rows

    @property
    def partitions(self) -> tuple[int, ...]:
        """Their numbers."""
        return tuple(self._rows)

    @property
    def names(self) -> list[str]:
        """The clusters with nodes, pods, evictions or heartbeats in a partition."""
        return sorted(
            {name for rows in self._rows.values() for name, found in rows.clusters.items() if found.is_anything}
        )

    def gaps(self) -> dict[int, GapJson]:
        """Gaps by partition, as JSON."""
        from evictstream.models.instants import instant_text

        return {
            number: {
                "partition": number,
                "foundAt": instant_text(rows.gap.found_at_us),
                "lost": dict(sorted(rows.gap.lost.items())),
                "unlisted": {name: sorted(topics) for name, topics in sorted(rows.gap.unlisted.items())},
            }
            for number, rows in self._rows.items()
            if rows.gap is not None
        }

    def is_known(self, cluster: str) -> bool:
        """Whether the cluster is among `names`, or only some partitions have forgotten it."""
        of_it = self._of(cluster)
        forgotten = sum(found.state.forgotten_at_us > 0 for found in of_it.values())
        return any(found.is_anything for found in of_it.values()) or 0 < forgotten < len(self._rows)

    def of_cluster(self, cluster: str) -> dict[str, object]:
        """Return the counts of a cluster's rows by partition, as JSON."""
        of_it = self._of(cluster)
        known = [
            {"partition": number, "nodes": found.nodes, "pods": found.pods, "openEvictions": found.open_evictions}
            for number, found in of_it.items()
            if found.is_anything
        ]
        return {"known": known, "heartbeatAt": self._heartbeat(of_it), "forgottenAt": self._forgotten(of_it)}

    def sentence(self, cluster: str) -> str:
        """Describe a cluster in one sentence: nodes, pods, open evictions, partitions, newest heartbeat."""
        of_it = {number: found for number, found in self._of(cluster).items() if found.is_anything}
        nodes, pods, evictions = (
            sum(getattr(found, what) for found in of_it.values()) for what in ("nodes", "pods", "open_evictions")
        )
        where = f"in partitions {', '.join(map(str, of_it))}" if of_it else "in any partition"
        heartbeat = self._heartbeat(of_it)
        heard = "" if heartbeat is None else f"; last heartbeat at {heartbeat}"
        return f"{cluster}: {nodes} nodes, {pods} pods and {evictions} open evictions are known {where}{heard}"

    def nothing_known(self, cluster: str) -> Iterator[str]:
        """Yield lines about an unknown cluster: when it was forgotten, similar names, and the known clusters."""
        forgotten = self._forgotten(self._of(cluster))
        since = "" if forgotten is None else f": forgotten at {forgotten}"
        yield f"nothing is known of {cluster}{since}; nothing was sent"
        names = self.names
        near = difflib.get_close_matches(cluster, names, n=3, cutoff=0.5)
        if near and forgotten is None:
            yield f"did you mean {' or '.join(near)}?"
        more = f" and {len(names) - NAMES_LISTED} more" if len(names) > NAMES_LISTED else ""
        yield f"known clusters: {', '.join(names[:NAMES_LISTED]) or 'none'}{more}"

    def _of(self, cluster: str) -> dict[int, ClusterRows]:
        return {number: rows.clusters[cluster] for number, rows in self._rows.items() if cluster in rows.clusters}

    @staticmethod
    def _heartbeat(of_it: dict[int, ClusterRows]) -> str | None:
        return _newest(
            max(found.state.nodes_heartbeat_at_us, found.state.pods_heartbeat_at_us) for found in of_it.values()
        )

    @staticmethod
    def _forgotten(of_it: dict[int, ClusterRows]) -> str | None:
        return _newest(found.state.forgotten_at_us for found in of_it.values())


def _newest(instants_us: Iterator[int]) -> str | None:
    from evictstream.models.instants import instant_text

    newest_us = max(instants_us, default=0)
    return instant_text(newest_us) if newest_us else None


def read_with_progress(settings: Settings, partitions: tuple[int, ...]) -> KnownClusters:
    """Read the rows of all clusters; a terminal shows the count so far.

    Raises:
        TopicsDifferError: the changelog is missing, or has another count of partitions than the inputs.
        BrokerUnreachableError: Kafka did not answer.
        FoundProblemError: another version wrote the rows.
    """
    from evictstream.streams.broker.admin import check_topics
    from evictstream.streams.broker.topic_specs import topic_specs
    from evictstream.streams.worker.stored_rows import read_known

    changelog = [spec for spec in topic_specs(settings) if spec.name == settings.changelog_topic]
    wrong = [
        str(one)
        for one in check_topics(settings, changelog).breaking
        if one.what == "topic" or (one.what == "partitions" and int(one.actual) != len(partitions))
    ]
    if wrong:
        raise TopicsDifferError(wrong)
    with ProgressLine("reading the state") as line:
        return KnownClusters(read_known(settings, partitions, lambda count: line.show(count, "rows")))
