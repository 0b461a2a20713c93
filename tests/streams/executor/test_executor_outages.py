"""Executor processes whose Kafka goes away, and that are stopped and frozen: `make faults` runs what takes long."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import pytest

from evictstream.kit.conformance.fake_api import FakeApi
from evictstream.kit.conformance.fake_faults import Fault
from evictstream.models.messages.command import EvictionCommand
from evictstream.models.messages.vocabulary import Action
from evictstream.streams.broker.embedded import EmbeddedBroker
from evictstream.streams.broker.steering_readers import OLDEST_VIEW_SECONDS
from evictstream.streams.executor.cluster_life import GROUP_SESSION_SECONDS
from evictstream.streams.settings import Settings
from tests.guarantees.conftest import own_settings
from tests.harness.ends import executor_process, group_members
from tests.harness.executing import CommandWriter
from tests.harness.reading import Seen, TopicReader
from tests.streams.executor.conftest import TAINTED, command_now
from tests.streams.executor.serving import results_in

pytestmark = pytest.mark.kafka

NODES = 4
PODS = 60
RATE = 5


def command(pod: str, action: Action = Action.EVICT, *, node: int = 0) -> EvictionCommand:
    return command_now(pod, action, node=f"m-{node}", node_uid=f"uid-m-{node}")


def fill(api: FakeApi, pods: int = PODS) -> list[EvictionCommand]:
    """Put pods on tainted nodes; gives a command for each."""
    for node in range(NODES):
        api.put("Node", f"m-{node}", uid=f"uid-m-{node}", spec=TAINTED)
    for pod in range(pods):
        api.put("Pod", f"p-{pod}", uid=f"uid-p-{pod}", spec={"nodeName": f"m-{pod % NODES}"})
    return [command(f"p-{pod}", node=pod % NODES) for pod in range(pods)]


def outcomes(seen: list[Seen]) -> dict[str, list[str]]:
    """Final outcomes by pod."""
    found: dict[str, list[str]] = {}
    for one in results_in(seen):
        found.setdefault(one.value["pod"], []).append(one.value["outcome"])
    return found


def deletes(api: FakeApi) -> Counter[str]:
    return Counter(write.name for write in list(api.writes) if write.what == "delete pods")


@pytest.mark.kit
@pytest.mark.parametrize("fault", ["killed", "frozen"])
def test_a_kafka_that_is_gone_beyond_a_session(
    own_broker: EmbeddedBroker, api: FakeApi, tmp_path: Path, fault: str
) -> None:
    """Nothing is deleted once brakes are no longer known. When Kafka is back, all is done, once, and answered."""
    settings = own_settings(own_broker.bootstrap_servers, health_port=0)
    commands, writer = fill(api), CommandWriter(settings)
    with executor_process(settings, api, tmp_path, "--rate", str(RATE), "--burst", "1") as executor:
        results = TopicReader(settings, settings.results_topic)
        writer.write(*commands)
        results.wait_for(lambda seen: len(seen) > RATE, "first results")
        down_at = time.monotonic()
        own_broker.kill() if fault == "killed" else own_broker.pause()
        time.sleep(OLDEST_VIEW_SECONDS + 1)  # the fault itself, in which those that are known count
        done = deletes(api).total()
        time.sleep(max(0.0, down_at + GROUP_SESSION_SECONDS + 5 - time.monotonic()))  # in which nothing may happen
        assert deletes(api).total() == done < PODS
        own_broker.start() if fault == "killed" else own_broker.resume()
        results.wait_for(lambda seen: len(outcomes(seen)) == PODS, "an answer to each", seconds=60)
        api.put("Pod", "later", uid="uid-later", spec={"nodeName": "m-0"})
        writer.write(command("later"))
        results.wait_for(lambda seen: "later" in outcomes(seen), "an answer to what came later", seconds=60)
        seen = results.quiet(2.0)
        assert executor.stop() == 0
    assert set(outcomes(seen)) == {f"p-{pod}" for pod in range(PODS)} | {"later"}
    assert {outcome for found in outcomes(seen).values() for outcome in found} == {"Succeeded"}
    assert set(deletes(api).values()) == {1}
    assert not group_members(settings, f"{settings.application_id}-executor-c1")
    results.close()
    writer.close()


@pytest.mark.kit
def test_sigterm_ends_what_runs_answers_and_leaves(
    declared: Settings, api: FakeApi, writer: CommandWriter, tmp_path: Path
) -> None:
    """What runs is answered before the end, and the next one does the rest and nothing twice."""
    commands = fill(api, 2 * NODES)
    api.trouble["delete pods"] = [Fault(delay_seconds=1.5)] * NODES
    group, results = f"{declared.application_id}-executor-c1", TopicReader(declared, declared.results_topic)
    with executor_process(declared, api, tmp_path, "--rate", "0.1", "--burst", str(NODES)) as executor:
        writer.write(*commands)
        executor.wait_for(lambda: len(deletes(api)) or api.requests.count("delete pods") == NODES, "deletes that run")
        assert executor.stop() == 0
        assert not group_members(declared, group)
        done = {pod: ["Succeeded"] for pod in deletes(api)}
        assert NODES <= len(done) < 2 * NODES
        assert outcomes(results.quiet(0.5)) == done
    with executor_process(declared, api, tmp_path) as executor:
        seen = results.wait_for(lambda seen: len(outcomes(seen)) == 2 * NODES, "the rest")
        assert outcomes(seen) == {one.pod: ["Succeeded"] for one in commands}
        assert executor.stop() == 0
    assert set(deletes(api).values()) == {1}
    results.close()


@pytest.mark.kit
def test_a_frozen_executor_does_nothing_wrong_afterwards(
    declared: Settings, api: FakeApi, writer: CommandWriter, tmp_path: Path
) -> None:
    """What another one has done or cancelled meanwhile is left alone, and the late one stands by for it."""
    commands, results = fill(api), TopicReader(declared, declared.results_topic)
    group = f"{declared.application_id}-executor-c1"
    burst = 20
    next_ones = commands[burst : 2 * burst]  # which it may do at once when it goes on
    cancelled = {one.pod for one in next_ones}
    with executor_process(declared, api, tmp_path, "--rate", "1", "--burst", str(burst)) as late:
        writer.write(*commands)
        results.wait_for(lambda seen: len(outcomes(seen)) >= burst, "first results")
        late.freeze()
        in_time = cancelled & set(deletes(api))  # on a busy machine it comes to these before it is frozen
        writer.write(*(command(one.pod, Action.CANCEL, node=int(one.node[2:])) for one in next_ones))
        with executor_process(declared, api, tmp_path) as other:
            results.wait_for(lambda seen: len(outcomes(seen)) == PODS, "an answer to each", seconds=60)
            late.thaw()
            other.wait_for(lambda: is_one_of_two_active(declared, group), "the late one in its group again")
            time.sleep(2.0)  # in which nothing may happen
            seen = results.quiet(1.0)
            assert other.stop() == 0
            api.put("Pod", "later", uid="uid-later", spec={"nodeName": "m-0"})
            writer.write(command("later"))
            seen = results.wait_for(lambda seen: "later" in outcomes(seen), "an answer of the late one", seconds=60)
        assert late.stop() == 0
    assert {pod for pod in cancelled - in_time if ("Pod", pod) not in api.objects} == set()
    assert set(deletes(api).values()) == {1}
    for pod, found in outcomes(seen).items():
        assert pod in in_time or found[0] == ("Obsolete" if pod in cancelled else "Succeeded"), pod
    results.close()


def is_one_of_two_active(settings: Settings, group: str) -> bool:
    """Whether both have joined, and one has the partition."""
    joined = [found for one in group_members(settings, group) if (found := one["member_assignment"])]
    return sorted(len(one["assigned_partitions"]) for one in joined) == [0, 1]
