from __future__ import annotations

import dataclasses
import threading
import time
from typing import Any

import pytest
from kafka.admin import KafkaAdminClient

from evictstream.streams.broker import admin
from evictstream.streams.broker.admin import (
    Difference,
    TopicsReport,
    check_topics,
    compare_topic,
    declare_topics,
    kept_seconds,
)
from evictstream.streams.broker.admin_client import probe
from evictstream.streams.broker.first_contact import KafkaFacts
from evictstream.streams.broker.locate import Broker
from evictstream.streams.broker.ports import free_ports
from evictstream.streams.broker.topic_specs import TopicSpec, topic_specs
from evictstream.streams.errors import BrokerRefusedError, BrokerUnreachableError, SettingsError, TopicsDifferError
from evictstream.streams.settings import Settings, load_settings
from tests.conftest import MakeSettings

INPUT, CHANGELOG = 0, 6


def changed(spec: TopicSpec, name: str, value: str) -> TopicSpec:
    """The same topic, but different in one thing."""
    if name == "partitions":
        return dataclasses.replace(spec, partitions=int(value))
    return dataclasses.replace(spec, configs={**spec.configs, name: value})


class TestDeclare:
    def test_creates_everything_exactly_as_specified(self, settings: Settings) -> None:
        report = declare_topics(settings)
        assert report.created == report.topics == tuple(spec.name for spec in topic_specs(settings))
        assert report.differences == ()
        assert check_topics(settings).differences == ()

    def test_twice_creates_nothing_more(self, settings: Settings) -> None:
        declare_topics(settings)
        assert declare_topics(settings).created == ()

    def test_creates_only_what_is_missing(self, settings: Settings) -> None:
        first, *rest = topic_specs(settings)
        declare_topics(settings, [first])
        assert declare_topics(settings).created == tuple(spec.name for spec in rest)

    def test_from_two_places_at_once(self, settings: Settings) -> None:
        failures: list[BaseException] = []

        def declare() -> None:
            try:
                declare_topics(settings)
            except BaseException as error:  # noqa: BLE001 - whatever it is, the test must see it
                failures.append(error)

        threads = [threading.Thread(target=declare) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        assert check_topics(settings).differences == ()

    def test_never_changes_what_is_there(self, settings: Settings) -> None:
        spec = topic_specs(settings)[CHANGELOG]
        declare_topics(settings, [changed(spec, "cleanup.policy", "delete")])
        first = declare_topics(settings, [spec])
        second = declare_topics(settings, [spec])
        assert first.created == ()
        assert first.differences == second.differences != ()

    def test_what_kafka_refuses_is_said(self, settings: Settings) -> None:
        spec = dataclasses.replace(topic_specs(settings)[INPUT], replication_factor=7)
        with pytest.raises(BrokerRefusedError, match=r"create topic .*nodes: InvalidReplicationFactorError") as caught:
            declare_topics(settings, [spec])
        assert caught.value.operation.startswith("create topic")


@pytest.mark.parametrize(
    ("index", "what", "actual", "severity"),
    [
        pytest.param(INPUT, "partitions", "3", "breaks", id="input-partitions"),
        pytest.param(INPUT, "cleanup.policy", "compact", "breaks", id="input-compacted"),
        pytest.param(INPUT, "message.timestamp.type", "CreateTime", "breaks", id="input-stamped-by-client"),
        pytest.param(INPUT, "max.message.bytes", "1000", "weakens", id="input-too-small"),
        pytest.param(INPUT, "retention.ms", "1000", "weakens", id="input-kept-too-short"),
        pytest.param(3, "partitions", "3", "breaks", id="commands-partitions"),
        pytest.param(3, "retention.ms", "1000", "weakens", id="commands-kept-too-short"),
        pytest.param(3, "cleanup.policy", "compact", "breaks", id="commands-compacted"),
        pytest.param(CHANGELOG, "partitions", "1", "breaks", id="changelog-partitions"),
        pytest.param(CHANGELOG, "cleanup.policy", "delete", "breaks", id="changelog-deleted"),
        pytest.param(CHANGELOG, "cleanup.policy", "compact,delete", "breaks", id="changelog-compacted-and-deleted"),
        pytest.param(CHANGELOG, "min.insync.replicas", "2", "weakens", id="changelog-insync"),
        pytest.param(CHANGELOG, "segment.ms", "604800000", "weakens", id="changelog-segments"),
    ],
)
def test_check_finds(index: int, what: str, actual: str, severity: str, settings: Settings) -> None:
    spec = topic_specs(settings)[index]
    declare_topics(settings, [changed(spec, what, actual)])
    report = check_topics(settings, [spec])
    (difference,) = report.differences
    assert (difference.topic, difference.what, difference.actual) == (spec.name, what, actual)
    assert difference.severity == severity
    assert f"{what} is {actual}, must be" in str(difference)
    if severity == "breaks":
        with pytest.raises(TopicsDifferError) as caught:
            report.raise_if_breaking()
        assert caught.value.differences == (str(difference),)
    else:
        report.raise_if_breaking()


def test_check_finds_missing_topics_and_creates_none(settings: Settings) -> None:
    for _ in range(2):
        report = check_topics(settings)
        assert {difference.what for difference in report.differences} == {"topic"}
        assert report.breaking == report.differences
        assert len(report.differences) == len(topic_specs(settings))
        assert str(report.differences[0]).endswith("is missing")


def test_check_lists_all_differences_at_once(make_settings: MakeSettings) -> None:
    declare_topics(make_settings())
    report = check_topics(make_settings(partitions=4, input_retention_hours=1))
    assert len([d for d in report.differences if d.what == "partitions"]) == 11
    assert len([d for d in report.differences if d.what == "retention.ms"]) == 3


def test_replication_is_compared_with_what_each_partition_has() -> None:
    spec = TopicSpec("t", 2, 3, {"cleanup.policy": "compact", "new.setting": "1"}, frozenset({"cleanup.policy"}))
    partitions = [{"replica_nodes": [1, 2, 3]}, {"replica_nodes": [1]}]
    assert list(compare_topic(spec, partitions=partitions, configs={"cleanup.policy": "compact"})) == [
        Difference(topic="t", what="replication.factor", expected="3", actual="1 and 3", severity="weakens"),
        Difference(topic="t", what="new.setting", expected="1", actual="unknown to this Kafka", severity="weakens"),
    ]


class TestUnreachable:
    LIMIT_SECONDS = 1.0

    def settings_for(self, port: int) -> Settings:
        return Settings(bootstrap_servers=f"127.0.0.1:{port}", admin_timeout_seconds=self.LIMIT_SECONDS)

    def test_is_one_error_within_the_limit(self) -> None:
        (port,) = free_ports(1)
        started_at = time.monotonic()
        with pytest.raises(BrokerUnreachableError) as caught:
            check_topics(self.settings_for(port))
        assert time.monotonic() - started_at < self.LIMIT_SECONDS + 2
        assert caught.value.bootstrap_servers == f"127.0.0.1:{port}"
        assert caught.value.waited_seconds == self.LIMIT_SECONDS

    def test_leaves_no_thread_behind(self) -> None:
        before = set(threading.enumerate())
        (port,) = free_ports(1)
        with pytest.raises(BrokerUnreachableError):
            check_topics(self.settings_for(port))
        assert set(threading.enumerate()) <= before

    def test_name_that_does_not_resolve(self) -> None:
        settings = Settings(bootstrap_servers="no-such-host.invalid:9092", admin_timeout_seconds=self.LIMIT_SECONDS)
        with pytest.raises(BrokerUnreachableError):
            check_topics(settings)

    def test_probe_says_none(self) -> None:
        (port,) = free_ports(1)
        assert probe(f"127.0.0.1:{port}") is None


def test_probe_counts_brokers(kafka: Broker) -> None:
    answer = probe(kafka.bootstrap_servers)
    assert answer is not None
    assert answer.active_brokers >= 1


@pytest.mark.parametrize("value", ["127.0.0.1", "127.0.0.1:", "127.0.0.1:http", ":9092", "", "a:1,,b:2"])
def test_addresses_that_are_none_are_wrong_use(value: str) -> None:
    with pytest.raises(SettingsError, match="bootstrap_servers"):
        load_settings({"bootstrap_servers": value})


def test_certificates_that_cannot_be_read_are_wrong_use() -> None:
    settings = Settings(bootstrap_servers="127.0.0.1:1", security_protocol="SSL", ssl_cafile="/nowhere/ca.pem")
    with pytest.raises(SettingsError, match="certificate"):
        check_topics(settings)


class LaggingBroker:
    """Answers as a broker that hears of a topic only after it was asked for the second time."""

    def __init__(self, spec: TopicSpec) -> None:
        self._spec = spec
        self.asked = 0
        self.more: dict[str, object] = {}

    def describe_topics(self, names: list[str]) -> list[dict[str, Any]]:
        self.asked += 1
        partitions = [{"replica_nodes": [1]} for _ in range(self._spec.partitions if self.asked > 1 else 0)]
        return [{"name": name, "error_code": 0, "partitions": partitions, **self.more} for name in names]

    def describe_configs(self, resources: list[object], config_filter: str) -> dict[str, Any]:
        known = {name: {"value": value} for name, value in self._spec.configs.items()} if self.asked > 2 else {}
        return {"topic": {self._spec.name: known}}


def test_a_broker_without_the_new_topic_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """found by the torture on three nodes (seed 543): settings that were there were called unknown"""
    monkeypatch.setattr(admin, "_RETRY_SECONDS", 0.0)
    spec = TopicSpec("fresh", 3, 1, {"cleanup.policy": "compact"}, frozenset({"partitions"}))
    broker = LaggingBroker(spec)
    assert admin._compared(broker, [spec])[0] == []
    assert broker.asked == 3


def test_topic_that_nobody_knows_is_reported_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admin, "_RETRY_SECONDS", 0.0)
    monkeypatch.setattr(admin, "PROPAGATION_SECONDS", 0.0)
    spec = TopicSpec("fresh", 3, 1, {"cleanup.policy": "compact"}, frozenset({"partitions"}))
    found, _ = admin._compared(LaggingBroker(spec), [spec])
    assert ("cleanup.policy", "unknown to this Kafka") in {(one.what, one.actual) for one in found}


