"""How fast the controller's requests are: its client's limiter, the API server's answers, and its workers.

Sources: `--kube-api-qps` and `--kube-api-burst` in `pkg/controller/apis/config/v1alpha1/defaults.go`, the worker sizes
in `pkg/controller/nodelifecycle/node_lifecycle_controller.go`, `staging/src/k8s.io/client-go/rest/request.go`
(`tryThrottle`), `staging/src/k8s.io/client-go/tools/record/event.go` (`maxQueuedEvents`).

One client serves the whole controller. Rounds, passes over the queues, the NoSchedule pass, arriving pods and Events
all take their tokens from one bucket, in the order in which they ask.
"""

import dataclasses
import math
from typing import Final

from evictstream.kit.upstream.lifecycle.settings import NO_EXECUTE_PASS_PERIOD_US, SettingError
from evictstream.models.instants import SECOND_US

MAX_QUEUED_EVENTS: Final = 1000
"""Events that wait to be sent; those beyond are dropped; not a flag."""

NODE_WRITE_TRIES: Final = 5
"""Tries of writing a silent node's conditions in one round, when others change the node meanwhile; not a flag."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RequestPace:
    """The numbers that decide how long a round takes. The defaults are those of the release.

    Attributes:
        requests_per_second: `--kube-api-qps`; `math.inf` stands for no limit.
        burst: `--kube-api-burst`, also the tokens at the start.
        answer_us: time from a token to the answer of the API server. In the recordings 3 to 10 ms.
        node_us: time that a worker spends on each node before its first request; next to nothing, unless the controller
            manager lacks CPU.
        node_workers: nodes that a round checks at a time, and as many more for the NoSchedule pass
            (`nodeUpdateWorkerSize`).
        pod_workers: pods that have just arrived on failing nodes and are marked at a time (`podUpdateWorkerSize`).
        pass_offset_us: how long after the first round the first pass over the queues begins. Upstream it is chance, up
            to the 100 ms between two passes.
        queues_go_first: whether requests of passes over the queues get the next token before all others that wait.
            Upstream the order of asking decides, and that is chance among goroutines.
    """

    requests_per_second: float = 20.0
    burst: int = 30
    answer_us: int = 5_000
    node_us: int = 0
    node_workers: int = 8
    pod_workers: int = 4
    pass_offset_us: int = 0
    queues_go_first: bool = False

    def __post_init__(self) -> None:
        """Refuse numbers with which no request or no node would ever have its turn.

        Raises:
            SettingError: a rate, a burst or a number of workers is not positive, or a time is negative.
        """
        if math.isnan(self.requests_per_second) or self.requests_per_second <= 0:
            raise SettingError("requests_per_second", "must be positive")
        for field in ("burst", "node_workers", "pod_workers"):
            if getattr(self, field) <= 0:
                raise SettingError(field, "must be positive")
        for field in ("answer_us", "node_us", "pass_offset_us"):
            if getattr(self, field) < 0:
                raise SettingError(field, "must not be negative")


INSTANT: Final = RequestPace(requests_per_second=math.inf, answer_us=0)
"""Every request is answered in the instant in which it is made, so a round takes no time."""


_PLAUSIBLE_ANSWERS_US: Final = (50_000, 250_000, 1_000_000)
"""A busy API server, and Kubernetes' own limit: 99 of 100 single writes within a second."""


def plausible_paces(given: RequestPace | None = None) -> tuple[RequestPace, ...]:
    """List paces at which a real controller may run, from an instant to a second for each request.

    For each time of an answer there are four: with all tokens at the start or, after other work, with one; and with the
    chance of timing against the queues or for them.

    Args:
        given: what is known of the controller, such as the flags of its client; the release's defaults if absent.
    """
    base = RequestPace() if given is None else given
    paces = [INSTANT]
    for answer_us in sorted({base.answer_us, *_PLAUSIBLE_ANSWERS_US}):
        for burst in dict.fromkeys((base.burst, 1)):
            against = dataclasses.replace(base, answer_us=answer_us, burst=burst)
            # A pass that begins right after the first conditions are written finds the most nodes queued.
            offset_us = (base.node_us + answer_us + 1) % NO_EXECUTE_PASS_PERIOD_US
            paces += [against, dataclasses.replace(against, pass_offset_us=offset_us, queues_go_first=True)]
    return tuple(paces)


class ClientLimiter:
    """The client's token bucket: each request reserves the next token, so they go out in the order of asking.

    Unlike the zones' `TokenBucket` it makes its callers wait instead of refusing them.
    """

    def __init__(self, pace: RequestPace) -> None:
        """Make a full bucket.

        Args:
            pace: its rate and its burst.
        """
        self._interval_us = round(SECOND_US / pace.requests_per_second)
        self._most_spared_us = (pace.burst - 1) * self._interval_us
        self._next_us: int | None = None  # when the next token is due; it lies behind while tokens are left

    def reserve(self, now_us: int, *, goes_first: bool = False) -> int:
        """Take the next token, and name the instant from which it counts.

        Args:
            now_us: the time; it must not go backwards.
            goes_first: not to wait behind reservations; later ones wait longer for it.
        """
        full_us = now_us - self._most_spared_us
        due_us = full_us if self._next_us is None else max(self._next_us, full_us)
        self._next_us = due_us + self._interval_us
        return min(max(due_us, now_us), now_us + self._interval_us) if goes_first else max(due_us, now_us)
