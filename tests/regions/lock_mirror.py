"""Run as a program: resolves what MirrorMaker 2 needs anew and writes its lock beside this file.

`make lock-kafka` runs this too, so that it has the version of the broker.
"""

from __future__ import annotations

from pathlib import Path

from evictstream.streams.broker.jars import kafka_version
from evictstream.streams.broker.lock_kafka import LOGGER, write_lock

LOCK = Path(__file__).with_name("mirror-jars.lock")

HEADER = """\
# MirrorMaker 2, which the tests of regions run: what it needs at run time, and slf4j-simple for its log.
# One file a line: group:artifact:version sha256:digest. Made by `make lock-kafka`; checked before each use.
"""


def main() -> None:
    """Lock MirrorMaker 2 and a logger for it."""
    write_lock(LOCK, HEADER, roots=(f"org.apache.kafka:connect-mirror:{kafka_version()}",), alone=(LOGGER,))


if __name__ == "__main__":
    main()
