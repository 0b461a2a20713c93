"""Feed and executor keep nothing on disk: both do their work in processes that cannot write a byte into any file."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Self

import pytest

from evictstream.kit.conformance.fake_api import FakeApi
from evictstream.models.instants import instant_text
from evictstream.models.messages.result import RESULT_KIND
from evictstream.streams.broker.admin import declare_topics
from tests.conftest import MakeSettings
from tests.harness.executing import CommandWriter
from tests.harness.reading import TopicReader
from tests.harness.workers import STOP_SECONDS, environment
from tests.models.execution import samples

pytestmark = [pytest.mark.kafka, pytest.mark.kit]


class FullDiskProcess:
    """One command of `evictstream`, whose log is a pipe."""

    def __init__(self, env: dict[str, str], *arguments: str) -> None:
        self.lines: list[str] = []
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.harness.full_disk", *arguments],
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        self.lines += self._process.stdout

    def stop(self) -> int:
        self._process.terminate()
        code = self._process.wait(STOP_SECONDS)
        self._reader.join()
        return code

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


def test_both_ends_do_their_work_on_a_full_disk(make_settings: MakeSettings, api: FakeApi, tmp_path: Path) -> None:
    settings = make_settings(health_port=0)
    declare_topics(settings)
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(api.kubeconfig())
    none = str(tmp_path / "none")
    env = environment(settings) | {"TMPDIR": none, "HOME": none, "PATH": os.environ["PATH"]}
    of_cluster = ("--kubeconfig", str(kubeconfig), "--cluster", "c1")
    pods, results = (
        TopicReader(settings, settings.pods_topic),
        TopicReader(settings, settings.results_topic, RESULT_KIND),
    )
    writer = CommandWriter(settings)
    with (
        FullDiskProcess(env, "feed", *of_cluster) as feed,
        FullDiskProcess(env, "execute", *of_cluster, "--mode", "delete") as executor,
    ):
        pods.wait_for(lambda seen: len(seen) >= 3, "pods")
        writer.write(samples.command(issued_at=instant_text(time.time_ns() // 1000)))
        seen = results.wait_for(bool, "an answer")
        pods.wait_for(lambda seen: any(one.value["type"] == "DELETED" for one in seen), "the end of the pod")
        assert (feed.stop(), executor.stop()) == (0, 0), "".join(feed.lines + executor.lines)
    assert [one.value["outcome"] for one in seen] == ["Succeeded"]
    assert not list(tmp_path.glob("none*"))
    writer.close()
    pods.close()
    results.close()
