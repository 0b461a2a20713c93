"""`evictstream get dead-letters`, and `dead-letters show` and `resend`."""

from __future__ import annotations

import json

import pytest
from kafka import KafkaProducer

from evictstream.models.messages.dead_letter import DeadLetterHeaders
from evictstream.streams.broker.admin import declare_topics
from evictstream.streams.broker.follow import FollowedRecord
from evictstream.streams.cli.dead_letter_list import DeadLetter, dead_letter_of, why_not_again
from evictstream.streams.settings import Settings
from evictstream.streams.worker.service_config import partition_config
from tests.harness.reading import TopicReader
from tests.streams.cli.running import run

SETTINGS = Settings.model_validate({})
NODE = {"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n", "uid": "u", "resourceVersion": "1"}}
ADDED = json.dumps({"cluster": "lab", "type": "ADDED", "object": NODE}).encode()
NOON_US = 1_795_262_400_000_000


def headers_of(
    value: bytes | None, *, settings: Settings = SETTINGS, topic: str | None = None, offset: int = 7, cut: bool = False
) -> DeadLetterHeaders:
    return DeadLetterHeaders.describe(
        reason="WrongPartition",
        detail="the key hashes to another partition",
        topic=topic or settings.nodes_topic,
        partition=0,
        offset=offset,
        key=b"lab",
        value=value,
        truncated=cut,
    )


def letter_of(value: bytes | None, *, topic: str | None = None, cut: bool = False) -> DeadLetter:
    record = FollowedRecord(
        partition=0,
        offset=0,
        timestamp_ms=NOON_US // 1_000,
        key=b"lab",
        value=value,
        headers=dict(headers_of(value, topic=topic, cut=cut).to_headers()),
    )
    letter = dead_letter_of(SETTINGS, record)
    assert letter is not None
    return letter


def test_its_place_is_without_the_prefix() -> None:
    seen = letter_of(ADDED).seen
    assert (seen.place, seen.key, seen.size) == ("nodes/0/7", "lab", len(ADDED))


def test_what_is_no_dead_letter_is_passed_over() -> None:
    record = FollowedRecord(partition=0, offset=0, timestamp_ms=0, key=None, value=b"x", headers={})
    assert dead_letter_of(SETTINGS, record) is None


@pytest.mark.parametrize(
    ("letter", "reason"),
    [
        pytest.param(letter_of(ADDED), None, id="readable-now"),
        pytest.param(letter_of(b"{"), "it would be a dead letter again: BadJson", id="still-broken"),
        pytest.param(letter_of(None), "it would be a dead letter again", id="no-value"),
        pytest.param(letter_of(ADDED, cut=True), "only the beginning", id="cut"),
        pytest.param(letter_of(ADDED, topic="other"), "no input of this service", id="another-service"),
        pytest.param(
            letter_of(b'{"cluster":"lab","type":"FORGET"}'), "a signal counts only when it is sent", id="signal"
        ),
    ],
)
def test_only_what_can_be_used_is_sent_again(letter: DeadLetter, reason: str | None) -> None:
    said = why_not_again(letter, NOON_US, partition_config(SETTINGS, 1_000_000))
    assert (said is None) if reason is None else (reason in (said or ""))


def test_dead_letters_are_listed_shown_and_sent_again(settings: Settings) -> None:
    declare_topics(settings)
    producer = KafkaProducer(bootstrap_servers=settings.bootstrap_servers)
    for offset, value in ((7, ADDED), (8, b"{broken")):
        headers = headers_of(value, settings=settings, offset=offset).to_headers()
        producer.send(settings.dead_letters_topic, key=b"lab", value=value, headers=headers, partition=0)
    producer.close()
    names = run(settings, "get", "dead-letters", "--since", "1h", "-o", "name").stdout.decode().split()
    assert names == ["nodes/0/7", "nodes/0/8"]
    shown = json.loads(run(settings, "dead-letters", "show", "nodes/0/7", "-o", "json").stdout)
    assert (shown["reason"], shown["value"].encode()) == ("WrongPartition", ADDED)
    asked = run(settings, "dead-letters", "resend", *names)  # nobody answers, so nothing is sent
    assert (asked.returncode, b"nodes/0/8 is not sent" in asked.stderr, b"add --yes" in asked.stderr) == (2, True, True)
    result = run(settings, "dead-letters", "resend", *names, "--yes", "-o", "json")
    sent = json.loads(result.stdout)
    assert (result.returncode, sent["sent"], list(sent["notSent"])) == (1, ["nodes/0/7"], ["nodes/0/8"])
    reader = TopicReader(settings, settings.nodes_topic)
    assert [record.value for record in reader.to_end()] == [json.loads(ADDED)]
    reader.close()
