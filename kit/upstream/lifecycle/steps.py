"""What the controller's work waits for, so that one description of it runs both at once and at a real one's pace.

A piece of work is a generator: it yields what it waits for, and receives the time at which it continues. `at_once`
answers every wait with the same instant; `LifecycleClock` answers with the times of its `RequestPace`.
"""

import dataclasses
from collections.abc import Callable, Generator
from typing import Final, TypeAlias, TypeVar

_Result = TypeVar("_Result")


@dataclasses.dataclass(frozen=True, slots=True)
class ApiRequest:
    """One request to the API server: a token of the client's limiter, then the answer."""


@dataclasses.dataclass(frozen=True, slots=True)
class Pause:
    """A time in which nothing is done.

    Attributes:
        wait_us: how long.
    """

    wait_us: int


@dataclasses.dataclass(frozen=True, slots=True)
class QueueUnlocked:
    """The end of the pass over a zone's queue: a pass holds the lock that an exchange of the limiter needs.

    Attributes:
        zone: key of the zone.
    """

    zone: str


@dataclasses.dataclass(frozen=True, slots=True)
class NodesChecked:
    """The check of all nodes by the round's workers (`ParallelizeUntil`).

    Attributes:
        checks: each begins, in this order, when a worker is free, and takes the time at which it begins.
    """

    checks: "tuple[Callable[[int], Steps[None]], ...]"


TaskWait: TypeAlias = ApiRequest | Pause | QueueUnlocked | NodesChecked
Steps: TypeAlias = Generator[TaskWait, int, _Result]

API_REQUEST: Final = ApiRequest()
NOW: Final = Pause(0)
"""Asks for the time, after work whose waits were its own."""


def at_once(steps: Steps[_Result], now_us: int, after_each: Callable[[], None] = lambda: None) -> _Result:
    """Do a piece of work in one instant.

    Args:
        steps: the work.
        now_us: the instant.
        after_each: is called whenever the work waits, and at its end.
    """
    try:
        wait = next(steps)
        while True:
            after_each()
            if isinstance(wait, NodesChecked):
                for check in wait.checks:
                    at_once(check(now_us), now_us, after_each)
            wait = steps.send(now_us)
    except StopIteration as end:
        after_each()
        result: _Result = end.value
        return result
