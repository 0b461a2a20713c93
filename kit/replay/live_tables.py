"""What a running service knows now: its rows, and of the input topics the facts that the rows do not hold.

Read as any other reader does: no group, nothing is committed, nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from evictstream.kit.recordings.record import Role
from evictstream.kit.recordings.topic_reader import read_topic
from evictstream.kit.replay.cluster_tables import ClusterTables
from evictstream.streams.broker.admin import readable_partitions
from evictstream.streams.worker.stored_rows import read_rows

if TYPE_CHECKING:
    from evictstream.streams.settings import Settings


def read_live(
    settings: Settings,
    *,
    cluster: str | None,
    is_stopped: Callable[[], bool],
    progress: Callable[[str, int], None] = lambda _, __: None,
) -> ClusterTables:
    """Read the rows, then the facts of nodes and pods as far as the topics reach back.

    Rows come first, so that the facts are not older than they are. A million records take about twenty seconds.

    Args:
        settings: which Kafka, and which service.
        cluster: facts of this one only; None for all.
        is_stopped: asked several times a second; ends it.
        progress: gets what is read, and how much of it so far.

    Raises:
        BrokerError: the topics cannot be read, or are missing.
        FoundProblemError: another version wrote the rows.
    """
    tables = read_live_rows(settings, lambda count: progress("rows", count))
    roles: tuple[Role, ...] = ("nodes", "pods")
    clusters = () if cluster is None else (cluster,)
    for role in roles:
        count = 0
        for batch in read_topic(settings, role, since="beginning", clusters=clusters, is_stopped=is_stopped):
            count += len(batch)
            tables.take_facts(batch)
            progress(role, count)
    return tables


def read_live_rows(settings: Settings, progress: Callable[[int], None] = lambda _: None) -> ClusterTables:
    """Read the rows alone, without facts; as `read_live`, which says what may go wrong.

    `progress` gets how many were read so far.
    """
    partitions = readable_partitions(settings, settings.changelog_topic)
    tables = ClusterTables(settings, partitions=len(partitions))
    read_rows(settings, partitions, tables.load, progress)
    tables.loaded()
    return tables
