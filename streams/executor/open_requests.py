"""The EvictionRequests of one cluster's evictions: made, followed, and withdrawn when they are of no use any more.

One rule cleans up: a request whose eviction is not being carried out here is withdrawn and deleted. So it does not
matter why an eviction has ended, nor whether the executor was killed in between: its successor finds the request in
the list of the cluster, by the eviction's id.
"""

from __future__ import annotations

import dataclasses
import math
import threading
import time
from collections.abc import Callable, Collection
from typing import Final

from evictstream.models.execution.api_answers import Meaning
from evictstream.models.execution.command_log import CommandAnswer
from evictstream.models.execution.eviction_requests import (
    EVICTION,
    NOTICED_SECONDS,
    CleanUp,
    RequestKey,
    RequestState,
    clean_up,
    is_for,
    is_ignored,
    is_leaving,
    request_key,
    requested_answer,
)
from evictstream.models.execution.last_look import SeenPod
from evictstream.models.messages.command import EvictionCommand
from evictstream.models.messages.vocabulary import Outcome
from evictstream.streams.executor.pod_requests import ApiReply
from evictstream.streams.executor.request_calls import RequestCalls
from evictstream.streams.executor.request_watch import RequestWatch

ACCEPTED_SECONDS: Final = 20.0
"""Between two looks at a pod whose request lasts, and between two `Accepted`: the contract of executors asks for one
every 20 s."""

MOST_MADE: Final = 10_000
"""Requests that are open at once; further evictions wait. With `ACCEPTED_SECONDS` they cost 500 looks and 500 results
a second, and leave half of the queue to others."""

_FULL_SECONDS: Final = 5.0
_SOON_SECONDS: Final = 1.0
"""Between tries while an earlier request is being withdrawn, or the requests are not known."""

_HAS_LEFT: Final = -math.inf
"""When the request of a pod that has left was withdrawn: long ago, as it were."""

