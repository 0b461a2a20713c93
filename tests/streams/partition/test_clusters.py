"""What a partition keeps about clusters: it survives a restart through its rows."""

from __future__ import annotations

import structlog

from evictstream.models.eviction import NodeAggregate
from evictstream.models.eviction.cluster import NO_STATE, Cluster, EpochBegun
from evictstream.models.messages.signals import Heartbeat
from evictstream.streams.engine.core.outbox import Outbox
from evictstream.streams.partition.clusters import Clusters
from evictstream.streams.worker.service_config import log_epoch

MINUTE_US = 60_000_000


class Kept:
    """Clusters with the rows that they have written."""

    def __init__(self) -> None:
        self.clusters = Clusters()
        self.rows: dict[bytes, bytes | None] = {}

    def outbox(self) -> Outbox:
        outbox = Outbox()
        outbox.rows = self.rows
        return outbox

    def restarted(self) -> Clusters:
        fresh = Clusters()
        for key, value in self.rows.items():
            assert fresh.load(key, value)
        return fresh


def has_gap(clusters: Clusters) -> bool:
    return clusters.gap is not None


def silent(clusters: Clusters, older_than_us: int) -> list[str]:
    return [cluster.name for cluster in clusters.silent(older_than_us)]


def gapped(*names: str) -> Kept:
    """Keep clusters with a node each, in a partition that has lost input."""
    kept = Kept()
    for name in names:
        cluster = kept.clusters.keep(Cluster(name))
        cluster.add(NodeAggregate(name, "n"))
    kept.clusters.open_gap({"pods": 3}, 100, kept.outbox())
    return kept


def heartbeat(
    kept: Kept,
    cluster: str,
    at_us: int,
    *,
    on_nodes: bool,
    listed_at_us: int | None = None,
    epoch: int = 0,
    uid: str = "",
) -> bool:
    signal = Heartbeat(cluster=cluster, at_us=at_us, listed_at_us=listed_at_us, epoch=epoch, cluster_uid=uid)
    return kept.clusters.heartbeat(signal, on_nodes=on_nodes, appended_at_us=at_us, outbox=kept.outbox())


def test_a_cluster_is_silent_when_either_topic_is() -> None:
    kept = Kept()
    heartbeat(kept, "a", 10 * MINUTE_US, on_nodes=True)
    heartbeat(kept, "a", 8 * MINUTE_US, on_nodes=False)
    heartbeat(kept, "b", 10 * MINUTE_US, on_nodes=True)
    heartbeat(kept, "b", 10 * MINUTE_US, on_nodes=False)
    for clusters in (kept.clusters, kept.restarted()):
        assert silent(clusters, 9 * MINUTE_US) == ["a"]


def test_a_feed_with_heartbeats_on_one_topic_is_silent() -> None:
    kept = Kept()
    heartbeat(kept, "a", 10 * MINUTE_US, on_nodes=True)
    assert silent(kept.clusters, MINUTE_US) == ["a"]


def test_a_cluster_without_heartbeats_is_never_silent() -> None:
    assert silent(Clusters(), 10**18) == []


def test_an_old_heartbeat_does_not_bring_time_back() -> None:
    kept = Kept()
    heartbeat(kept, "a", 10 * MINUTE_US, on_nodes=True)
    heartbeat(kept, "a", 10 * MINUTE_US, on_nodes=False)
    heartbeat(kept, "a", 1 * MINUTE_US, on_nodes=True)
    assert silent(kept.clusters, 9 * MINUTE_US) == []


def test_forgetting_voids_earlier_records_and_no_later_ones() -> None:
    kept = Kept()
    heartbeat(kept, "a", 5, on_nodes=True)
    kept.clusters.forget("a", 1000, kept.outbox())
    for clusters in (kept.clusters, kept.restarted()):
        assert clusters.named("a").state.forgotten_at_us == 1000
        assert clusters.named("b").state == NO_STATE
        assert silent(clusters, 10**18) == []
    kept.clusters.forget("b", 7_000_000, kept.outbox())
    assert kept.clusters.named("b").state.first_ordinal == 7_000
    assert kept.clusters.named("never").state.first_ordinal == 0


def test_a_heartbeat_from_before_the_forgetting_does_not_count() -> None:
    """Topics are read each at its own pace, and the next feed may send no heartbeats."""
    kept = Kept()
    kept.clusters.forget("a", 1000, kept.outbox())
    heartbeat(kept, "a", 999, on_nodes=False)
    for clusters in (kept.clusters, kept.restarted()):
        assert silent(clusters, 10**18) == []
    heartbeat(kept, "a", 1001, on_nodes=False)
    assert silent(kept.clusters, 10**18) == ["a"]


