"""An observer shows what would be done once, and one that acts after it does all that is owed, however old."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from pathlib import Path

import pytest

from evictstream.kit.conformance.fake_api import FakeApi
from evictstream.models.messages.result import RESULT_KIND
from evictstream.streams.broker.admin import declare_topics
from evictstream.streams.executor.eviction import ExecutorMode
from evictstream.streams.kubernetes.access import ClusterAccess
from tests.conftest import MakeSettings
from tests.harness.feed import Feed, taint
from tests.harness.free_port import free_port, ready
from tests.harness.reading import TopicReader, commands
from tests.harness.workers import WorkerProcess
from tests.streams.executor.serving import run, wait_for

pytestmark = pytest.mark.kafka

SILENCE_SECONDS = 2.0
PODS = ("a", "b", "c")


def test_what_was_observed_is_issued_again_once_one_acts(
    make_settings: MakeSettings, api: FakeApi, access: ClusterAccess, tmp_path: Path
) -> None:
    """The one that acts begins at the end of the topic, as the first commands might be older than it reads."""
    settings, port = make_settings(health_port=0, result_silence_seconds=SILENCE_SECONDS), free_port()
    declare_topics(settings)
    with (
        contextlib.closing(TopicReader(settings, settings.results_topic, RESULT_KIND)) as results,
        contextlib.closing(TopicReader(settings, settings.commands_topic)) as issued,
        WorkerProcess(settings, tmp_path) as worker,
        Feed(settings, "c1") as feed,
    ):
        worker.wait_ready()
        with run(settings.model_copy(update={"health_port": port}), access, ExecutorMode.OBSERVE):
            wait_for(lambda: ready(port).get("role") == {"c1": "active"})
            feed.node("n-1", taint(), uid="uid-n-1")
            for pod in PODS:
                api.put("Pod", pod, uid=f"uid-{pod}", metadata={"namespace": "lab"}, spec={"nodeName": "n-1"})
                feed.pod("n-1", pod, uid=f"uid-{pod}")
            feed.flush()
            results.wait_for(lambda seen: len(seen) == len(PODS), "each observed")
            wait_for(lambda: len(api.events) == len(PODS))
            seen = issued.quiet(2 * SILENCE_SECONDS)
        assert {pod: len(all_of) for pod, all_of in commands(seen, "Evict").items()} == dict.fromkeys(PODS, 1)
        assert {one["reason"] for one in api.events.values()} == {"TaintEvictionObserved"}
        assert all(one["message"].startswith("Would evict the pod: ") for one in api.events.values())
        assert {write.what for write in api.writes} == {"create selfsubjectaccessreviews", "create events"}
        with run(settings, access, start_us=time.time_ns() // 1_000):
            seen = results.wait_for(lambda seen: len(seen) == 2 * len(PODS), "each done")
    said = Counter((one.value["attempt"], one.value["outcome"]) for one in seen)
    assert said == {(1, "Observed"): len(PODS), (2, "Succeeded"): len(PODS)}
    assert sorted(write.name for write in api.writes if write.is_removal) == list(PODS)