_WAKE_SECONDS: Final = 1.0
"""The least time between two looks because of changes of one request: whoever may write its status may write often."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RequestWait:
    """The request of an eviction lasts, or cannot be made yet.

    Attributes:
        seconds: until the next look.
        reason: for people.
        is_open: whether the request was made and lasts.
        is_of_cluster: whether no other request can be made either.
    """

    seconds: float
    reason: str
    is_open: bool = False
    is_of_cluster: bool = False


@dataclasses.dataclass(slots=True, kw_only=True)
class _Made:
    uid: str
    at: float
    zone: str | None
    withdrawn_at: float | None = None
    woken_at: float = -math.inf


class OpenRequests:
    """Makes and follows the requests of one cluster. Used by several threads.

    Attributes:
        wake: is called with the id of an eviction whose request has changed so that it may have ended.
        is_ignored: whether no controller has seen the latest request that was old enough to tell.
    """

    def __init__(self, cluster: str, calls: RequestCalls) -> None:
        self.wake: Callable[[str], None] = lambda _: None
        self.is_ignored = False
        self.watch = RequestWatch(cluster, calls, self._changed, is_own=self._is_own)
        self.calls = calls
        self._made: dict[RequestKey, _Made] = {}
        self._ending: dict[RequestKey, float | None] = {}  # when its withdrawal was seen first
        self._lock = threading.Lock()

    def __len__(self) -> int:
        """How many requests of the cluster there are."""
        return len(self.watch)

    def is_quiet(self, command: EvictionCommand) -> bool:
        """Whether the command's request was made and lasts, as far as is known: then a cached pod will do.

        Before it is made, and for its end, the pod is read from etcd: a request has no version of the pod as
        precondition, and a claim may be newer than a cache.
        """
        made = self._made.get(request_key(command))
        return made is not None and not self._may_have_ended(request_key(command), made)

    def left(self, command: EvictionCommand, pod: SeenPod | None) -> CommandAnswer | None:
        """Return `Succeeded` if there is a request for the command's pod, and the pod is terminating or gone."""
        state = self.watch.get(request_key(command))
        is_made = request_key(command) in self._made or (state is not None and is_for(state, command))
        return CommandAnswer(Outcome.SUCCEEDED, "") if is_made and is_leaving(pod, command) else None

    def advance(
        self, command: EvictionCommand, zone: str | None, *, is_patient: bool, send_until: Callable[[], float]
    ) -> CommandAnswer | RequestWait | ApiReply:
        """Make the request for a pod that has to leave, or return how it stands.

        Args:
            command: with the action `Evict`.
            zone: of the command's node.
            is_patient: as for `requested_answer`.
            send_until: as for `RequestCalls.create`.

        Raises:
            NotSentError: it was not sent in time.
            KubernetesError: no answer.
        """
        key = request_key(command)
        with self._lock:
            if key in self._ending:
                return RequestWait(seconds=_SOON_SECONDS, reason="its earlier EvictionRequest is being withdrawn")
            made = self._made.get(key)
        if made is None:
            if self.watch.problem is not None:
                return RequestWait(
                    seconds=_SOON_SECONDS, reason=self.watch.problem, is_of_cluster=self.watch.has_failed
                )
            made_or_not = self._make(command, zone, send_until)
            if not isinstance(made_or_not, _Made):
                return made_or_not
            made = made_or_not
        made.zone = zone
        state, seconds = self.watch.get(key), time.monotonic() - made.at
        if state is not None and state.is_withdrawn_here:
            self.release(key)
            return RequestWait(seconds=_SOON_SECONDS, reason="its EvictionRequest is withdrawn")
        if state is not None and state.is_noticed:
            self.is_ignored = False
        elif is_ignored(state, seconds):
            self.is_ignored = True
        answer = requested_answer(state, made.uid, seconds=seconds, is_patient=is_patient)
        if answer is not None and self.watch.problem is None:
            return answer
        unnoticed = NOTICED_SECONDS - seconds if state is not None and not state.is_noticed else 0.0
        wait = min(ACCEPTED_SECONDS, unnoticed) if unnoticed > 0 else ACCEPTED_SECONDS
        return RequestWait(seconds=wait, reason=f"EvictionRequest {key.name} is open", is_open=True)

    def withdraw(self, command: EvictionCommand, send_until: Callable[[], float]) -> RequestWait | ApiReply | None:
        """Withdraw the command's request before its pod is deleted otherwise; None once the pod may be.

        Raises: as `advance`.
        """
        state, now = self.watch.get(request_key(command)), time.monotonic()
        if state is None or not is_for(state, command):
            return None
        with self._lock:  # of before a restart, if it was not made here
            made = self._made.setdefault(state.key, _Made(uid=state.uid, at=now, zone=None))
        if state.intent == EVICTION:
            after = self.calls.withdraw(state, send_until=send_until)
            if isinstance(after, RequestState):
                self.watch.learn(after)
                made.withdrawn_at = now
                state = after
            elif after.meaning is Meaning.GONE:
                self.watch.forget(state)
                return None
            elif after.meaning is Meaning.CHANGED:
                return RequestWait(seconds=_SOON_SECONDS, reason="its EvictionRequest has just changed")
            else:
                return after
        # Without a controller so far there is none to wait for.
        since = math.inf if is_ignored(state, now - made.at) else now - (made.withdrawn_at or made.at)
        if clean_up(state, since) is CleanUp.WAIT:
            return RequestWait(
                seconds=_SOON_SECONDS, reason="its EvictionRequest is withdrawn; the pod is deleted next"
            )
        return None

    def release(self, key: RequestKey, *, has_left: bool = False) -> None:
        """Have a request withdrawn and deleted, if there is one: its eviction has ended, or is not wanted now.

        If its pod `has_left`, there is nothing to withdraw.
        """
        with self._lock:
            if key not in self._ending and (key in self._made or self.watch.get(key) is not None):
                self._ending[key] = _HAS_LEFT if has_left else None

    def known(self) -> dict[RequestKey, str | None]:
        """Return the zones of all requests, also of those that an earlier executor has made."""
        with self._lock:
            zones: dict[RequestKey, str | None] = dict.fromkeys(self.watch.keys())
            return zones | {key: made.zone for key, made in self._made.items()}

    def release_others(self, known: Collection[RequestKey], wanted: Collection[RequestKey]) -> None:
        """Release what is known, and not wanted any more.

        Args:
            known: requests, taken before `wanted`: so a request that was made in between is not among them.
            wanted: requests for the evictions that are carried out, and not held.
        """
        for key in known:
            if key not in wanted:
                self.release(key)

    def abandon(self) -> None:
        """Forget all requests without a change: another executor carries their evictions out."""
        with self._lock:
            self._made.clear()
            self._ending.clear()

    def ending(self) -> list[tuple[RequestState, CleanUp]]:
        """List the requests that have to be withdrawn or deleted now, and what to do; forget those that are gone."""
        now = time.monotonic()
        due: list[tuple[RequestState, CleanUp]] = []
        with self._lock:
            for key, since in list(self._ending.items()):
                state = self.watch.get(key)
                if state is None:
                    if self.watch.problem is None:
                        del self._ending[key]
                        self._made.pop(key, None)
                    continue
                withdrawn_at = now if since is None and state.intent != EVICTION else since
                self._ending[key] = withdrawn_at
                seconds = None if withdrawn_at is None else now - withdrawn_at
                step = clean_up(state, seconds, has_left=withdrawn_at == _HAS_LEFT)
                if step is not CleanUp.WAIT:
                    due.append((state, step))
        return sorted(due, key=lambda one: one[1].value)  # what is wanted least is withdrawn first

    def _make(
        self, command: EvictionCommand, zone: str | None, send_until: Callable[[], float]
    ) -> _Made | CommandAnswer | RequestWait | ApiReply:
        key = request_key(command)
        found: RequestState | ApiReply | None = self.watch.get(key)
        if found is None:
            if len(self._made) >= MOST_MADE:
                return RequestWait(seconds=_FULL_SECONDS, reason=f"{MOST_MADE} EvictionRequests are open")
            found = self.calls.create(command, send_until=send_until)
            if isinstance(found, ApiReply) and found.meaning is Meaning.CHANGED:  # of before a restart
                found = self.calls.get(command)
        if isinstance(found, ApiReply):
            if found.meaning is Meaning.GONE:
                return RequestWait(seconds=_SOON_SECONDS, reason="its earlier EvictionRequest has just gone")
            return found
        if not is_for(found, command):
            return CommandAnswer(Outcome.FAILED, f"another EvictionRequest has the name {command.eviction_id}")
        if found.is_withdrawn_here or found.is_deleting:
            self.watch.learn(found)
            self.release(key)
            return RequestWait(seconds=_SOON_SECONDS, reason="its earlier EvictionRequest is being withdrawn")
        made = _Made(uid=found.uid, at=time.monotonic(), zone=zone)
        with self._lock:  # before it is learned, so that no list in between drops it
            self._made[key] = made
        self.watch.learn(found)
        return made

    def _is_own(self, key: RequestKey) -> bool:
        return key in self._made or key in self._ending

    def _changed(self, key: RequestKey) -> None:
        made = self._made.get(key)
        state = self.watch.get(key)
        if state is not None and state.is_noticed:
            self.is_ignored = False
        now = time.monotonic()
        if made is not None and self._may_have_ended(key, made) and now - made.woken_at >= _WAKE_SECONDS:
            made.woken_at = now
            self.wake(key.name)

    def _may_have_ended(self, key: RequestKey, made: _Made) -> bool:
        state = self.watch.get(key)
        if state is None or state.is_evicted:
            return True
        return requested_answer(state, made.uid, seconds=0.0, is_patient=True) is not None
