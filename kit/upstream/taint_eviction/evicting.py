"""One eviction by upstream's controller: an Event, then up to five attempts (semantics.md 6.9).

Kubernetes `pkg/controller/tainteviction/taint_eviction.go`: `deletePodHandler`, `addConditionAndDeletePod`. Upstream
does not check UID, phase, mirror annotation, deletion timestamp or taint again. A pod that is gone counts as a failure.
"""

from heapq import heappop, heappush
from typing import Final

import msgspec

from evictstream.kit.upstream.taint_eviction.cache import WatchCache
from evictstream.kit.upstream.taint_eviction.metrics import DeletionMetrics
from evictstream.kit.upstream.taint_eviction.outcomes import (
    AttemptFailed,
    EventEmitted,
    EvictionForgotten,
    PodDeleted,
    Request,
    marking,
)

ATTEMPTS: Final = 5
PAUSE_US: Final = 10_000
"""Wait after every failed attempt, the last one included, before the key is removed."""

_WITH_CONDITION: Final = (Request.READ, Request.WRITE_CONDITION, Request.DELETE)
_WITHOUT_CONDITION: Final = (Request.READ, Request.DELETE)  # nothing to write if the pod carries it already


class ApiRefusal(msgspec.Struct, frozen=True, gc=False):
    """A period in which the API server refuses requests: a webhook, a quota, an outage.

    Attributes:
        from_us: first instant.
        until_us: first instant after it.
        request: which request of an attempt is refused.
        address: the pod concerned, None for all.
    """

    from_us: int
    until_us: int
    request: Request = Request.DELETE
    address: str | None = None


class ApiServer(msgspec.Struct, frozen=True, gc=False):
    """How the API server answers the controller.

    Attributes:
        refusals: when it refuses; otherwise every request succeeds.
        attempt_us: how long an attempt takes, from its start to its answer. The pod is read and deleted at its end.
            Models a slow server, and the waits in the client's own rate limiter (semantics.md 13 row 32).
    """

    refusals: tuple[ApiRefusal, ...] = ()
    attempt_us: int = 0

    def refused(self, address: str, requests: tuple[Request, ...], at_us: int) -> Request | None:
        """Find the first of these requests that is refused at an instant."""
        for request in requests:
            for refusal in self.refusals:
                is_meant = refusal.request is request and refusal.address in (None, address)
                if is_meant and refusal.from_us <= at_us < refusal.until_us:
                    return request
        return None


class _Run(msgspec.Struct, gc=False):
    """An eviction that is being carried out; `attempt` is the current one, from 1."""

    address: str
    fire_at_us: int
    attempt: int = 1


class Evictor:
    """Carries evictions out, several side by side.

    Attributes:
        metrics: counter and histogram.
    """

    __slots__ = ("_api", "_cache", "_marked", "_runs", "_serial", "metrics")

    def __init__(self, api: ApiServer, cache: WatchCache) -> None:
        """Start without evictions.

        Args:
            api: the server's answers.
            cache: the pods that the server knows.
        """
        self._api = api
        self._cache = cache
        self._marked: set[str] = set()  # UIDs of pods whose condition this controller wrote
        self._runs: list[tuple[int, int, _Run]] = []
        self._serial = 0
        self.metrics = DeletionMetrics()

    def begin(self, address: str, fire_at_us: int, at_us: int) -> EventEmitted:
        """Start an eviction; returns the Event that precedes the first attempt."""
        self._schedule(_Run(address, fire_at_us), at_us + self._api.attempt_us)
        return marking(at_us, address)

    def stop(self) -> None:
        """Drop all running evictions, as the end of the process does; conditions that were written stay."""
        self._runs.clear()
        self.metrics = DeletionMetrics()

    def next_us(self) -> int | None:
        """Return when the next attempt is answered, or the last pause ends; None if no eviction runs."""
        return self._runs[0][0] if self._runs else None

    def step(self) -> AttemptFailed | PodDeleted | EvictionForgotten:
        """Run the next step of the next eviction; a deletion, or forgetting it, ends the eviction.

        Raises:
            IndexError: no eviction runs; check `next_us` first.
        """
        at_us, _, run = heappop(self._runs)
        if run.attempt > ATTEMPTS:
            return EvictionForgotten(at_us, run.address)
        pod = self._cache.pods.get(run.address)
        if pod is None:
            return self._fail(run, Request.READ, at_us)
        wants_condition = pod.uid not in self._marked
        requests = _WITH_CONDITION if wants_condition else _WITHOUT_CONDITION
        refused = self._api.refused(run.address, requests, at_us)
        wrote_condition = wants_condition and refused in (None, Request.DELETE)
        if wrote_condition:
            self._marked.add(pod.uid)
        if refused is not None:
            return self._fail(run, refused, at_us)
        self.metrics.observe(run.fire_at_us, at_us)
        return PodDeleted(
            at_us,
            run.address,
            uid=pod.uid,
            node_name=pod.node_name,
            attempt=run.attempt,
            fire_at_us=run.fire_at_us,
            wrote_condition=wrote_condition,
        )

    def _fail(self, run: _Run, request: Request, at_us: int) -> AttemptFailed:
        failed = AttemptFailed(at_us, run.address, run.attempt, request)
        run.attempt += 1
        takes_us = self._api.attempt_us if run.attempt <= ATTEMPTS else 0
        self._schedule(run, at_us + PAUSE_US + takes_us)
        return failed

    def _schedule(self, run: _Run, at_us: int) -> None:
        self._serial += 1
        heappush(self._runs, (at_us, self._serial, run))
