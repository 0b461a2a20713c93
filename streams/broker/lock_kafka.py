"""Run as a program: resolves the embedded Kafka's files anew and writes `kafka-jars.lock`.

To take another Kafka, change `KAFKA` here and the image in `container`, run `make lock-kafka`, and read the difference.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from evictstream.streams.broker.jars import trusting_as_the_system

KAFKA = "org.apache.kafka:kafka_2.13:4.3.1"

LOGGER = ("org.slf4j", "slf4j-simple", "1.7.36")
"""Kafka logs through slf4j and names no implementation; without one, a broker that fails says nothing."""

HEADER = """\
# The embedded Kafka: what it needs at run time, and slf4j-simple so that it can write its log.
# One file a line: group:artifact:version sha256:digest. Made by `make lock-kafka`; checked before each start.
"""


def main() -> None:
    """Lock Kafka and a logger for it."""
    write_lock(Path(__file__).with_name("kafka-jars.lock"), HEADER, roots=(KAFKA,), alone=(LOGGER,))


@trusting_as_the_system()
def write_lock(path: Path, header: str, *, roots: Sequence[str], alone: Sequence[tuple[str, str, str]] = ()) -> None:
    """Resolve, download, hash, write.

    Args:
        path: the lock.
        header: its first lines, comments.
        roots: coordinates that are taken with all they need.
        alone: group, artifact and version of files that are taken without what they name.
    """
    import jgo  # noqa: PLC0415 - part of an optional extra
    from jgo.maven import MavenContext  # noqa: PLC0415 - as above

    coordinates = {(jar.groupId, jar.artifactId, jar.version) for root in roots for jar in jgo.resolve(root)} | set(
        alone
    )
    context = MavenContext()
    lines = []
    for group, artifact, version in sorted(coordinates):
        jar = context.project(group, artifact).at_version(version).artifact().resolve()
        digest = hashlib.sha256(jar.read_bytes()).hexdigest()
        lines.append(f"{group}:{artifact}:{version} sha256:{digest}\n")
    path.write_text(header + "".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
