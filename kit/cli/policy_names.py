"""Names in files of policies that fit nothing that is known: the policies stand all the same, and stderr says so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evictstream.streams.cli.output import warn
from evictstream.streams.errors import EvictstreamError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from evictstream.kit.cli.policy_files import WrittenPolicy
    from evictstream.kit.see.stored_state import StoredState
    from evictstream.models.kubernetes.traits import NodeLabels
    from evictstream.streams.settings import Settings

_MOST_TOLD: Final = 20
"""Names; a file may have thousands."""


def warn_of_unknown(settings: Settings, written: Iterable[WrittenPolicy], state: StoredState | None) -> None:
    """Say which clusters, zones and labels no known cluster has, each with its place in the file.

    Clusters and zones are those of feeds, and those that workers publish: at a centre those of all regions. Labels are
    in rows alone.

    Args:
        settings: which Kafka, and which service.
        written: as files have them.
        state: the rows, where they are read anyway.
    """
    from evictstream.streams.broker.feed_states import read_fed
    from evictstream.streams.broker.published_names import read_published

    policies = [one for one in written if one.names]
    if not policies:
        return
    try:
        published, fed = read_published(settings), read_fed(settings)
    except EvictstreamError as error:  # the policies stand, whatever happens here
        warn(f"it could not be checked whether these clusters and zones exist: {error}")
        return
    found = unmatched_names(policies, {**dict.fromkeys(fed, frozenset[str]()), **published}, known_labels(state))
    for fault in found[:_MOST_TOLD]:
        warn(fault)
    if len(found) > _MOST_TOLD:
        warn(f"{len(found) - _MOST_TOLD} more such names")


def known_labels(state: StoredState | None) -> set[tuple[str, str]] | None:
    """Return the labels of all nodes; None if they are not all known."""
    nodes = [] if state is None else [one.aggregate.node for one in state.nodes() if one.aggregate.node is not None]
    each: list[NodeLabels] = [node.labels for node in nodes if node.labels is not None]
    return {label for labels in each for label in labels} if nodes and len(each) == len(nodes) else None


def unmatched_names(
    written: Iterable[WrittenPolicy], clusters: Mapping[str, Iterable[str]], labels: set[tuple[str, str]] | None
) -> list[str]:
    """Return a sentence for each name in policies that fits nothing.

    Args:
        written: the policies.
        clusters: all that are known, each with its zones.
        labels: of all nodes; None if they are not known.
    """
    from evictstream.models.messages.fleet import MOST_ZONES
    from evictstream.models.steering.patterns import Patterns

    zones_of = {name: set(zones) for name, zones in clusters.items()}
    zones: set[str] | None = set().union(*zones_of.values())
    if any(len(some) >= MOST_ZONES for some in zones_of.values()):
        zones = None  # workers publish no more of a cluster
    found = []
    for one in (name for policy in written for name in policy.names):
        if one.field == "clusters" and not any(map(Patterns([one.pattern]).match, zones_of)):
            found.append(f"{one.place}: no known cluster matches {one.pattern}")
        elif one.field == "zones" and zones is not None and not any(map(Patterns([one.pattern]).match, zones)):
            found.append(f"{one.place}: no known node is in a zone {one.pattern}")
        elif one.field == "nodeLabels" and labels is not None:
            key, _, value = one.pattern.partition("=")
            values = Patterns([value])
            if not any(known == key and values.match(text) for known, text in labels):
                found.append(f"{one.place}: no known node has a label {one.pattern}")
    return found
