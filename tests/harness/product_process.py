"""A command of the product as operators run it: a process of its own, with its settings in the environment."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Self

from evictstream.streams.settings import Settings
from tests.harness import copies

STOP_SECONDS = 30
"""So soon a process has ended after SIGTERM; Kubernetes' own default before it kills."""


class ProductProcess:
    """A command of the product. Use as a context manager: it is stopped at the end, and has to exit with 0."""

    def __init__(
        self, settings: Settings, *arguments: str, log: Path | None = None, sources: Sequence[Path | None] = (None,)
    ) -> None:
        """Start it. What it says goes to the file `log`, or to where this process says it.

        Each start takes the next of `sources`, again and again: folders of other versions, None for the one that is
        tested.
        """
        self._sources = itertools.cycle(sources)
        self._command = [sys.executable, "-m", "evictstream.streams.cli.main", *arguments]
        given = {f"EVICTSTREAM_{name.upper()}": str(getattr(settings, name)) for name in settings.model_fields_set}
        self._environment = os.environ | {"EVICTSTREAM_HEALTH_PORT": "0"} | given
        self._log = log
        self._logged_bytes = 0
        self._process = self._started()

    def _started(self) -> subprocess.Popen[bytes]:
        self._logged_bytes = self._log_bytes()
        source = next(self._sources)
        with self._output() as output:
            if source is None:
                return copies.start(self._command, env=self._environment, stderr=output)
            environment = self._environment | {"PYTHONPATH": str(source / "src")}
            return subprocess.Popen(self._command, env=environment, cwd=source, stderr=output)

    def _output(self) -> IO[bytes]:
        return os.fdopen(os.dup(2), "wb") if self._log is None else self._log.open("ab")

    def kill_and_start(self) -> None:
        """Kill it as a machine that fails does, and start another one."""
        self._process.kill()
        self._process.wait()
        self._process = self._started()

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal, such as SIGSTOP."""
        self._process.send_signal(number)

    @property
    def has_begun(self) -> bool:
        """Whether it has logged anything since its start, to its file; before that SIGTERM ends it as any program."""
        return self._log_bytes() > self._logged_bytes

    def _log_bytes(self) -> int:
        return self._log.stat().st_size if self._log is not None and self._log.exists() else 0

    @property
    def exit_code(self) -> int | None:
        """Of the process if it has ended."""
        return self._process.poll()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._process.send_signal(signal.SIGTERM)
                code = self._process.wait(STOP_SECONDS)
                assert code == 0, f"{self._command[3:]} has ended with exit code {code}"
        finally:
            self._process.kill()
            self._process.wait()
