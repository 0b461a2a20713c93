"""Mutations of what a fleet publishes: counts, when they are written, and what is taken back."""

from __future__ import annotations

from tests.mutations import product
from tests.mutations.catalogue import Mutation
from tests.mutations.matching import Change
from tests.mutations.torture import TORTURE

MACHINE = "tests/models/eviction/test_machine.py"
PUBLISHED = "tests/streams/partition/test_published.py"
ZONES = "tests/streams/partition/test_published_zones.py"
SEEN = "tests/kit/see/test_fleet.py"

OWNERS = "tests/streams/partition/test_published_workloads.py"

OF_FLEET = (
    Mutation(
        "count pods of an owner that end",
        (
            Change(
                product.POD_OWNERS, "owner_of", "None if pod.exemptions else controller_of(pod)", "controller_of(pod)"
            ),
        ),
        (OWNERS, TORTURE),
    ),
    Mutation(
        "forget that a pod of an owner leaves no more",
        (Change(product.WORKLOADS, "Workloads._stays", "self.changed.add(owner)", "pass"),),
        (OWNERS, TORTURE),
    ),
    Mutation(
        "give held pods a deadline at which they leave",
        (Change(product.WORKLOADS, "Workloads.leaving", "uid not in held_uids", "True"),),
        (OWNERS,),
    ),
    Mutation(
        "name only the last deadline of the step that stands for the rest",
        (Change(product.WORKLOADS, "descent", "Descent(steps[-1].at_us, at_us, left)", "Descent(at_us, at_us, left)"),),
        ("tests/models/eviction/test_descent.py", OWNERS),
    ),
    Mutation(
        "let the records of an earlier owner of the partition count",
        (
            Change(
                product.PUBLISHED_WORKLOADS,
                "PublishedWorkloads.begin",
                "self._next_sequence(cluster, now_us, outbox)",
                "1",
            ),
        ),
        (OWNERS,),
    ),
    Mutation(
        "tell owners in any order",
        (
            Change(
                product.PUBLISHED_WORKLOADS,
                "PublishedWorkloads.look",
                "heapq.nsmallest(...)",
                "sorted(workloads.losses(), key=repr)[:MOST_WORKLOADS_IN_TURN]",
            ),
        ),
        (OWNERS,),
    ),
    Mutation(
        "count only evictions of which something is told",
        (Change(product.RENDERING, "render", "step.moves.append", "change.decision and $0"),),
        (MACHINE,),
    ),
    Mutation(
        "count what an eviction was for what it is",
        (Change(product.LEVELS, "Levels.count_evictions", "self._count(before, -1)", "pass"),),
        (MACHINE, PUBLISHED, TORTURE),
    ),
    Mutation(
        "forget where a node stood",
        (Change(product.LEVELS, "Levels.count_node", "self._nodes[before] -= 1", "pass"),),
        (PUBLISHED, TORTURE),
    ),
    Mutation(
        "count nothing of what a new owner has loaded",
        (Change(product.EVICTION_PARTITION, "EvictionPartition.loaded", "self._effects.load(node, uids)", "pass"),),
        (PUBLISHED, TORTURE),
    ),
    Mutation(
        "publish in the middle of a step",
        (Change(product.PUBLISHED, "PublishedFleet.turn", "outbox.is_in_step", "False"),),
        (PUBLISHED,),
    ),
    Mutation(
        "begin the sequence anew with each owner",
        (
            Change(
                product.PUBLISHED,
                "PublishedFleet._next_sequence",
                "max(...)",
                "self._identities.setdefault('', [0]).append(0) or len(self._identities[''])",
            ),
        ),
        (PUBLISHED, TORTURE),
    ),
    Mutation(
        "take the clock for the sequence",
        (Change(product.PUBLISHED, "PublishedFleet._next_sequence", "max(...)", "now_us // MILLISECOND_US"),),
        (PUBLISHED,),
    ),
    Mutation(
        "leave what is published of a forgotten cluster",
        (Change(product.PUBLISHED, "PublishedFleet._look", "not (cluster.nodes or cluster.state.is_heard)", "False"),),
        (PUBLISHED,),
    ),
    Mutation(
        "let a new owner know nothing of what is published",
        (Change(product.PARTITION_CLUSTERS, "Clusters.forget", "published=before.published", "published=0"),),
        (PUBLISHED,),
    ),
    Mutation(
        "publish each second, whatever has changed",
        (
            Change(product.PUBLISHED, "PublishedFleet._is_new", "standing == before.standing", "False"),
            Change(product.PUBLISHED, "PublishedFleet._is_known", "mark == before.mark", "False"),
        ),
        (PUBLISHED,),
    ),
    Mutation(
        "say nothing again where nothing has changed",
        (Change(product.PUBLISHED, "_Published.is_fresh", "0 <= now_us - self.at_us < QUIET_US", "True"),),
        (PUBLISHED,),
    ),
    Mutation(
        "look for no deadline that has come",
        (Change(product.PUBLISHED, "PublishedFleet._is_known", "not levels.scheduled", "True"),),
        (PUBLISHED,),
    ),
    Mutation(
        "count what becomes of evictions for their cluster, not for their zone",
        (Change(product.LEVELS, "ClusterLevels.take", "self.zones[zone].count_evictions(moves)", "pass"),),
        (MACHINE, ZONES, TORTURE),
    ),
    Mutation(
        "leave evictions in the zone that their node has left",
        (Change(product.LEVELS, "ClusterLevels._move", "levels.count_evictions(moves)", "pass"),),
        (MACHINE, ZONES, TORTURE),
    ),
    Mutation(
        "take back no zone that is gone",
        (Change(product.PUBLISHED, "PublishedFleet._look_at_zones", "zone not in zones", "False"),),
        (ZONES, TORTURE),
    ),
    Mutation(
        "add zones to the clusters that they are in",
        (Change(product.SEEN_FLEET, "FleetView.standings", "level.zone is None", "True"),),
        (SEEN,),
    ),
)
