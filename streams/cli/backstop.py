"""What a brake outlasts: when Kubernetes' own controller goes on with pods that it holds (docs/managed-clusters.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evictstream.streams.cli.output import warn
from evictstream.streams.cli.progress import ProgressLine
from evictstream.streams.cli.regions import ask_regions, in_region
from evictstream.streams.errors import EvictstreamError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evictstream.models.eviction.backstop import Outlasted
    from evictstream.models.steering.brakes import StandingBrake
    from evictstream.streams.settings import Settings


def outlasted_text(holder: str, outlasted: Outlasted, region: str = "") -> str:
    """Say when the built-in controller goes on with what a brake or policy holds, such as `brake b-1`."""
    from evictstream.models.instants import instant_text

    pods = "the pod" if outlasted.evictions == 1 else f"the first of {outlasted.evictions} pods"
    at = instant_text(outlasted.built_in_us)
    return f"{in_region(region)}the built-in controller goes on at {at} with {pods} that {holder} holds"


def tell_outlasted(regions: Mapping[str, Settings], standing: StandingBrake) -> None:
    """Say on stderr what a brake outlasts in each region where it was written; it stands, whatever happens here."""
    try:
        answers = ask_regions(regions, lambda settings: _outlasted(settings, standing))
    except EvictstreamError as error:
        warn_not_known(error)
        return
    for region, problem in answers.problems.items():
        warn_not_known(problem, region)
    for region, outlasted in answers.found.items():
        if outlasted is not None:
            warn(outlasted_text(f"brake {standing.brake.id}", outlasted, region))


def warn_not_known(error: EvictstreamError, region: str = "") -> None:
    """Say that the state could not be read."""
    warn(f"{in_region(region)}whether the built-in controller goes on before the end is not known: {error}")


def _outlasted(settings: Settings, standing: StandingBrake) -> Outlasted | None:
    """Read the rows of a brake's clusters, and find what it outlasts; None for nothing."""
    from evictstream.models.eviction import RowLoader
    from evictstream.models.eviction.backstop import outlasted_by
    from evictstream.models.steering.brakes import Brakes
    from evictstream.streams.broker.admin import readable_partitions
    from evictstream.streams.partition.clusters import Clusters
    from evictstream.streams.partitioner import partition_of
    from evictstream.streams.worker.service_config import cluster_rules
    from evictstream.streams.worker.stored_rows import ENGINE_KEYS, read_rows

    brake = standing.brake
    partitions = readable_partitions(settings, settings.changelog_topic)
    if brake.clusters:
        partitions = tuple({partition_of(name.encode(), len(partitions)) for name in brake.clusters})
    loader, clusters = RowLoader(), Clusters()

    def load(_: int, key: bytes, value: bytes | None) -> None:
        if key not in ENGINE_KEYS and not clusters.load(key, value):
            loader.load(key, value)

    with ProgressLine("reading the state") as line:
        read_rows(settings, partitions, load, lambda count: line.show(count, "rows"))
    brakes, now_us = Brakes({brake.id: standing}), standing.appended_us  # by Kafka's clock, just now
    found = outlasted_by(
        lambda cluster: brakes.of_cluster(cluster, now_us),
        loader.aggregates.values(),
        now_us,
        cluster_rules(settings).usual,
    )
    return found.get(brake.id)
