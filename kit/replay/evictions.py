"""The outcome of each eviction of a run, from its commands alone: recorded commands are read the same way."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterator

from evictstream.kit.replay.departures import Departure
from evictstream.models.instants import instant_us
from evictstream.models.messages.command import EvictionCommand, decode_command
from evictstream.models.messages.vocabulary import Action, Verdict


@dataclasses.dataclass(slots=True, kw_only=True)
class ReplayedEviction:
    """One eviction of one pod. Instants are microseconds since 1970.

    Attributes:
        verdict: why the pod has to leave, as said last.
        taint: `key=value` that decides, as said last.
        window_start_us: since when pod and taint are together.
        deadline_us: as said last.
        scheduled_at_us: when it was first announced; None if it was due at once.
        issued_at_us: when the first attempt was issued; None if none was.
        attempts: issued.
        moves: how often its deadline moved.
        cancelled_at_us: when it was withdrawn; None if it was not.
        cancelled_for: why.
    """

    eviction_id: str
    cluster: str
    namespace: str
    pod: str
    pod_uid: str
    node: str
    verdict: Verdict
    taint: str
    window_start_us: int
    deadline_us: int
    scheduled_at_us: int | None = None
    issued_at_us: int | None = None
    attempts: int = 0
    moves: int = 0
    cancelled_at_us: int | None = None
    cancelled_for: Verdict | None = None

    @property
    def is_open(self) -> bool:
        """Whether it was neither issued nor withdrawn."""
        return self.issued_at_us is None and self.cancelled_at_us is None

    def departure(self) -> Departure | None:
        """Return the first attempt; None if none was issued."""
        if self.issued_at_us is None:
            return None
        name = f"{self.namespace}/{self.pod}"
        return Departure(at_us=self.issued_at_us, cluster=self.cluster, pod_uid=self.pod_uid, name=name, node=self.node)


class EvictionsOfRun:
    """The evictions of one run, by id, in the order in which they began. A kilobyte each."""

    def __init__(self) -> None:
        self._evictions: dict[str, ReplayedEviction] = {}
        self._of_pods: defaultdict[tuple[str, str], list[ReplayedEviction]] = defaultdict(list)

    def __iter__(self) -> Iterator[ReplayedEviction]:
        """Give them in the order in which they began."""
        return iter(self._evictions.values())

    def __len__(self) -> int:
        """Count them."""
        return len(self._evictions)

    def departures(self) -> list[Departure]:
        """List the first attempts."""
        return [departure for one in self if (departure := one.departure()) is not None]

    def of_pod(self, departure: Departure) -> list[ReplayedEviction]:
        """List the evictions of a pod."""
        return self._of_pods.get((departure.cluster, departure.pod_uid), [])

    def take(self, text: bytes) -> None:
        """Take in the next command.

        Raises:
            Unreadable: it is none.
        """
        command = decode_command(text)
        at_us = instant_us(command.issued_at)
        eviction = self._evictions.get(command.eviction_id)
        if eviction is None:
            eviction = self._evictions[command.eviction_id] = _begun(command)
            self._of_pods[eviction.cluster, eviction.pod_uid].append(eviction)
        if command.action is Action.CANCEL:
            eviction.cancelled_at_us, eviction.cancelled_for = at_us, command.reason.verdict
            return
        deadline_us = instant_us(command.deadline)
        if deadline_us != eviction.deadline_us:
            eviction.moves += 1
        eviction.deadline_us = deadline_us
        eviction.window_start_us = instant_us(command.window_start)
        eviction.verdict, eviction.taint = command.reason.verdict, _taint(command)
        if command.action is Action.SCHEDULE:
            eviction.scheduled_at_us = at_us if eviction.scheduled_at_us is None else eviction.scheduled_at_us
            return
        eviction.attempts = max(eviction.attempts, command.attempt)
        eviction.issued_at_us = at_us if eviction.issued_at_us is None else eviction.issued_at_us


def _begun(command: EvictionCommand) -> ReplayedEviction:
    return ReplayedEviction(
        eviction_id=command.eviction_id,
        cluster=command.cluster,
        namespace=command.namespace,
        pod=command.pod,
        pod_uid=command.pod_uid,
        node=command.node,
        verdict=command.reason.verdict,
        taint=_taint(command),
        window_start_us=instant_us(command.window_start),
        deadline_us=instant_us(command.deadline),
    )


def _taint(command: EvictionCommand) -> str:
    taint = command.reason.taint
    return f"{taint.key}={taint.value}" if taint.value else taint.key
