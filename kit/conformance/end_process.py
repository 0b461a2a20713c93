"""The feed or executor that is looked at, as a process of its own that the kit starts, kills and starts again."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import Final

from evictstream.streams.errors import WrongUseError

STDERR: Final = 2
"""Its descriptor: stdout is for what the kit has found."""

_STOP_SECONDS: Final = 20.0
"""For the end to stop after SIGTERM; then it is killed."""


class EndProcess:
    """The process, with all that it has started. Its output goes to stderr.

    Attributes:
        ended_by_itself: how it ended without a request; empty while it has not.
        stop_seconds: how long it took to end after SIGTERM; None if it did not.
    """

    def __init__(self, command: Sequence[str], env: Mapping[str, str]) -> None:
        self.ended_by_itself = ""
        self.stop_seconds: float | None = None
        self._command = list(command)
        self._env = dict(env)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, in a group of its own so that all of it can be killed.

        Raises:
            WrongUseError: there is no such program.
        """
        try:
            self._process = subprocess.Popen(  # noqa: S603 - the program that the caller has named, no shell
                self._command,
                env=self._env,
                stdin=subprocess.DEVNULL,
                stdout=STDERR,
                stderr=STDERR,
                start_new_session=True,
            )
        except OSError as error:
            raise WrongUseError(f"{self._command[0]} cannot be started: {error.strerror}") from error

    def look(self) -> bool:
        """Tell whether it runs, and remember how it ended if it does not."""
        if self._process is None:
            return False
        code = self._process.poll()
        if code is not None and not self.ended_by_itself:
            self.ended_by_itself = f"exit code {code}" if code >= 0 else f"signal {-code}"
        return code is None

    def kill(self) -> None:
        """End it at once, with all that it has started."""
        if self.look() and self._process is not None:
            self._signal(signal.SIGKILL)
            self._process.wait()
            self._process = None

    def stop(self) -> None:
        """Ask it to end, and kill it if it does not."""
        if not self.look() or self._process is None:
            return
        began = time.monotonic()
        self._signal(signal.SIGTERM)
        try:
            self._process.wait(_STOP_SECONDS)
            self.stop_seconds = time.monotonic() - began
        except subprocess.TimeoutExpired:
            self._signal(signal.SIGKILL)
            self._process.wait()
        self._process = None

    def _signal(self, number: int) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)
