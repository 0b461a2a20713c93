"""What there is to tell of the pod that somebody asks about: its story, why there is none, or that it is not known."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

import msgspec

from evictstream.kit.recordings.record import RecordedRecord
from evictstream.kit.replay.asked_pod import MOST_COMPARED, AskedPod, Match
from evictstream.kit.replay.pod_observer import CaseLine, ObservedPod, PodObserver
from evictstream.kit.replay.replay import Replay
from evictstream.kit.replay.standing_holds import StandingHold
from evictstream.kit.replay.story import SourcedDecision, Teller
from evictstream.models.instants import SECOND_US, instant_us
from evictstream.models.messages.decision import DecisionRecord, decode_decision
from evictstream.models.messages.envelope import DECODE_ERRORS
from evictstream.models.messages.unreadable import Unreadable
from evictstream.models.messages.vocabulary import DecisionKind

SAME_US: Final = SECOND_US
"""A decision of a replay equals a recorded one if they are less than this apart."""


class PodAnswer(enum.StrEnum):
    """What is known of the pod."""

    STORY = "Story"
    """Something was decided about it."""
    NOTHING = "Nothing"
    """It is known, and nothing was decided about it."""
    SEVERAL = "Several"
    """Pods of several namespaces have its name."""
    UNKNOWN = "Unknown"


@dataclasses.dataclass(slots=True, kw_only=True)
class ExplainedPod:
    """One pod, which is one UID.

    Attributes:
        node: empty while it is bound to none.
        decisions: in the order in which they came: those of the service, then those of a replay.
        cases: how it stood with it over time, where that is known.
        left_out: later records of the pod, which the replay ignores because it has evicted it.
        held: what holds its eviction at the end, or now; None if nothing does.
    """

    cluster: str
    namespace: str
    name: str
    uid: str
    node: str
    match: Match
    decisions: list[SourcedDecision] = dataclasses.field(default_factory=list)
    cases: list[CaseLine] = dataclasses.field(default_factory=list)
    left_out: list[CaseLine] = dataclasses.field(default_factory=list)
    held: StandingHold | None = None

    @property
    def address(self) -> str:
        """NAMESPACE/NAME."""
        return f"{self.namespace}/{self.name}"

    def decisions_of(self, *tellers: Teller) -> list[SourcedDecision]:
        """List the decisions that come from these."""
        return [decision for decision in self.decisions if decision.teller in tellers]


class Explanation(NamedTuple):
    """The answer.

    Attributes:
        pods: those that it is about; empty unless something is known of exactly what was asked.
        alike: addresses that may have been meant, or that all have the name.
    """

    answer: PodAnswer
    pods: list[ExplainedPod]
    alike: list[str]


class _Address(msgspec.Struct, gc=False):
    cluster: str
    namespace: str
    pod: str


_address: Final = msgspec.json.Decoder(_Address)


class Explainer:
    """Collects decisions and observations, and answers.

    Attributes:
        asked: the pod that the user named.
        recorded: how many decisions of the service came, whatever they are about.
        recorded_us: when the first and the last of them came, microseconds since 1970; None without one.
    """

    def __init__(self, asked: AskedPod, *, cluster: str | None = None) -> None:
        """`cluster` limits the answer to one; None takes all."""
        self.asked = asked
        self.recorded = 0
        self.recorded_us: tuple[int, int] | None = None
        self._cluster = cluster
        self._pods: dict[tuple[str, str], ExplainedPod] = {}
        self._addresses: set[str] = set()
        self._elsewhere: set[str] = set()

    def take(self, value: bytes, came_us: int, teller: Teller) -> None:
        """Take a decision record; to decode each of some millions would take minutes.

        Raises:
            Unreadable: it may be about the pod, and is none.
        """
        if teller is Teller.RECORDED:
            self.recorded += 1
            first_us, last_us = self.recorded_us or (came_us, came_us)
            self.recorded_us = min(first_us, came_us), max(last_us, came_us)
        if self.asked.needle not in value:
            self._note_address(value)
            return
        record = decode_decision(value)
        match = self.asked.match(record.namespace, record.pod, record.pod_uid)
        if match is Match.NONE:
            self._note_address(value)
            return
        if self._is_elsewhere(record.cluster, f"{record.namespace}/{record.pod}"):
            return
        pod = self._pod(record.cluster, record.namespace, record.pod, record.pod_uid, record.node, match)
        pod.decisions.append(SourcedDecision(record, came_us, teller))

    def take_replay(
        self,
        run: Replay,
        observer: PodObserver,
        records: Iterable[RecordedRecord],
        on_problem: Callable[[str], None] = lambda _: None,
    ) -> Explanation:
        """Replay a recording, and answer from what it decides, and from what the service has decided in it.

        Args:
            run: the replay, with the observer.
            observer: of the pods that are asked about.
            records: of the recording, decisions too.
            on_problem: gets each recorded decision that cannot be read.
        """
        for messages in (run.run(self._passed(records, on_problem)), run.run_on()):
            for message in messages:
                if message.topic == "decisions":
                    self.take(message.value, message.at_us, Teller.PLAYED if message.is_played else Teller.REPLAY)
        self.observed(observer.pods.values())
        self.take_holds(run.holds())
        return self.explanation(run.addresses())

    def take_holds(self, holds: Iterable[StandingHold]) -> None:
        """Take in what is held now; what is not about a pod that is known here is passed over."""
        for hold in holds:
            pod = self._pods.get((hold.cluster, hold.pod_uid))
            if pod is not None:
                pod.held = hold

    def _passed(self, records: Iterable[RecordedRecord], on_problem: Callable[[str], None]) -> Iterator[RecordedRecord]:
        """Pass records on, and take what the service has decided."""
        for record in records:
            if record.topic == "decisions" and record.value is not None:
                try:
                    self.take(record.value, record.appended_us, Teller.RECORDED)
                except Unreadable as error:
                    place = f"decisions, partition {record.partition}, offset {record.offset}"
                    on_problem(f"{place}: no decision ({error.reason})")
            yield record

    def observed(self, pods: Iterable[ObservedPod]) -> None:
        """Take how it stood with pods that match."""
        for seen in pods:
            if not self._is_elsewhere(seen.cluster, f"{seen.namespace}/{seen.name}"):
                pod = self._pod(seen.cluster, seen.namespace, seen.name, seen.uid, seen.node, seen.match)
                pod.cases, pod.left_out = seen.cases, seen.left_out

    def explanation(self, addresses: Iterable[str] = ()) -> Explanation:
        """Answer; `addresses` are those of all pods that are known of the cluster, for names that are alike."""
        best = max((pod.match for pod in self._pods.values()), default=Match.NONE)
        pods = [pod for pod in self._pods.values() if pod.match is best]
        names = sorted({pod.address for pod in pods})
        if best is Match.BY_NAME and len(names) > 1:
            return Explanation(PodAnswer.SEVERAL, [], names)
        if not pods:
            alike = sorted(self._elsewhere) or self.asked.alike([*sorted(self._addresses), *addresses])
            return Explanation(PodAnswer.UNKNOWN, [], alike)
        is_story = any(pod.decisions for pod in pods)
        return Explanation(PodAnswer.STORY if is_story else PodAnswer.NOTHING, pods, [])

    def _note_address(self, value: bytes) -> None:
        if len(self._addresses) < MOST_COMPARED:
            try:
                address = _address.decode(value)
            except DECODE_ERRORS:
                return
            if self._cluster in (None, address.cluster):
                self._addresses.add(f"{address.namespace}/{address.pod}")

    def _is_elsewhere(self, cluster: str, address: str) -> bool:
        """Tell whether a pod that matches is of another cluster than the one that is asked about; notes it then."""
        if self._cluster in (None, cluster):
            return False
        self._elsewhere.add(f"{address} of {cluster}")
        return True

    def _pod(self, cluster: str, namespace: str, name: str, uid: str, node: str, match: Match) -> ExplainedPod:
        made = ExplainedPod(cluster=cluster, namespace=namespace, name=name, uid=uid, node=node, match=match)
        return self._pods.setdefault((cluster, uid), made)


def differing(recorded: Iterable[SourcedDecision], replayed: Iterable[SourcedDecision]) -> list[SourcedDecision]:
    """List what a replay decides otherwise than was recorded: other decisions, or the same at another time."""
    times: dict[tuple[object, ...], list[int]] = {}
    for decision in recorded:
        for what, at_us in _facts(decision.record):
            times.setdefault(what, []).append(at_us)
    return [
        decision for decision in replayed if not all(_is_recorded(times, *fact) for fact in _facts(decision.record))
    ]


def _is_recorded(times: dict[tuple[object, ...], list[int]], what: tuple[object, ...], at_us: int) -> bool:
    """Tell whether the same was recorded at that time; each record stands for one decision."""
    there = times.get(what, [])
    near = next((at for at in there if abs(at - at_us) < SAME_US), None)
    if near is None:
        return False
    there.remove(near)
    return True


def _facts(it: DecisionRecord) -> Iterator[tuple[tuple[object, ...], int]]:
    """Give what a record says and when; an `Issued` may say a `Due` too."""
    if it.due_cause is not None:
        yield (DecisionKind.DUE, it.verdict, it.deadline, 0, None), instant_us(it.due_cause.at)
    yield (it.decision, it.verdict, it.deadline, it.attempt, it.outcome), instant_us(it.cause.at)