class HidingBroker(LaggingBroker):
    """Answers a user who may see topics, and not their settings."""

    def describe_configs(self, resources: list[object], config_filter: str) -> dict[str, Any]:
        return {"topic": {self._spec.name: {}}}


def test_settings_that_a_user_may_not_see_are_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admin, "_RETRY_SECONDS", 0.0)
    monkeypatch.setattr(admin, "PROPAGATION_SECONDS", 0.01)
    spec = TopicSpec("hidden", 3, 1, {"cleanup.policy": "compact"}, frozenset({"partitions"}))
    with pytest.raises(BrokerRefusedError, match=r"hidden.*DescribeConfigs"):
        admin._compared(HidingBroker(spec), [spec])


def test_a_right_that_is_missing_is_not_waited_for() -> None:
    spec = TopicSpec("hidden", 3, 1, {"cleanup.policy": "compact"}, frozenset({"partitions"}))
    broker = HidingBroker(spec)
    broker.asked = 1
    broker.more = {"authorized_operations": ["READ", "DESCRIBE"]}
    with pytest.raises(BrokerRefusedError, match=r"hidden.*DescribeConfigs"):
        admin._compared(broker, [spec])
    assert broker.asked == 2


def test_checks_ask_about_no_other_topics(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KafkaAdminClient, "list_topics", None)
    assert declare_topics(settings).created == check_topics(settings).topics
    assert kept_seconds(settings, [settings.nodes_topic]) > 0


def test_a_report_names_topics_without_the_right() -> None:
    rights = {"a": frozenset({"READ"}), "b": frozenset({"READ", "WRITE"})}
    report = TopicsReport("", (), (), (), KafkaFacts("", "4.1", 1), rights)
    report.raise_if_forbidden("READ", ["a", "b", "of which Kafka says nothing"])
    with pytest.raises(BrokerRefusedError) as refused:
        report.raise_if_forbidden("WRITE", ["a", "b"])
    assert refused.value.operation == "write a"
