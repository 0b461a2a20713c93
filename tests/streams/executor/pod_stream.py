"""Pods of one cluster that become due one after another, and when each was deleted."""

from __future__ import annotations

import contextlib
import threading
import time
from typing import Self

from kafka.errors import KafkaError

from evictstream.kit.conformance.fake_api import FakeApi
from tests.harness.executing import CommandWriter
from tests.streams.executor.conftest import command_now

BETWEEN_SECONDS = 0.1


class PodStream:
    """Puts a pod each tenth of a second on one of the nodes `m-0`, `m-1`, …, until `stop`. Use as a context manager.

    Attributes:
        written: by pod, when its command was written, seconds since 1970.
    """

    def __init__(self, api: FakeApi, writer: CommandWriter, nodes: int) -> None:
        self.written: dict[str, float] = {}
        self._api = api
        self._writer = writer
        self._nodes = nodes
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._write, daemon=True)

    def deletes(self) -> list[tuple[str, float]]:
        """List the deletes so far: name of the pod, and when."""
        return [(one.name, one.at) for one in list(self._api.writes) if one.what == "delete pods"]

    def stop(self) -> None:
        """Write no more."""
        self._is_over.set()
        self._thread.join()

    def _write(self) -> None:
        while not self._is_over.wait(BETWEEN_SECONDS):
            name, node = f"q-{len(self.written)}", f"m-{len(self.written) % self._nodes}"
            self._api.put("Pod", name, uid=f"uid-{name}", spec={"nodeName": node})
            self.written[name] = time.time()
            with contextlib.suppress(KafkaError):  # a Kafka that is gone takes none
                self._writer.write(command_now(name, node=node, node_uid=f"uid-{node}"))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
