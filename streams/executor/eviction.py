"""One eviction: a last look, then the write that the mode allows, and the outcome."""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import math
import time
from collections.abc import Callable
from typing import Final

from evictstream.models.execution.api_answers import Meaning, OtherObjects, Trouble
from evictstream.models.execution.command_log import CommandAnswer
from evictstream.models.execution.eviction_requests import request_key
from evictstream.models.execution.last_look import SeenPod, last_look
from evictstream.models.instants import SECOND_US, instant_us
from evictstream.models.messages.command import EvictionCommand
from evictstream.models.messages.vocabulary import Outcome
from evictstream.streams.errors import ApiUnreachableError, KubernetesError, NotSentError
from evictstream.streams.executor.cluster_brakes import ClusterBrakes
from evictstream.streams.executor.node_looks import NodeLooks
from evictstream.streams.executor.open_requests import OpenRequests, RequestWait
from evictstream.streams.executor.pod_requests import ApiReply, PodRequests

MOST_LOOKS: Final = 3
"""Each change of the pod between look and write needs another look. No pod should change more often."""

OLDEST_LOOK_SECONDS: Final = 15.0
"""A write needs another look if the look began longer ago than this: the process was frozen, credentials were renewed,
or requests take seconds. No precondition of the write covers the node's taints."""

_FIRST_PAUSE_SECONDS: Final = 1.0
_LONGEST_PAUSE_SECONDS: Final = 30.0
"""Between tries of an eviction that the API server cannot do now."""

CREDENTIALS_SECONDS: Final = 5.0
"""Between tries while credentials are refused, or another cluster answers. Credentials are read again each time, so a
rotated token is soon in use."""

BUDGET_SECONDS: Final = 10.0
"""Between tries against a disruption budget, where the API server does not say when; it usually says 10 s."""

UNKNOWN_SECONDS: Final = 1.0
"""Between tries while it is not known what brakes hold. No other one begins meanwhile (`ClusterExecutor`)."""

_LATE_SECONDS: Final = 0.01
"""After the end of a patience, so that the next look is not a moment before it."""

ALONE_SECONDS: Final = 1.0
"""How long other evictions wait when one object has a doubtful answer and there is no answer about others. If a proxy
only fails that object, the others lose a second at most in each of its pauses."""


