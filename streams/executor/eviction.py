"""One eviction: a last look, then the write that the mode allows, and what came of it."""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import time
from typing import Final

import msgspec

from evictstream.models.execution.command_log import CommandAnswer
from evictstream.models.execution.last_look import SeenPod, last_look
from evictstream.models.instants import MICROSECONDS_PER_SECOND, instant_us
from evictstream.models.messages.command import EvictionCommand
from evictstream.models.messages.vocabulary import Outcome
from evictstream.streams.errors import ApiRefusedError, ApiUnreachableError, KubernetesError, NotSentError
from evictstream.streams.executor.pod_requests import NOT_FOUND, PodRequests
from evictstream.streams.kubernetes.connection import ApiAnswer

MOST_LOOKS: Final = 3
"""Each change of the pod between look and write needs another look. Nothing changes a pod that often."""

OLDEST_LOOK_SECONDS: Final = 15.0
"""A write that would be sent later than this after the begin of its look needs another one: the process was frozen, for
longer than a session, credentials were renewed, or requests take seconds. No precondition would tell that the node's
taint is gone."""

FIRST_PAUSE_SECONDS: Final = 1.0
LONGEST_PAUSE_SECONDS: Final = 30.0
"""Between tries of an eviction that the API server cannot do now."""

CREDENTIALS_SECONDS: Final = 5.0
"""Between tries while credentials are refused, or another cluster answers. They are read again each time: a token that
rotates is soon there."""

BUDGET_SECONDS: Final = 10.0
"""Between tries against a disruption budget, where the API server does not say when; it usually says 10 s."""

UNAUTHORIZED: Final = 401
FORBIDDEN: Final = 403
CONFLICT: Final = 409
TOO_MANY_REQUESTS: Final = 429
SERVER_ERRORS: Final = 500


