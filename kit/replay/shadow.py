"""What a service has decided beside what Kubernetes' own controller did to the same pods, and why they differ.

Both are recorded: the service's decisions, and the pods with the condition that says who deletes them. A model of the
controller over the same records tells what its rules wanted, so that a rule is told apart from a delay.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final

from evictstream.kit.recordings.record import RecordedRecord
from evictstream.kit.replay.comparison import TOLERANCE_US, DifferenceKind, RunDifference, compare_runs
from evictstream.kit.replay.decided_evictions import DecidedEviction, DecidedEvictions
from evictstream.kit.replay.departures import Departure
from evictstream.kit.replay.recorded_ends import PodEnd, RecordedEnds
from evictstream.kit.replay.upstream_reasons import UNEXPLAINED, Reason
from evictstream.kit.replay.upstream_run import UpstreamRun
from evictstream.models.instants import instant_text
from evictstream.streams.settings import Settings

_DELETED: Final = "deleted"
"""Stands for the reason of a pod's end that names nobody."""

_NOT_YET: Final = Reason(None, "evictstream had not issued it by then: a closed gate, a takeover or a backlog")
_LATE: Final = Reason(None, "due then by its rules, but Kubernetes' controller was late (rows 1, 2, 36)")
_MISSED: Final = Reason(None, "due then by its rules, but Kubernetes' controller did not do it: is it on?")


@dataclasses.dataclass(slots=True, kw_only=True)
class ShadowReport:
    """What came of the comparison.

    Attributes:
        first_us: time of the first record; None without one.
        last_us: latest time of a record of nodes and pods.
        same: pods that both let go, within a second.
        differences: all others, by time; `here` is evictstream.
        done: evictions that an executor of evictstream has carried out. They are not compared.
        otherwise: pods with an open eviction that left for another reason, by that reason.
        cancelled: evictions that ended for another reason than that the pod left, before they were issued.
        not_due: evictions that were not due at the end, or became due with the last records.
        begun_before: evictions of whose beginning the recording shows nothing. They are not compared.
    """

    first_us: int | None = None
    last_us: int = 0
    same: int = 0
    differences: list[RunDifference] = dataclasses.field(default_factory=list)
    done: int = 0
    otherwise: Counter[str] = dataclasses.field(default_factory=Counter)
    cancelled: int = 0
    not_due: int = 0
    begun_before: int = 0

    def summary(self) -> dict[str, object]:
        """Give the counts for programs."""
        first_us = self.first_us
        return {
            "firstAt": None if first_us is None else instant_text(first_us),
            "lastAt": None if first_us is None else instant_text(self.last_us),
            "same": self.same,
            "done": self.done,
            "otherwise": dict(sorted(self.otherwise.items())),
            "cancelled": self.cancelled,
            "notDue": self.not_due,
            "begunBefore": self.begun_before,
        }


def shadow_of(settings: Settings, source: Callable[[], Iterable[RecordedRecord]], *, partitions: int) -> ShadowReport:
    """Compare. `source` gives the recording from its beginning, in order of time; it is read twice."""
    report, decided, ends = ShadowReport(), DecidedEvictions(), RecordedEnds()
    for record in source():
        decided.take(record)
        ends.take(record)
        if record.topic in ("nodes", "pods"):
            report.first_us = record.appended_us if report.first_us is None else report.first_us
            report.last_us = max(report.last_us, record.appended_us)
    pairing = _Pairing(report, ends.of_pods)
    for eviction in decided:
        pairing.take(eviction)
    differences = pairing.differences()
    upstream = UpstreamRun(settings, partitions=partitions, service=pairing.issued, recorded=pairing.theirs())
    for record in source():
        upstream.take(record)
    upstream.run_on(report.last_us)
    told = _Reasons(upstream, pairing.not_yet)
    report.differences = [difference._replace(reason=told.of(difference)) for difference in differences]
    return report