class ExecutorMode(enum.StrEnum):
    """What an executor does with an `Evict` that has passed the last look."""

    OBSERVE = "observe"
    """It writes nothing but Events, and answers `Observed`."""
    DELETE = "delete"
    """It sets `DisruptionTarget` and deletes, as the upstream controller does."""
    EVICT = "evict"
    """It uses the Eviction API, which respects disruption budgets."""
    REQUEST = "request"
    """It creates an EvictionRequest, and waits for whoever acts on these in the cluster."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PutOff:
    """An eviction that cannot be done now.

    Attributes:
        seconds: until the next try.
        reason: of the delay.
        is_of_cluster: whether no other eviction of the cluster can be done either, so that it is not ready.
        others_seconds: how long the others wait; None for `seconds` if `is_of_cluster`, else not at all.
        is_overload: whether the API server had no room for this request (429). The others wait only if that happens
            to many in a row.
        is_open: whether its EvictionRequest was made and lasts, so that `Accepted` is answered.
    """

    seconds: float
    reason: str
    is_of_cluster: bool = False
    others_seconds: float | None = None
    is_overload: bool = False
    is_open: bool = False

    @property
    def cluster_seconds(self) -> float:
        """How long no eviction of the cluster may begin."""
        if self.others_seconds is not None:
            return min(self.seconds, self.others_seconds)
        return self.seconds if self.is_of_cluster else 0.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PodEvictor:
    """Carries out single evictions of one cluster. Used by several threads.

    Attributes:
        requests: to the cluster's API server.
        looks: at the pods and nodes there.
        mode: which write it may do.
        brakes: of the cluster.
        delete_after_seconds: in the modes `evict` and `request`, how long after its deadline, and after its eviction
            was first read here, a pod is deleted; None for never. The patience of a policy, which the command has,
            takes its place.
        comparison_operators: whether the tolerations `Gt` and `Lt` compare, as in the cluster.
        open_requests: the EvictionRequests of the cluster; None but in the mode `request`.
    """

    requests: PodRequests
    looks: NodeLooks
    mode: ExecutorMode
    brakes: ClusterBrakes
    delete_after_seconds: float | None = None
    comparison_operators: bool = False
    open_requests: OpenRequests | None = None
    _others: OtherObjects = dataclasses.field(default_factory=OtherObjects, init=False)

    def evict(self, command: EvictionCommand, tries: int, seen_at: float = math.inf) -> CommandAnswer | PutOff:
        """Try an eviction once.

        Args:
            command: with the action `Evict`.
            tries: how often it was put off before.
            seen_at: when the first `Evict` of the eviction was read here, monotonic seconds, so that a clock that is
                ahead does not shorten `delete_after_seconds`.
        """
        names = [command.namespace, command.pod, command.node]
        if self.open_requests is not None:
            names.append(command.eviction_id)
        if not all(_is_segment(name) for name in names):
            return CommandAnswer(Outcome.REFUSED, "the command has a name that no object can have")
        done = self._evict(command, tries, seen_at)
        if isinstance(done, CommandAnswer):
            self._others.forget(command.pod_uid)
            if self.open_requests is not None:
                self.open_requests.release(request_key(command), has_left=done.outcome is Outcome.SUCCEEDED)
        return done

    def _evict(self, command: EvictionCommand, tries: int, seen_at: float) -> CommandAnswer | PutOff:
        try:
            for number in range(MOST_LOOKS):
                with contextlib.suppress(NotSentError):
                    done = self._look_and_write(command, tries, seen_at, is_first=number == 0)
                    if done is not None:
                        return done
        except ApiUnreachableError as error:
            return self._in_doubt(command, str(error), _pause_seconds(tries), is_answered=error.is_answered)
        except KubernetesError as error:  # no credentials, or another cluster answers
            return PutOff(seconds=CREDENTIALS_SECONDS, reason=str(error), is_of_cluster=True)
        return CommandAnswer(
            Outcome.FAILED,
            f"the pod changed between check and write {MOST_LOOKS} times, or requests are slow",
        )

    def _look_and_write(
        self, command: EvictionCommand, tries: int, seen_at: float, *, is_first: bool
    ) -> CommandAnswer | PutOff | None:
        """Return None if the pod has changed since the look, or may have changed."""
        if (held := self._held(command, None)) is not None:
            return held
        look_until = time.monotonic() + OLDEST_LOOK_SECONDS
        looked = self._look(command, tries, is_first=is_first)
        if not isinstance(looked, tuple):
            return looked
        pod, zone = looked
        if zone is not None and (held := self._held(command, zone)) is not None:
            return held

        def send_until() -> float:
            return look_until if self._held(command, zone) is None else -math.inf

        patience = self._patience_seconds(command, time.time_ns() // 1_000, seen_at)
        is_late = patience is not None and patience < 0
        if self.open_requests is not None and not pod.is_in_group:
            done = self._request(command, zone, self.open_requests, patience=patience, send_until=send_until)
            if isinstance(done, RequestWait):
                return PutOff(
                    seconds=done.seconds,
                    reason=done.reason,
                    is_open=done.is_open,
                    is_of_cluster=done.is_of_cluster,
                )
            if done is not None:
                return self._of_reply(command, done, tries) if isinstance(done, ApiReply) else done
        if self.mode is ExecutorMode.DELETE or is_late:
            return self._delete(command, pod, tries, send_until)
        return self._of_reply(command, self.requests.evict(command, send_until=send_until), tries)

    def _look(
        self, command: EvictionCommand, tries: int, *, is_first: bool
    ) -> tuple[SeenPod, str | None] | CommandAnswer | PutOff | None:
        """Return the pod and the zone of its node, if the pod has to leave, and this mode may write."""
        requests = self.open_requests
        is_listed = is_first and (requests is None or requests.is_quiet(command))
        pod = self.looks.pod(command, is_first=is_listed)
        if isinstance(pod, ApiReply):
            return self._of_reply(command, pod, tries)
        self._others.note_answer(command.pod_uid, time.monotonic())
        if requests is not None and (left := requests.left(command, pod)) is not None:
            return left
        node = None if pod is None else self.looks.node(command)
        if isinstance(node, ApiReply):
            return self._of_reply(command, node, tries)
        now_us = time.time_ns() // 1_000
        veto = last_look(command, pod, node, now_us=now_us, comparison_operators=self.comparison_operators)
        if veto is not None:
            return CommandAnswer(veto.outcome, veto.reason)
        assert pod is not None and node is not None  # noqa: S101, PT018 - without one of them there is a veto
        if self.mode is ExecutorMode.OBSERVE:
            return CommandAnswer(Outcome.OBSERVED, "observes only")
        return pod, node.zone

    def _request(
        self,
        command: EvictionCommand,
        zone: str | None,
        requests: OpenRequests,
        *,
        patience: float | None,
        send_until: Callable[[], float],
    ) -> CommandAnswer | RequestWait | ApiReply | None:
        """Make or follow the EvictionRequest; None if the pod is deleted now instead."""
        if patience is not None and patience < 0:
            return requests.withdraw(command, send_until)
        found = requests.advance(command, zone, is_patient=patience is not None, send_until=send_until)
        if isinstance(found, RequestWait) and patience is not None:
            return dataclasses.replace(found, seconds=min(found.seconds, patience + _LATE_SECONDS))
        return found

    def _delete(
        self, command: EvictionCommand, pod: SeenPod, tries: int, send_until: Callable[[], float]
    ) -> CommandAnswer | PutOff | None:
        version: str | ApiReply = pod.resource_version
        if not pod.is_disruption_target:
            marked = self.requests.mark(command, pod, send_until=send_until)
            version = self.requests.marked_version(marked) if marked.meaning is Meaning.DONE else marked
        if isinstance(version, ApiReply):
            return self._of_reply(command, version, tries)
        return self._of_reply(command, self.requests.delete(command, version, send_until=send_until), tries)

    def _held(self, command: EvictionCommand, zone: str | None) -> CommandAnswer | PutOff | None:
        """Return what becomes of an eviction that a brake holds, or may hold; None if it may go."""
        if (objection := self.brakes.objection()) is not None:
            return PutOff(seconds=UNKNOWN_SECONDS, reason=objection)
        held = self.brakes.held(command, time.time_ns() // 1_000, zone=zone)
        if held is None:
            return None
        return held.answer if held.wait_seconds is None else PutOff(seconds=held.wait_seconds, reason=held.reason)

    def _of_reply(self, command: EvictionCommand, reply: ApiReply, tries: int) -> CommandAnswer | PutOff | None:
        if reply.meaning not in _OF_CLUSTER:
            self._others.note_answer(command.pod_uid, time.monotonic())
        if reply.meaning is Meaning.CHANGED:
            return None
        if (outcome := _OUTCOMES.get(reply.meaning)) is not None:
            return CommandAnswer(outcome, _TEXTS.get(outcome, reply.text))
        seconds = reply.retry_after_seconds or _pause_seconds(tries)
        if reply.meaning is Meaning.BUDGET:
            seconds = reply.retry_after_seconds or BUDGET_SECONDS
        elif reply.meaning is Meaning.CREDENTIALS:
            seconds = CREDENTIALS_SECONDS
        elif reply.meaning in _OF_CLUSTER:
            seconds = min(seconds, _LONGEST_PAUSE_SECONDS)
        if reply.meaning is Meaning.DOUBTFUL:
            return self._in_doubt(command, reply.text, seconds, is_answered=True)
        return PutOff(
            seconds=seconds,
            reason=reply.text,
            is_of_cluster=reply.meaning in _OF_CLUSTER,
            is_overload=reply.meaning is Meaning.CLUSTER_WAITS,
        )

    def _in_doubt(self, command: EvictionCommand, reason: str, seconds: float, *, is_answered: bool) -> PutOff:
        """Put off an eviction without an answer of the API server; the others too, unless they get answers.

        Without any answer the cluster is not ready at once; after a strange answer to one request it may still be.
        """
        trouble = self._others.trouble(command.pod_uid, time.monotonic())
        is_hindered = trouble in {Trouble.OF_CLUSTER, Trouble.PROBABLY_OF_CLUSTER}
        is_alone = trouble in {Trouble.PERHAPS_OF_CLUSTER, Trouble.PROBABLY_OF_CLUSTER}
        return PutOff(
            seconds=seconds,
            reason=reason,
            is_of_cluster=is_hindered or (is_alone and not is_answered),
            others_seconds=ALONE_SECONDS if is_alone else None,
        )

    def _patience_seconds(self, command: EvictionCommand, now_us: int, seen_at: float) -> float | None:
        """Return in how many seconds the pod may be deleted in any case, less than 0 if it may be; None for never."""
        deadline_us, seconds = instant_us(command.deadline), self.delete_after_seconds
        if command.delete_after is not None:
            seconds = (instant_us(command.delete_after) - deadline_us) / SECOND_US
        if seconds is None:
            return None
        return max(seen_at + seconds - time.monotonic(), (deadline_us - now_us) / SECOND_US + seconds)


_OF_CLUSTER: Final = frozenset({Meaning.DOUBTFUL, Meaning.CLUSTER_WAITS, Meaning.CREDENTIALS})
"""Meanings that do not show that the API server works."""


_OUTCOMES: Final = {
    Meaning.DONE: Outcome.SUCCEEDED,
    Meaning.GONE: Outcome.GONE,
    Meaning.REFUSED: Outcome.REFUSED,
    Meaning.FAILED: Outcome.FAILED,
}
_TEXTS: Final = {Outcome.SUCCEEDED: "", Outcome.GONE: "there is no such pod"}


def _pause_seconds(tries: int) -> float:
    return float(min(_FIRST_PAUSE_SECONDS * 2 ** min(tries, 10), _LONGEST_PAUSE_SECONDS))


def _is_segment(name: str) -> bool:
    """As `IsValidPathSegmentName` (apimachinery, pkg/api/validation/path): other names would make another path."""
    return bool(name) and name not in {".", ".."} and "/" not in name and "%" not in name
