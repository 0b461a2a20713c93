"""A preview in numbers: by namespace, by workload, by zone, by reason, by time."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping

import msgspec

from evictstream.kit.what_if.places import PlaceToGo
from evictstream.kit.what_if.preview import PodFate, PodOutcome, Preview, fate_of
from evictstream.models.eviction import NothingDue


class Total(msgspec.Struct, kw_only=True):
    """Pods of a group.

    Attributes:
        at_once: leave at once.
        later: leave later.
        stays: stay.
        moved: of all, those to whom the change makes a difference.
        spared: pods that stay, but would leave without the change.
        nowhere: leave, and no node admits them for good.
        undrainable: stay, and no node would admit them for good if they left; counted if nodes are cordoned.
        not_known: whether a node would admit them is not known.
    """

    at_once: int = 0
    later: int = 0
    stays: int = 0
    moved: int = 0
    spared: int = 0
    nowhere: int = 0
    undrainable: int = 0
    not_known: int = 0

    @property
    def pods(self) -> int:
        """All of them."""
        return self.at_once + self.later + self.stays

    @property
    def leaving(self) -> int:
        """Those that leave, now or later."""
        return self.at_once + self.later


def total(preview: Preview, outcomes: Iterable[PodOutcome] | None = None) -> Total:
    """Count pods, by default all of a preview."""
    result = Total()
    for outcome in preview.outcomes if outcomes is None else outcomes:
        fate = preview.fate(outcome)
        leaves = fate is not PodFate.STAYS
        result.at_once += fate is PodFate.AT_ONCE
        result.later += fate is PodFate.LATER
        result.stays += not leaves
        result.moved += preview.is_moved(outcome)
        result.spared += not leaves and fate_of(outcome.before, preview.at_us) is not PodFate.STAYS
        is_lost = outcome.place in (PlaceToGo.NOWHERE, PlaceToGo.FOR_A_WHILE)
        result.nowhere += is_lost and leaves
        result.undrainable += is_lost and not leaves
        result.not_known += outcome.place is PlaceToGo.NOT_KNOWN
    return result


def totals_by(preview: Preview, key: Callable[[PodOutcome], str | None]) -> Mapping[str | None, Total]:
    """Count pods by group, the groups with most leaving pods first."""
    groups = defaultdict[str | None, list[PodOutcome]](list)
    for outcome in preview.outcomes:
        groups[key(outcome)].append(outcome)
    totals = [(name, total(preview, outcomes)) for name, outcomes in groups.items()]
    return dict(sorted(totals, key=lambda pair: (-pair[1].leaving, -pair[1].pods, pair[0] or "")))


def workload_of(outcome: PodOutcome) -> str | None:
    """Name the workload of a pod with its namespace; pods without a controller count together."""
    if outcome.workload is None:
        return None
    return f"{outcome.namespace}/{outcome.workload or '(no controller)'}"


def leaving_times(preview: Preview) -> Mapping[int, int]:
    """Count the pods that leave by whole seconds after the change, rounded up."""
    seconds = (preview.seconds(outcome) for outcome in preview.outcomes)
    return dict(sorted(Counter(-int(-one // 1) for one in seconds if one is not None).items()))


def reasons_to_stay(preview: Preview) -> Mapping[NothingDue, int]:
    """Count the pods that stay by the reason, in the order in which reasons are looked at."""
    counts = Counter(outcome.after for outcome in preview.outcomes if isinstance(outcome.after, NothingDue))
    return {reason: counts[reason] for reason in NothingDue if reason in counts}
