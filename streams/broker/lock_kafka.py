"""Run as a program: resolves the embedded Kafka's files anew and writes `kafka-jars.lock`.

To take another Kafka, change `KAFKA` here and the image in `container`, run `make lock-kafka`, and read the difference.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

KAFKA = "org.apache.kafka:kafka_2.13:4.3.1"

LOGGER = ("org.slf4j", "slf4j-simple", "1.7.36")
"""Kafka logs through slf4j and names no implementation; without one, a broker that fails says nothing."""

HEADER = """\
# The embedded Kafka: what it needs at run time, and slf4j-simple so that it can write its log.
# One file a line: group:artifact:version sha256:digest. Made by `make lock-kafka`; checked before each start.
"""


def main() -> None:
    """Resolve, download, hash, write."""
    import jgo  # noqa: PLC0415 - part of an optional extra
    from jgo.maven import MavenContext  # noqa: PLC0415 - as above

    found = {(jar.groupId, jar.artifactId, jar.version) for jar in jgo.resolve(KAFKA)} | {LOGGER}
    context = MavenContext()
    lines = []
    for group, artifact, version in sorted(found):
        path = context.project(group, artifact).at_version(version).artifact().resolve()
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        lines.append(f"{group}:{artifact}:{version} sha256:{digest}\n")
    Path(__file__).with_name("kafka-jars.lock").write_text(HEADER + "".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