def test_a_gap_closes_once_every_cluster_is_listed_again() -> None:
    kept = gapped("a", "b")
    assert has_gap(kept.restarted())
    heartbeat(kept, "a", 200, on_nodes=True, listed_at_us=99)
    heartbeat(kept, "a", 200, on_nodes=False, listed_at_us=99)
    assert has_gap(kept.clusters), "that listing was before the gap was found"
    for cluster in ("a", "b"):
        assert has_gap(kept.clusters)
        heartbeat(kept, cluster, 300, on_nodes=True, listed_at_us=150)
        heartbeat(kept, cluster, 300, on_nodes=False, listed_at_us=150)
    assert not has_gap(kept.clusters)
    assert not has_gap(kept.restarted())


def test_a_gap_closes_once_it_is_accepted_for_every_cluster() -> None:
    kept = gapped("a", "b")
    kept.clusters.accept_gap("a", kept.outbox())
    assert has_gap(kept.restarted())
    kept.clusters.accept_gap("b", kept.outbox())
    assert not has_gap(kept.restarted())


def test_a_gap_without_known_clusters_changes_nothing() -> None:
    kept = gapped()
    assert not has_gap(kept.clusters)


def test_a_gap_does_not_wait_for_a_forgotten_cluster() -> None:
    kept = gapped("a")
    kept.clusters.forget("a", 200, kept.outbox())
    assert not has_gap(kept.restarted())


def test_rows_of_other_kinds_are_not_loaded() -> None:
    assert not Clusters().load(b"node\x00lab/n0", b"")


def both(kept: Kept, at_us: int, *, epoch: int = 0, uid: str = "") -> list[bool]:
    return [heartbeat(kept, "a", at_us, on_nodes=on_nodes, epoch=epoch, uid=uid) for on_nodes in (True, False)]


def test_heartbeats_of_an_earlier_epoch_do_not_count() -> None:
    kept = Kept()
    assert both(kept, 1 * MINUTE_US, epoch=1) == [True, True]
    assert both(kept, 5 * MINUTE_US, epoch=0) == [False, False]
    for clusters in (kept.clusters, kept.restarted()):
        assert silent(clusters, 2 * MINUTE_US) == ["a"]
        assert (clusters.named("a").state.epoch, clusters.named("other").state.epoch) == (1, 0)


def test_another_cluster_with_this_name_does_not_count() -> None:
    kept = Kept()
    assert both(kept, 1 * MINUTE_US, uid="first") == [True, True]
    assert both(kept, 2 * MINUTE_US, uid="second") == [False, False]
    assert both(kept, 3 * MINUTE_US) == [True, True], "a feed that does not say is believed"
    assert both(kept, 4 * MINUTE_US, epoch=1, uid="second") == [True, True], "a rebuilt cluster begins an epoch"
    assert both(kept, 5 * MINUTE_US, epoch=1, uid="first") == [False, False]


def test_a_forgotten_cluster_begins_with_any_epoch() -> None:
    kept = Kept()
    both(kept, 5, epoch=3, uid="first")
    kept.clusters.forget("a", 1000, kept.outbox())
    assert both(kept, 1000, epoch=3, uid="first") == [False, False]
    assert both(kept, 1001, uid="second") == [True, True]


def test_each_new_epoch_is_told_once() -> None:
    told = list[EpochBegun]()
    kept = Kept()
    kept.clusters = Clusters(told.append)
    for at_us, epoch in ((MINUTE_US, 0), (2 * MINUTE_US, 1), (3 * MINUTE_US, 1), (4 * MINUTE_US, 2)):
        heartbeat(kept, "a", at_us, on_nodes=True, epoch=epoch, uid="u")
    assert told == [EpochBegun("a", 1, "u", 2 * MINUTE_US), EpochBegun("a", 2, "u", 4 * MINUTE_US)]


def test_an_epoch_is_logged_with_its_own_time() -> None:
    with structlog.testing.capture_logs() as logs:
        log_epoch(EpochBegun("a", 1, "u", 1_795_262_400_000_000))
    assert [(one["epoch"], one["begun_at"]) for one in logs] == [(1, "2026-11-21T12:00:00.000000Z")]
