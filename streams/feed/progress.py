"""How far a kind has come beside how far etcd had come: what proves that nothing was missed.

An open watch proves nothing by itself: its cache may stand still. A kind is proven up to the last moment at which etcd
said a version that a listing, an event or a bookmark of the kind has reached since. Once a watch was found to stand
still, no listing proves anything: the watch has to show what is newer.
"""

from __future__ import annotations

import math
import threading
from collections import deque
from typing import Final

PROOF_SECONDS: Final = 45.0
"""A proof that is older is none, and a watch that has not reached for so long what etcd said has no progress. In a
healthy cluster it is at most some 35 s old: a watch gets a bookmark 2 s before its end, so each 18 s at least, of a
version that is up to 5 s old (etcd's progress notifications), and etcd is asked each 10 s."""

MOST_ANSWERS: Final = 64
"""Answers of etcd that are remembered until they are reached: those of ten minutes. The oldest ones are dropped, and so
prove nothing."""


class Progress:
    """Of one kind; its thread and that of its cluster use it.

    Attributes:
        version: the newest one that was shown; 0 before the first listing is complete.
        listed_at_us: when the newest complete listing began; None before the first one.
    """

    def __init__(self) -> None:
        self.version = 0
        self.listed_at_us: int | None = None
        self._lock = threading.Lock()
        self._answers: deque[tuple[float, int]] = deque(maxlen=MOST_ANSWERS)
        self._reached_at = -math.inf
        self._is_outstanding = False
        self._stands_still = False

    @property
    def is_outstanding(self) -> bool:
        """Whether a line of the watch could not be read, and is asked for again: nothing is proven meanwhile."""
        return self._is_outstanding

    @property
    def proven_at(self) -> float:
        """Up to when nothing can have been missed, on the monotonic clock; minus infinity for never."""
        is_void = self._is_outstanding or self._stands_still or self.listed_at_us is None
        return -math.inf if is_void else self._reached_at

    def etcd_said(self, version: int, at: float) -> None:
        """Note how far versions had come at an instant of the monotonic clock."""
        with self._lock:
            self._answers.append((at, version))
            self._settle()

    def show(self, version: int) -> None:
        """Note that an event or a bookmark was shown."""
        with self._lock:
            self._stands_still = self._stands_still and version <= self.version
            self._reach(version)

    def list_complete(self, version: int, began_us: int) -> None:
        """Note a complete listing, and when it began, microseconds since 1970."""
        with self._lock:
            self.listed_at_us = began_us
            self._reach(version)

    def listed_beside(self, began_us: int) -> None:
        """Note a complete listing beside the watch: it proves nothing, the watch does."""
        with self._lock:
            self.listed_at_us = began_us

    def miss(self) -> None:
        """Note a line that could not be read."""
        self._is_outstanding = True

    def stand_still(self) -> None:
        """Note that the watch shows nothing of what etcd has."""
        self._stands_still = True

    def is_behind(self, now: float) -> bool:
        """Whether etcd said longer than `PROOF_SECONDS` ago what was not shown since."""
        with self._lock:
            return bool(self._answers) and now - self._answers[0][0] > PROOF_SECONDS

    def _reach(self, version: int) -> None:
        self.version = max(self.version, version)
        self._is_outstanding = False
        self._settle()

    def _settle(self) -> None:
        while self._answers and self._answers[0][1] <= self.version and self.listed_at_us is not None:
            self._reached_at = self._answers.popleft()[0]
