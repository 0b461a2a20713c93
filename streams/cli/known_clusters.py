"""The rows of each cluster: read with progress, shown as sentences and as JSON."""

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
    def names(self) -> list[str]:
        """The clusters with nodes, pods, evictions or heartbeats."""
        return sorted(name for rows in self._rows.values() for name, row in rows.clusters.items() if row.is_anything)

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
        """Whether the cluster is among `names`."""
        return self._of(cluster).is_anything

    def of_cluster(self, cluster: str) -> dict[str, object]:
        """Return the counts of a cluster's rows as JSON."""
        of_it = self._of(cluster)
        counts = {"nodes": of_it.nodes, "pods": of_it.pods, "openEvictions": of_it.open_evictions}
        return {
            "known": counts if of_it.is_anything else None,
            "heartbeatAt": _instant(self._heartbeat(of_it)),
            "forgottenAt": _instant(of_it.state.forgotten_at_us),
        }

    def sentence(self, cluster: str) -> str:
        """Describe a cluster in one sentence: nodes, pods, open evictions, newest heartbeat."""
        of_it = self._of(cluster)
        heartbeat = _instant(self._heartbeat(of_it))
        newest = "" if heartbeat is None else f"; the last heartbeat of its feed: {heartbeat}"
        return f"{cluster} has {of_it.nodes} nodes, {of_it.pods} pods and {of_it.open_evictions} open evictions{newest}"

    def nothing_known(self, cluster: str) -> Iterator[str]:
        """Yield lines about an unknown cluster: when it was forgotten, similar names, and the known clusters."""
        forgotten = _instant(self._of(cluster).state.forgotten_at_us)
        since = "" if forgotten is None else f": it was forgotten at {forgotten}"
        yield f"nothing is known of {cluster}{since}; nothing was sent"
        names = self.names
        near = difflib.get_close_matches(cluster, names, n=3, cutoff=0.5)
        if near and forgotten is None:
            yield f"did you mean {' or '.join(near)}?"
        more = f" and {len(names) - NAMES_LISTED} more" if len(names) > NAMES_LISTED else ""
        yield f"known clusters: {', '.join(names[:NAMES_LISTED]) or 'none'}{more}"

    def _of(self, cluster: str) -> ClusterRows:
        from evictstream.streams.worker.stored_rows import ClusterRows

        return next((rows.clusters[cluster] for rows in self._rows.values() if cluster in rows.clusters), ClusterRows())

    @staticmethod
    def _heartbeat(of_it: ClusterRows) -> int:
        return max(of_it.state.nodes_heartbeat_at_us, of_it.state.pods_heartbeat_at_us)


def _instant(at_us: int) -> str | None:
    from evictstream.models.instants import instant_text

    return instant_text(at_us) if at_us else None


def read_with_progress(settings: Settings, partitions: tuple[int, ...]) -> KnownClusters:
    """Read the rows of all clusters; a terminal shows the count so far.

    Raises:
        TopicsDifferError: the changelog is missing, or has another count of partitions than the inputs.
        BrokerUnreachableError: Kafka did not answer.
        FoundProblemError: another version wrote the rows.
    """
    from evictstream.streams.broker.admin import advice, check_topics
    from evictstream.streams.broker.topic_specs import topic_specs
    from evictstream.streams.worker.stored_rows import read_known

    changelog = [spec for spec in topic_specs(settings) if spec.name == settings.changelog_topic]
    wrong = [
        one
        for one in check_topics(settings, changelog).breaking
        if one.what == "topic" or (one.what == "partitions" and int(one.actual) != len(partitions))
    ]
    if wrong:
        raise TopicsDifferError([str(one) for one in wrong], next_step=advice(wrong))
    with ProgressLine("reading the state") as line:
        return KnownClusters(read_known(settings, partitions, lambda count: line.show(count, "rows")))
