"""One server of the control plane: a process with its log, to be stopped, killed, frozen and started again."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from evictstream.streams.broker import reaper

STOP_SECONDS = 20.0
"""An API server waits for requests that are under way, etcd for its files; both take about a second."""

LOG_TAIL_BYTES = 4_000
POLL_SECONDS = 0.02


class ServerFailedError(Exception):
    """A server has ended, or did not answer in time; the text ends with the tail of its log."""


class ServerProcess:
    """A server with the same arguments each time it starts. It does not outlive this process, however that ends."""

    def __init__(self, binary: Path, arguments: Sequence[str], *, folder: Path) -> None:
        """Describe it; its log goes to `folder`, and goes on there after a restart."""
        self.name = binary.name
        self.arguments = [str(binary), *arguments]
        self.log_file = folder / f"{self.name}.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._reaper: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """Process id while it runs, else `None`."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def start(self) -> None:
        """Start without waiting. Running: does nothing."""
        if self.pid is not None:
            return
        self._end_reaper()
        with self.log_file.open("ab") as log:
            # A group of its own: Ctrl-C is for the tests, which then stop things in order.
            self._process = subprocess.Popen(
                self.arguments, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        self._reaper = subprocess.Popen(
            [sys.executable, "-I", "-S", reaper.__file__, str(self._process.pid), ""],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )

    def stop(self) -> None:
        """End it in order (SIGTERM), or kill it after 20 s. Down: does nothing."""
        if self.pid is not None and self._process is not None:
            self.resume()  # a frozen process does not see SIGTERM
            self._signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(STOP_SECONDS)
        self.kill()

    def kill(self) -> None:
        """End it at once, as a crash would (SIGKILL). Down: does nothing."""
        self._signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait()
        self._end_reaper()

    def pause(self) -> None:
        """Freeze it (SIGSTOP): connections stay open, but get no answer."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on (SIGCONT)."""
        self._signal(signal.SIGCONT)

    def wait_until(self, condition: Callable[[], bool], seconds: float) -> None:
        """Wait until it is as wanted.

        Raises:
            ServerFailedError: it has ended, or the time is over.
        """
        until = time.monotonic() + seconds
        while not condition():
            if self.pid is None:
                raise ServerFailedError(f"{self.name} has ended:\n{self.log_tail()}")
            if time.monotonic() > until:
                raise ServerFailedError(f"{self.name} does not answer after {seconds:g} s:\n{self.log_tail()}")
            time.sleep(POLL_SECONDS)

    def log_tail(self) -> str:
        """Return the end of what it wrote."""
        with self.log_file.open("rb") as log:
            log.seek(max(0, self.log_file.stat().st_size - LOG_TAIL_BYTES))
            return log.read().decode(errors="replace")

    def _signal(self, number: signal.Signals) -> None:
        # Only while it runs: afterwards another process may have its number.
        if self.pid is not None and self._process is not None:
            self._process.send_signal(number)

    def _end_reaper(self) -> None:
        # Killed before its pipe closes, so that it cannot kill another process that has the number by then.
        if self._reaper is not None:
            self._reaper.kill()
            self._reaper.wait()
            if self._reaper.stdin is not None:
                self._reaper.stdin.close()
            self._reaper = None
