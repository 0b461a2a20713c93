"""Gives pods back: of tainted nodes in two steps, so that no late timer of the built-in controller stays."""

from __future__ import annotations

import collections
import dataclasses
import time
from collections.abc import Callable, Iterable
from typing import Final

from evictstream.streams.handover.api_requests import ApiRequests, StoppedError
from evictstream.streams.handover.pod_changes import ChangeOutcome, ChangeReport, LoosenPods, RestorePods
from evictstream.streams.handover.pod_states import ClusterPod

SETTLE_SECONDS: Final = 2.0
"""After the first of two changes, so that the built-in controller sees it: it looks at a pod's newest state alone."""

NODES_SECONDS: Final = 10.0
"""So old may be what is known of taints. A pod whose node got its taint later is restored with its late timer; a list
of all nodes more often would burden the API server."""


class TaintedNodes:
    """Nodes with a `NoExecute` taint, read again when what is known is `NODES_SECONDS` old."""

    def __init__(self, read: Callable[[], frozenset[str]], clock: Callable[[], float] = time.monotonic) -> None:
        """Read nothing yet.

        Args:
            read: asks the API server.
            clock: monotonic seconds.
        """
        self._read = read
        self._clock = clock
        self._known = frozenset[str]()
        self._read_at: float | None = None

    def __call__(self) -> frozenset[str]:
        """Return them.

        Raises:
            KubernetesError, StoppedError: as `ApiRequests.get`.
        """
        now = self._clock()
        if self._read_at is None or now - self._read_at >= NODES_SECONDS:
            self._known, self._read_at = self._read(), now
        return self._known


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RestoreRun:
    """One way through all pods.

    Attributes:
        requests: sets the pace.
        loosen: the first step of pods on tainted nodes; None if nothing is to be written.
        restore: what is done to every pod.
    """

    requests: ApiRequests
    loosen: LoosenPods | None
    restore: RestorePods
    _loosened: collections.deque[tuple[float, ClusterPod]] = dataclasses.field(
        default_factory=collections.deque, init=False
    )

    def run(self, pods: Iterable[ClusterPod], report: ChangeReport, tell: Callable[[ChangeReport], None]) -> None:
        """Restore pods until all are done or a signal comes; `report` is right at any moment.

        Raises:
            KubernetesError: the API server does not answer, or refuses to list pods or nodes.
        """
        try:
            for pod in pods:
                self.requests.check_signal()
                tell(report)
                self._restore_settled(report)
                why = self.restore.why_not(pod)
                if why is not None:
                    report.left[why] += 1
                    continue
                self.requests.pace()
                self._begin(pod, report)
            while self._loosened:
                self.requests.pause(self._loosened[0][0] + SETTLE_SECONDS - time.monotonic())
                self._restore_settled(report)
        except StoppedError:
            return
        report.is_whole = True

    def _begin(self, pod: ClusterPod, report: ChangeReport) -> None:
        """Loosen a pod whose timer may run; restore any other."""
        loosen = self.loosen
        if loosen is None or loosen.why_not(pod) is not None:
            report.outcomes[self.restore.apply(pod, report)] += 1
            return
        outcome, found = loosen.apply(pod, report)
        if outcome is ChangeOutcome.CHANGED:
            report.loosened += 1
            self._loosened.append((time.monotonic(), found))
            return
        is_restored = outcome is ChangeOutcome.UNCHANGED and loosen.why_not(found) is not None
        if is_restored and self.restore.why_not(found) is None:  # something else has changed it: it needs this no more
            outcome = self.restore.apply(found, report)
        report.outcomes[outcome] += 1

    def _restore_settled(self, report: ChangeReport) -> None:
        while self._loosened and time.monotonic() >= self._loosened[0][0] + SETTLE_SECONDS:
            self.requests.pace()
            outcome = self.restore.apply(self._loosened[0][1], report)
            self._loosened.popleft()
            report.outcomes[outcome] += 1
            report.loosened -= outcome is not ChangeOutcome.FAILED
