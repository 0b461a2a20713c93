"""Run as a program: resolves what the Kafka Streams peer needs anew and writes two locks beside it.

One for running it, one for compiling it: the Java that comes with Python's packages has no compiler, so Eclipse's is
taken. `make lock-kafka` runs this too, so that the peer has the version of the broker.
"""

from __future__ import annotations

from pathlib import Path

from evictstream.streams.broker.jars import kafka_version
from evictstream.streams.broker.lock_kafka import LOGGER, write_lock

FOLDER = Path(__file__).with_name("kafka_streams")
COMPILER = ("org.eclipse.jdt", "ecj", "3.44.0")

_HEADER = """\
# {what}
# One file a line: group:artifact:version sha256:digest. Made by `make lock-kafka`; checked before each use.
"""


def main() -> None:
    """Lock Kafka Streams with all it needs, and the compiler."""
    streams = f"org.apache.kafka:kafka-streams:{kafka_version()}"
    running = _HEADER.format(what="The Kafka Streams peer: what it needs at run time, and slf4j-simple for its log.")
    write_lock(FOLDER / "run-jars.lock", running, roots=(streams,), alone=(LOGGER,))
    compiling = _HEADER.format(what="The compiler of the Kafka Streams peer.")
    write_lock(FOLDER / "compile-jars.lock", compiling, roots=(), alone=(COMPILER,))


if __name__ == "__main__":
    main()