class _Pairing:
    """Which departures of evictstream and of Kubernetes are compared.

    Attributes:
        issued: of evictstream: what it has issued.
        not_yet: departures by Kubernetes that were due before, and not issued.
    """

    def __init__(self, report: ShadowReport, ends: dict[tuple[str, str], PodEnd]) -> None:
        self.issued: list[Departure] = []
        self.not_yet: set[Departure] = set()
        self._planned: list[Departure] = []
        self._report = report
        self._ends = dict(ends)

    def take(self, eviction: DecidedEviction) -> None:
        """Take in an eviction."""
        report, place = self._report, (eviction.cluster, eviction.pod_uid)
        end = self._ends.get(place)
        if not eviction.is_whole or eviction.is_done:
            report.begun_before += not eviction.is_whole
            report.done += eviction.is_whole
            self._ends.pop(place, None)
        elif eviction.issued_at_us is not None:
            self._take_issued(eviction, eviction.issued_at_us, end)
        elif eviction.ended_for is None:
            report.not_due += 1
        elif not eviction.has_left:
            report.cancelled += 1
        elif end is None or not end.is_by_taint:
            report.otherwise[_DELETED if end is None else end.by or _DELETED] += 1
        elif eviction.deadline_us < end.departure.at_us - TOLERANCE_US:
            self.not_yet.add(end.departure)
        else:
            self._planned.append(eviction.departure(eviction.deadline_us))

    def _take_issued(self, eviction: DecidedEviction, issued_at_us: int, end: PodEnd | None) -> None:
        is_by_other = end is not None and not end.is_by_taint
        if end is not None and is_by_other and end.departure.at_us <= issued_at_us + TOLERANCE_US:
            self._report.otherwise[end.by or _DELETED] += 1
        elif end is None and issued_at_us > self._report.last_us - TOLERANCE_US:
            self._report.not_due += 1  # what Kubernetes did is not recorded yet
        else:
            self.issued.append(eviction.departure(issued_at_us))

    def theirs(self) -> list[Departure]:
        """Give the departures that Kubernetes' controller made."""
        return [end.departure for end in self._ends.values() if end.is_by_taint]

    def differences(self) -> list[RunDifference]:
        """Give all that is not the same, by time, and count the rest."""
        answered = {(one.cluster, one.pod_uid) for one in self.issued}  # what follows of such a pod came too late
        planned = [one for one in self._planned if (one.cluster, one.pod_uid) not in answered]
        found = sorted(compare_runs([*self.issued, *planned], self.theirs()), key=lambda one: one.first)
        differing = [one for one in found if one.kind is not DifferenceKind.SAME]
        self._report.same += len(found) - len(differing)
        return differing


class _Reasons:
    """Says why, from what the controller's rules wanted by the model."""

    def __init__(self, upstream: UpstreamRun, not_yet: set[Departure]) -> None:
        self._upstream = upstream
        self._not_yet = not_yet
        self._modelled = {(one.cluster, one.pod_uid): one for one in upstream.departures}

    def of(self, difference: RunDifference) -> Reason:
        """Give the reason of a difference."""
        here, there = difference.here, difference.there
        if here is not None and (there is None or here.at_us < there.at_us):
            if self._near(here) is not None:
                return _MISSED if there is None else _LATE
            return self._upstream.service.get(here, UNEXPLAINED)
        assert there is not None  # noqa: S101 - one of the two is there
        if there in self._not_yet:
            return _NOT_YET
        modelled = self._near(there)
        return self._upstream.recorded[there] if modelled is None else self._upstream.departures[modelled]

    def _near(self, departure: Departure) -> Departure | None:
        """Return the model's departure of the pod, if it is at about the same time."""
        found = self._modelled.get((departure.cluster, departure.pod_uid))
        is_near = found is not None and abs(found.at_us - departure.at_us) <= TOLERANCE_US
        return found if is_near else None
