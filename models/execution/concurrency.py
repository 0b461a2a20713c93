"""How many evictions of a cluster run at once: as many as its API server answers without making them wait.

An API server has no use for more requests in flight than it works on; the others only wait in it, and delay what its
other clients ask for. Whether they wait shows in the time of an answer: it is the shortest time that was seen plus the
time in the server's queue. So the number grows while answers take hardly longer than the quickest ones, and shrinks
while they take longer, or when the server refuses (as TCP Vegas does for packets: Brakmo and Peterson, 1995).

A few slow objects, such as those behind a slow webhook, say nothing about the server: of each round of answers a quick
one counts, and how many wait follows from the rate of answers (Little's law). Slow ones keep their places, so the
number grows until there are places for the others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

FEWEST_AT_ONCE: Final = 4
"""However slow the API server is: one answer of 10 s must not leave the cluster without a try for so long."""

FIRST_AT_ONCE: Final = 16
MOST_AT_ONCE: Final = 200
"""Writes that an API server takes at once from all its clients (`--max-mutating-requests-inflight`). Where a webhook
takes 10 s this makes 10 evictions a second of two writes each."""

_ANSWERS_IN_ROUND: Final = 20
"""Answers after which the number is looked at again, if fewer are in flight; else one for each place."""

_QUICK_SHARE: Final = 10
"""The quickest tenth of a round stands for it: slow objects do not count unless almost all are slow."""

_FEW_WAITING: Final = (2.0, 0.1)
MANY_WAITING: Final = (8.0, 0.25)
"""Requests in the server's queue, at least so many or such a share of all, below which the number grows and above which
it shrinks. With fewer the server may have nothing to do for a moment; more only wait. The shares are what times of
answers vary by themselves."""

_SHRINK: Final = 0.7
"""What is left of the number after a refusal."""

REFUSAL_SECONDS: Final = 1.0
"""Refusals within this time are one: they are answers to what was sent before."""

PROBE_SECONDS: Final = 60.0
"""When answers have taken longer for this time, the shortest time is measured again with the fewest at once: the server
may have become slower for good. It costs some hundredths of what could be done meanwhile."""

_ANSWERS_IN_PROBE: Final = 8


class Concurrency:
    """The number for one cluster. The caller has the clock, in monotonic seconds.

    Attributes:
        limit: how many evictions may run at once.
    """

    __slots__ = (
        "_after_probe",
        "_is_starting",
        "_probe_at",
        "_refused_at",
        "_round",
        "_round_at",
        "_shortest",
        "limit",
    )

    def __init__(self) -> None:
        self.limit = FIRST_AT_ONCE
        self._is_starting = True  # the number doubles until requests wait for the first time
        self._round: list[float] = []
        self._round_at = -math.inf
        self._shortest = math.inf
        self._probe_at = -math.inf  # when the shortest time was last seen or measured; set by the first answer
        self._after_probe = 0  # the number to go on with; 0 if there is no probe
        self._refused_at = -math.inf

    def note_answer(self, seconds: float, running: int, now: float) -> None:
        """Take in that an eviction was answered after its writes.

        Args:
            seconds: how long it took.
            running: how many ran meanwhile: if places were free, the number does not grow.
            now: monotonic seconds.
        """
        if math.isinf(self._probe_at):
            self._probe_at = self._round_at = now - seconds
        self._round.append(seconds)
        if self._after_probe:
            if len(self._round) >= self._after_probe + _ANSWERS_IN_PROBE:  # the first were sent before it
                self._end_probe(now)
        elif len(self._round) >= max(_ANSWERS_IN_ROUND, self.limit):
            self._decide(now, is_full=running >= self.limit)

    def note_refusal(self, now: float) -> None:
        """Take in that the API server has no room, fails, or does not answer."""
        if now - self._refused_at >= REFUSAL_SECONDS:
            self._refused_at = now
            self._is_starting = False
            self._after_probe = int(self._after_probe * _SHRINK)
            self._set(int(self.limit * _SHRINK))

    def _decide(self, now: float, *, is_full: bool) -> None:
        quick, rate = _quick(self._round), len(self._round) / max(now - self._round_at, 1e-6)
        self._round.clear()
        self._round_at = now
        self._shortest = min(self._shortest, quick)
        there, waiting = rate * quick, rate * (quick - self._shortest)  # by Little's law
        if waiting < max(_FEW_WAITING[0], there * _FEW_WAITING[1]):
            self._probe_at = now  # it is as quick as ever
            if is_full:
                self._set(self.limit * 2 if self._is_starting else self.limit + math.ceil(self.limit / 8))
        elif now - self._probe_at >= PROBE_SECONDS:
            self._after_probe = self.limit
            self.limit = FEWEST_AT_ONCE
        elif waiting > (many := max(MANY_WAITING[0], there * MANY_WAITING[1])):
            self._is_starting = False
            self._set(self.limit - math.ceil((waiting - many) / 2))

    def _end_probe(self, now: float) -> None:
        self._shortest = _quick(self._round[-_ANSWERS_IN_PROBE:])
        self._round.clear()
        self._round_at = self._probe_at = now
        self._set(self._after_probe)
        self._after_probe = 0

    def _set(self, limit: int) -> None:
        self.limit = min(max(limit, FEWEST_AT_ONCE), MOST_AT_ONCE)


def _quick(times: Sequence[float]) -> float:
    return sorted(times)[len(times) // _QUICK_SHARE]
