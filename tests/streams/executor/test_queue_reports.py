"""What waits in executors is reported, not answered: a real worker repeats nothing of it, whichever executor has it."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from evictstream.kit.conformance.fake_api import FakeApi
from evictstream.models.eviction import RuleParameters
from evictstream.models.instants import SECOND_US
from evictstream.models.messages.executor_report import REPORT_KIND
from evictstream.streams.broker.admin import declare_topics
from evictstream.streams.executor import command_answers, command_consumer
from evictstream.streams.kubernetes.access import ClusterAccess
from evictstream.streams.settings import Settings
from tests.conftest import MakeSettings
from tests.harness.ends import executor_process
from tests.harness.feed import Feed, taint
from tests.harness.free_port import free_port, ready
from tests.harness.reading import Seen, TopicReader
from tests.harness.workers import WorkerProcess
from tests.streams.executor.serving import results_in, run, wait_for

pytestmark = pytest.mark.kafka

PODS, NODES = 300, 10
LAB = {"namespace": "lab"}
RATE = 50
SILENCE_SECONDS = 2.0
"""Of the worker; each eviction waits for several seconds."""

REPORT_SECONDS = 0.4
MOST_REPORTS = 40
"""For 300 evictions in some 7 s and two executors; one `Accepted` for each alone would be 300."""


FEW_PODS = 40
SLOW_SILENCE_SECONDS = 20.0
"""Longer than an executor waits before its first report."""

REPORT_COUNTS_SECONDS = RuleParameters().report_silence_us / SECOND_US


def fill(api: FakeApi, feed: Feed, pods: int) -> None:
    """Let tainted nodes have pods that do not tolerate it, so that each has to leave now."""
    for node in range(NODES):
        api.put("Node", f"m-{node}", uid=f"node-m-{node}", spec={"taints": [taint()]})
        feed.node(f"m-{node}", taint())
    for pod in range(pods):
        api.put("Pod", f"p-{pod}", uid=f"pod-p-{pod}", metadata=LAB, spec={"nodeName": f"m-{pod % NODES}"})
        feed.pod(f"m-{pod % NODES}", f"p-{pod}")
    feed.flush()


def deletes(api: FakeApi) -> Counter[str]:
    return Counter(write.name for write in list(api.writes) if write.what == "delete pods")


def reports_in(seen: list[Seen]) -> list[Seen]:
    return [one for one in seen if one.value["kind"] == REPORT_KIND]


@contextlib.contextmanager
def served(settings: Settings, folder: Path) -> Iterator[tuple[TopicReader, TopicReader, Feed]]:
    """Run a worker; gives readers of results and commands, and a feed of the cluster `c1`."""
    declare_topics(settings)
    with (
        contextlib.closing(TopicReader(settings, settings.results_topic)) as results,
        contextlib.closing(TopicReader(settings, settings.commands_topic)) as commands,
        WorkerProcess(settings, folder) as worker,
        Feed(settings, "c1") as feed,
    ):
        worker.wait_ready()
        yield results, commands, feed


def test_a_queue_costs_a_few_reports_and_no_repeat(
    make_settings: MakeSettings,
    api: FakeApi,
    access: ClusterAccess,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first executor stops with most of them in its queue; the second one does those."""
    monkeypatch.setattr(command_answers, "REPORT_SECONDS", REPORT_SECONDS)
    monkeypatch.setattr(command_answers, "UNREPORTED_SECONDS", REPORT_SECONDS / 2)
    monkeypatch.setattr(command_consumer, "SWEEP_SECONDS", 0.1)
    settings = make_settings(health_port=0, result_silence_seconds=SILENCE_SECONDS)
    port = free_port()
    with served(settings, tmp_path) as (results, commands, feed):
        with run(settings.model_copy(update={"health_port": port}), access, rate=RATE, burst=1):
            wait_for(lambda: ready(port).get("role") == {"c1": "active"})
            fill(api, feed, PODS)
            wait_for(lambda: len(results_in(results.poll())) >= PODS // 5)
        with run(settings, access, rate=RATE, burst=1):
            wait_for(lambda: len(results_in(results.poll())) >= PODS)
        seen = results.quiet(2 * SILENCE_SECONDS)
        issued = commands.to_end()

    reports = [one.value for one in reports_in(seen)]
    assert Counter(one.value["outcome"] for one in results_in(seen)) == {"Succeeded": PODS}
    assert Counter(one.value["attempt"] for one in issued) == {1: PODS}
    assert len({report["executor"] for report in reports}) == 2
    assert 2 <= len(reports) <= MOST_REPORTS
    assert max(report["waiting"] for report in reports) > PODS // 2
    assert len(deletes(api)) == deletes(api).total() == PODS


@pytest.mark.kit
def test_what_a_killed_executor_had_is_tried_again_and_done(
    make_settings: MakeSettings, api: FakeApi, tmp_path: Path
) -> None:
    settings = make_settings(health_port=0, result_silence_seconds=SLOW_SILENCE_SECONDS)
    port = free_port()
    with served(settings, tmp_path) as (results, commands, feed):
        with executor_process(
            settings.model_copy(update={"health_port": port}), api, tmp_path, "--rate", "1", "--burst", "1"
        ) as executor:
            executor.wait_for(lambda: ready(port).get("role") == {"c1": "active"}, "an active executor")
            fill(api, feed, FEW_PODS)
            results.wait_for(lambda seen: any(one.value["waiting"] for one in reports_in(seen)), "a report")
            executor.kill()
        reported_at = reports_in(results.to_end())[-1].appended_at
        repeated = commands.wait_for(
            lambda seen: any(one.value["attempt"] == 2 for one in seen), "a repeat", REPORT_COUNTS_SECONDS + 20
        )
        assert min(one.appended_at for one in repeated if one.value["attempt"] == 2) >= (
            reported_at + REPORT_COUNTS_SECONDS
        )
        with executor_process(settings, api, tmp_path):
            results.wait_for(lambda _: len(deletes(api)) == FEW_PODS, "each delete")

    assert deletes(api).total() == FEW_PODS
