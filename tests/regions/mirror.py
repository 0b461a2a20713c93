"""MirrorMaker 2 as a process, with the configuration of `examples/regions` and addresses of a test."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Final, Self

from evictstream.streams.broker.jars import classpath, read_lock
from tests.bench.peers.building import java
from tests.regions.lock_mirror import LOCK

EXAMPLE: Final = Path(__file__).parents[2] / "examples" / "regions" / "mirror.properties"
OPTIONS: Final = (
    "-Xmx256m",
    "-XX:TieredStopAtLevel=1",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
)
STOP_SECONDS: Final = 30.0

ADDRESS: Final = r"(?m)^{}\.bootstrap\.servers = .*$"
COPIES: Final = re.compile(r"(?m)replication\.factor = 3$")


class Mirror:
    """One MirrorMaker between two Kafkas of one node each. Use as a context manager."""

    def __init__(self, *, region: str, centre: str, folder: Path) -> None:
        """`region` and `centre` are addresses."""
        text = EXAMPLE.read_text(encoding="utf-8")
        for name, address in (("eu", region), ("centre", centre)):
            text, count = re.subn(ADDRESS.format(name), f"{name}.bootstrap.servers = {address}", text)
            assert count == 1, f"the example has {count} addresses of {name}"
        self._configuration = folder / "mirror.properties"
        self._configuration.write_text(COPIES.sub("replication.factor = 1", text), encoding="utf-8")
        self.log_file = folder / "mirror.log"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        jars = classpath(read_lock(LOCK.read_text(encoding="utf-8")))
        main = "org.apache.kafka.connect.mirror.MirrorMaker"
        with self.log_file.open("wb") as log:
            self._process = subprocess.Popen(
                [java(), *OPTIONS, "-cp", jars, main, str(self._configuration)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