class ExecutorMode(enum.StrEnum):
    """What an executor does with an `Evict` that has passed the last look."""

    OBSERVE = "observe"
    """Nothing: it answers `Observed`."""
    DELETE = "delete"
    """It sets `DisruptionTarget` and deletes, as upstream's controller."""
    EVICT = "evict"
    """It asks the Eviction API, which keeps to disruption budgets."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PutOff:
    """An eviction that cannot be done now.

    Attributes:
        seconds: until the next try.
        reason: why.
        is_of_cluster: whether no other eviction of the cluster can be done either.
    """

    seconds: float
    reason: str
    is_of_cluster: bool = False


class _Cause(msgspec.Struct):
    reason: str = ""


class _Details(msgspec.Struct):
    causes: list[_Cause] | None = None


class _Status(msgspec.Struct):
    details: _Details | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PodEvictor:
    """Carries out single evictions of one cluster. Used by several threads.

    Attributes:
        requests: to the cluster's API server.
        mode: what it may do.
        delete_after_seconds: in the mode `evict`, how long after its deadline a pod is deleted without asking the
            Eviction API; None never.
        comparison_operators: whether the tolerations `Gt` and `Lt` compare, as in the cluster.
    """

    requests: PodRequests
    mode: ExecutorMode
    delete_after_seconds: float | None = None
    comparison_operators: bool = False

    def evict(self, command: EvictionCommand, tries: int) -> CommandAnswer | PutOff:
        """Do it, once.

        Args:
            command: with the action `Evict`.
            tries: how often it was put off before.
        """
        if not (_is_segment(command.namespace) and _is_segment(command.pod) and _is_segment(command.node)):
            return CommandAnswer(Outcome.REFUSED, "a name in the command cannot be that of an object")
        try:
            for _ in range(MOST_LOOKS):
                with contextlib.suppress(NotSentError):
                    done = self._look_and_write(command, tries)
                    if done is not None:
                        return done
        except ApiRefusedError as refusal:
            return self._of_status(
                refusal.status, refusal.reason, tries, retry_after_seconds=refusal.retry_after_seconds
            )
        except ApiUnreachableError as error:
            return PutOff(seconds=_pause_seconds(tries), reason=str(error), is_of_cluster=True)
        except KubernetesError as error:  # no credentials, or another cluster than the one that is meant
            return PutOff(seconds=CREDENTIALS_SECONDS, reason=str(error), is_of_cluster=True)
        return CommandAnswer(
            Outcome.FAILED,
            f"{MOST_LOOKS} looks were out of date before the write: the pod changed, or requests are slow",
        )

    def _look_and_write(self, command: EvictionCommand, tries: int) -> CommandAnswer | PutOff | None:
        """Return None if the pod has changed since the look, or may have."""
        look_until = time.monotonic() + OLDEST_LOOK_SECONDS
        pod = self.requests.pod(command)
        node = None if pod is None else self.requests.node(command)
        now_us = time.time_ns() // 1_000
        veto = last_look(command, pod, node, now_us=now_us, comparison_operators=self.comparison_operators)
        if veto is not None:
            return CommandAnswer(veto.outcome, veto.reason)
        assert pod is not None  # noqa: S101 - without a pod there is a veto
        if self.mode is ExecutorMode.OBSERVE:
            return CommandAnswer(Outcome.OBSERVED, "observes only")
        if self.mode is ExecutorMode.DELETE or self._is_past_asking(command, now_us):
            return self._delete(command, pod, tries, look_until)
        answer = self.requests.evict(command, send_until=look_until)
        if answer.status == TOO_MANY_REQUESTS and _is_of_budget(answer):
            return PutOff(seconds=answer.retry_after_seconds or BUDGET_SECONDS, reason=answer.said().message)
        return self._of_write(answer, tries)

    def _delete(
        self, command: EvictionCommand, pod: SeenPod, tries: int, look_until: float
    ) -> CommandAnswer | PutOff | None:
        version = pod.resource_version
        if not pod.is_disruption_target:
            marked = self.requests.mark(command, pod, send_until=look_until)
            if not marked.is_done:
                return self._of_write(marked, tries)
            version = self.requests.marked_version(marked)
        return self._of_write(self.requests.delete(command, version, send_until=look_until), tries)

    def _of_write(self, answer: ApiAnswer, tries: int) -> CommandAnswer | PutOff | None:
        if answer.is_done:
            return CommandAnswer(Outcome.SUCCEEDED, "")
        if answer.status == CONFLICT:
            return None
        said = answer.said()
        reason = said.message or said.reason
        return self._of_status(answer.status, reason, tries, retry_after_seconds=answer.retry_after_seconds)

    def _of_status(
        self, status: int, reason: str, tries: int, *, retry_after_seconds: float | None
    ) -> CommandAnswer | PutOff:
        text = f"the API server answered {status}: {reason or 'no reason given'}"
        if status == NOT_FOUND:
            return CommandAnswer(Outcome.GONE, "there is no such pod")
        if status == FORBIDDEN:
            return CommandAnswer(Outcome.REFUSED, text)
        if status == TOO_MANY_REQUESTS:
            seconds = min(retry_after_seconds or _pause_seconds(tries), LONGEST_PAUSE_SECONDS)
            return PutOff(seconds=seconds, reason=text, is_of_cluster=True)
        if status == UNAUTHORIZED:
            return PutOff(seconds=CREDENTIALS_SECONDS, reason=text, is_of_cluster=True)
        if status >= SERVER_ERRORS:  # the server, a webhook, or several disruption budgets for one pod
            return PutOff(seconds=retry_after_seconds or _pause_seconds(tries), reason=text)
        return CommandAnswer(Outcome.FAILED, text)

    def _is_past_asking(self, command: EvictionCommand, now_us: int) -> bool:
        if self.delete_after_seconds is None:
            return False
        return now_us > instant_us(command.deadline) + int(self.delete_after_seconds * MICROSECONDS_PER_SECOND)


def _pause_seconds(tries: int) -> float:
    return float(min(FIRST_PAUSE_SECONDS * 2 ** min(tries, 10), LONGEST_PAUSE_SECONDS))


def _is_segment(name: str) -> bool:
    """As `IsValidPathSegmentName` (apimachinery, pkg/api/validation/path): what else would be another path."""
    return bool(name) and name not in {".", ".."} and "/" not in name and "%" not in name


def _is_of_budget(answer: ApiAnswer) -> bool:
    """Whether a disruption budget refused, and not the server's own limits."""
    try:
        details = msgspec.json.decode(answer.body, type=_Status).details
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return any(cause.reason == "DisruptionBudget" for cause in (details.causes if details else None) or ())
