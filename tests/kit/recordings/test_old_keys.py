"""Recordings of format 1, with the keys `<cluster>/<node>`: the same records as if they had been recorded today."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from evictstream.kit.recordings.old_keys import MOST_OPEN, rekeyed
from evictstream.kit.recordings.record import RecordedRecord, Role
from evictstream.kit.recordings.recording_folder import MANIFEST, RecordingWriter, read_manifest
from evictstream.kit.replay.replay import Replay
from evictstream.kit.replay.sources import RecordedFolder
from evictstream.streams.feed.feed_records import LISTING_BYTES
from evictstream.streams.partitioner import partition_of
from evictstream.streams.settings import Settings
from tests.kit.recordings.old_form import in_old_form, write_old
from tests.kit.replay.lives import AFTER_SECONDS, PARTITIONS, SILENCE_SECONDS, draw_life

KEPT = Path(__file__).with_name("format_1")
SPREAD = 3

Json = dict[str, Any]


def said(record: RecordedRecord) -> tuple[object, ...]:
    """What a record says; the order of UIDs in a listing, and fields with their defaults, do not matter."""
    value = json.loads(record.value or b"")
    if value.get("type") == "LISTED":
        listing = value["listing"]
        listing["uids"] = {node: sorted(uids) for node, uids in listing["uids"].items() if uids}
        value = {"epoch": 0, "clusterUid": "", **value}
    return record.topic, record.partition, record.timestamp, record.key, value


def replayed(records: Sequence[RecordedRecord], settings: Settings, partitions: int) -> list[Json]:
    run = Replay(settings, partitions=partitions, plays_executor=True)
    messages = sorted([*run.run(records), *run.run_on(AFTER_SECONDS)])
    assert {message.topic for message in messages} <= {"commands", "decisions"}
    return [json.loads(message.value) for message in messages if message.topic == "commands"]


@pytest.mark.parametrize("seed", range(12))
def test_a_life_is_the_same_in_both_forms(seed: int) -> None:
    life = draw_life(seed)
    found = list(rekeyed(in_old_form(life.records, SPREAD), spread=SPREAD, partitions=PARTITIONS))
    assert [said(one) for one in found] == [said(one) for one in life.records]
    for topic in ("nodes", "pods"):
        for partition in range(PARTITIONS):
            offsets = [one.offset for one in found if (one.topic, one.partition) == (topic, partition)]
            assert offsets == list(range(len(offsets)))


def test_a_kept_recording_gives_its_kept_commands() -> None:
    """Both were written by a version whose recordings had format 1."""
    folder = RecordedFolder(KEPT / "recording", partitions=7)
    assert (folder.partitions, folder.clusters) == (2, {"c0", "c1"})
    settings = Settings.model_validate({"partitions": 2, "feed_silence_limit_seconds": SILENCE_SECONDS})
    commands = replayed(list(folder.read()), settings, folder.partitions)
    kept = [json.loads(line) for line in (KEPT / "commands.jsonl").read_bytes().splitlines()]

    def by_pod(some: list[Json]) -> list[Json]:
        # Clusters have other partitions, which orders what is commanded in one microsecond.
        return sorted(some, key=lambda one: (one["issuedAt"], one["cluster"], one["podUid"]))

    assert by_pod(commands) == by_pod(kept)


@pytest.mark.parametrize("is_cut", [False, True], ids=["with a manifest", "without"])
def test_a_folder_of_the_old_form_is_replayed(is_cut: bool, tmp_path: Path) -> None:  # noqa: FBT001
    life = draw_life(0)
    folder = write_old(tmp_path / "old", in_old_form(life.records, SPREAD), SPREAD)
    if is_cut:
        (folder / MANIFEST).unlink()
    source = RecordedFolder(folder, partitions=SPREAD)
    settings = life.settings.model_copy(update={"partitions": SPREAD})
    placed = [msgspec.structs.replace(one, partition=partition_of(one.key or b"", SPREAD)) for one in life.records]
    found = replayed(list(source.read()), settings, SPREAD)
    assert found == replayed(placed, settings, SPREAD)
    assert found


def test_a_cut_recording_of_today_stays_as_it_is(tmp_path: Path) -> None:
    records = draw_life(0).records
    with RecordingWriter(tmp_path / "new", partitions=PARTITIONS) as writer:
        for one in records:
            writer.write(one)
    manifest = read_manifest(tmp_path / "new")
    assert manifest is not None
    assert (manifest.format, list(manifest.clusters)) == (2, ["c0"])
    (tmp_path / "new" / MANIFEST).unlink()
    found = list(RecordedFolder(tmp_path / "new", partitions=PARTITIONS).read())
    assert sorted(found, key=lambda one: one.offset) == records


def old(value: Json | bytes, partition: int, *, key: bytes = b"lab/", topic: Role = "nodes") -> RecordedRecord:
    text = value if isinstance(value, bytes) else json.dumps({"cluster": "lab", **value}).encode()
    return RecordedRecord(topic=topic, partition=partition, offset=0, timestamp=1_000, key=key, value=text)


def values(records: Sequence[RecordedRecord], spread: int = 2) -> list[Json]:
    return [json.loads(one.value or b"") for one in rekeyed(records, spread=spread, partitions=1)]


FORGET: Json = {"type": "FORGET"}
BEAT: Json = {"type": "HEARTBEAT", "observedAt": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize("signal", [FORGET, BEAT, {"type": "ACCEPT_GAP"}], ids=lambda signal: signal["type"])
def test_a_signal_is_given_when_the_last_partition_has_it(signal: Json) -> None:
    other: Json = {"type": "BOOKMARK"}
    found = values([old(signal, 0), old(other, 0), old(signal, 1), old(signal, 1), old(signal, 0), old(signal, 1)])
    assert [one["type"] for one in found] == ["BOOKMARK", signal["type"], signal["type"]]


def test_each_topic_has_signals_of_its_own() -> None:
    assert values([old(BEAT, 0), old(BEAT, 1, topic="pods")]) == []


def listed(uids: dict[str, list[str]], version: str = "7", **more: object) -> Json:
    return {"type": "LISTED", "listing": {"resourceVersion": version, "uids": uids, **more}}


RANGES = [
    (0, listed({"a": ["1"]}, through="b")),
    (1, listed({"c": ["3"]})),
    (0, listed({"d": ["4"]}, after="b", through="d")),
    (0, listed({"e": ["5"]}, after="d", through="e", uidThrough="5")),
    (0, listed({"e": ["6"]}, after="d", through="e", uidAfter="5")),
    (0, listed({"f": ["7"]}, after="e")),
]


def test_ranges_of_a_listing_become_one_in_any_order() -> None:
    for seed in range(20):
        some = random.Random(seed).sample(RANGES, len(RANGES))  # noqa: S311
        (found,) = values([old(value, partition) for partition, value in some])
        assert found["listing"] == {
            "resourceVersion": "7",
            "after": "",
            "through": None,
            "uids": {"a": ["1"], "c": ["3"], "d": ["4"], "e": ["5", "6"], "f": ["7"]},
        }


@pytest.mark.parametrize("left_out", range(len(RANGES)))
def test_a_listing_without_one_of_its_ranges_is_left_out(left_out: int) -> None:
    some = RANGES[:left_out] + RANGES[left_out + 1 :]
    assert values([old(value, partition) for partition, value in some]) == []


def test_two_listings_are_not_mixed() -> None:
    records = [old(listed({}, version), partition) for version in ("7", "8") for partition in (0, 1)]
    order = [records[0], records[2], records[1], records[3]]
    assert [one["listing"]["resourceVersion"] for one in values(order)] == ["7", "8"]


def test_a_large_listing_has_ranges_again() -> None:
    uids = {f"n{number:02}": [f"{'u' * 60}{number:02}{pod:05}" for pod in range(600)] for number in range(20)}
    found = values(
        [old(listed({node: some for node, some in uids.items() if int(node[1:]) % 2 == half}), half) for half in (0, 1)]
    )
    assert len(found) > 1
    assert all(len(json.dumps(one)) < LISTING_BYTES * 2 for one in found)
    listings = [one["listing"] for one in found]
    assert [one["after"] for one in listings] == ["", *(one["through"] for one in listings[:-1])]
    assert {node: some for one in listings for node, some in one["uids"].items()} == uids


def test_what_never_comes_everywhere_is_not_kept() -> None:
    """A recording whose second partition is missing: the newest are kept, which may still become whole."""
    beats = [{"type": "HEARTBEAT", "observedAt": f"2026-01-01T00:00:{second:02}Z"} for second in range(60)]
    late = [old(beat, 1) for beat in (*beats[-MOST_OPEN:], *beats[:9])]
    assert values([*(old(beat, 0) for beat in beats), *late]) == [
        {"cluster": "lab", **one} for one in beats[-MOST_OPEN:]
    ]


@pytest.mark.parametrize(
    "record",
    [
        pytest.param(old(b"not JSON", 1, key=b"lab/n"), id="no JSON"),
        pytest.param(old(b'{"type":"LISTED"}', 1), id="a listing without a cluster"),
        pytest.param(old({"type": "LISTED"}, 1), id="a listing of nothing"),
        pytest.param(old({"type": ["LISTED"]}, 1), id="no type"),
        pytest.param(old({"type": "LISTED", "observedAt": "2026-01-01T00:00:00", "listing": {}}, 1), id="no zone"),
        pytest.param(old(b'"LISTED"', 1), id="a text"),
        pytest.param(old(b"not JSON", 1, key=b"lab/n", topic="results"), id="a result"),
    ],
)
def test_what_cannot_be_read_keeps_its_value(record: RecordedRecord) -> None:
    (found,) = rekeyed([record], spread=2, partitions=1)
    assert found == msgspec.structs.replace(record, key=b"lab", partition=0)


@pytest.mark.parametrize("key", [None, b"", b"lab", b"/n", b"a/b/c", b"\xff"])
def test_a_key_of_no_old_form_stays(key: bytes | None) -> None:
    record = msgspec.structs.replace(old(BEAT, 1), key=key, offset=9)
    assert list(rekeyed([record], spread=2, partitions=1)) == [record]
