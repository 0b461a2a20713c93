"""Each rule for feeds on evidence without Kafka: held by what the contract wants, broken by one fault."""

from __future__ import annotations

import dataclasses

import pytest

from evictstream.kit.conformance.command_writer import partition_of_key
from evictstream.kit.conformance.feed_evidence import TopicObjects
from evictstream.kit.conformance.feed_rules import FEED_RULES
from evictstream.kit.conformance.process_rules import ProcessEvidence
from evictstream.models.instants import instant_text
from evictstream.streams import partitioner as streams_partitioner
from tests.kit.conformance.told_feed import CLUSTER_UID, PARTITIONS, SILENT_AT, Raw, Spoil, ToldFeed, without_fault

ALL = [rule.name for rule in FEED_RULES]


def first(told: ToldFeed, type_: str, kind: str = "Pod") -> Raw:
    return told.of(type_, kind)[0]


def event(type_: str, **fields: object) -> Spoil:
    """Give the first record of a type on the pods topic these fields."""
    return lambda told: first(told, type_)["event"].update(fields)


def thing(name: str, *path: str, value: object) -> Spoil:
    """Give the object in the first record about a name this field."""

    def spoil(told: ToldFeed) -> None:
        place = told.about(name)[0]["event"]["object"]
        for part in path[:-1]:
            place = place[part]
        place[path[-1]] = value

    return spoil


def without(name: str, number: int = -1) -> Spoil:
    """Leave out one record about a name."""
    return lambda told: told.drop(told.about(name)[number])


def in_another_partition(told: ToldFeed) -> None:
    record = told.about("pod-0")[0]
    record["partition"] = (record["partition"] + 1) % PARTITIONS


def heartbeat_in_each_partition(told: ToldFeed) -> None:
    """Send a signal by number, as if a cluster were in all partitions."""
    for number in range(PARTITIONS):
        told.send("Pod", "HEARTBEAT", clusterUid=CLUSTER_UID, listedAt=instant_text(int(told.now * 1e6)))
        told.records[-1]["partition"] = number


def no_listing(after: str, until: str) -> Spoil:
    """Leave out all `LISTED` between two looks at the cluster."""

    def spoil(told: ToldFeed) -> None:
        begin, end = told.looks[after][0], told.looks[until][0]
        told.drop(*[one for one in told.of("LISTED") if begin < one["at"] <= end])

    return spoil


def listed_first(told: ToldFeed) -> None:
    record = first(told, "LISTED")
    told.drop(record)
    told.records.insert(0, record)


def heartbeats_first(told: ToldFeed) -> None:
    record = first(told, "HEARTBEAT")
    told.drop(record)
    told.records.insert(0, record)


def no_heartbeats_of_nodes(told: ToldFeed) -> None:
    told.drop(*told.of("HEARTBEAT", "Node"))


def pauses(told: ToldFeed) -> None:
    told.drop(*[one for one in told.of("HEARTBEAT") if one["at"] < 130])
    told.beat(131.0)
    told.beat(171.0)
    told.records.sort(key=lambda one: float(one["at"]))


def goes_on(told: ToldFeed) -> None:
    told.beat(SILENT_AT + 65.0)


def goes_on_with_one_time(told: ToldFeed) -> None:
    """Say the same of each heartbeat; none can have taken so long."""
    told.beat(SILENT_AT + 40.0)
    for one in told.records[-2:]:
        one["at"] += 55.0


def says_error(told: ToldFeed) -> None:
    told.send("Pod", "ERROR", object={"kind": "Status", "code": 410})


def deletes_with_an_old_version(told: ToldFeed) -> None:
    first(told, "DELETED")["event"]["object"]["metadata"]["resourceVersion"] = "1"


def goes_back(told: ToldFeed) -> None:
    told.about("node-0")[1]["event"]["object"]["metadata"]["resourceVersion"] = "3"


def no_epoch(told: ToldFeed) -> None:
    for one in told.records:
        one["event"].pop("epoch", None)


def old_epoch_behind_the_new(told: ToldFeed) -> None:
    one = [one for one in told.of("HEARTBEAT") if "epoch" in one["event"]][-1]
    del one["event"]["epoch"]


def too_long(told: ToldFeed) -> None:
    told.of("LISTED", "Pod")[0]["event"]["listing"]["uids"]["node-0"] = ["u" * 300_000]


def gap_in_the_ranges(told: ToldFeed) -> None:
    first(told, "LISTED")["event"]["listing"]["through"] = "node-1"


def gap_in_the_uids(told: ToldFeed) -> None:
    first(told, "LISTED")["event"]["listing"]["uidThrough"] = "uid-1"


def garbage(told: ToldFeed) -> None:
    first(told, "DELETED")["event"] = b'{"cluster": "conformance", "type": "ADD'


def more(**fields: object) -> Spoil:
    return lambda told: told.more.update(fields)


SPOILT: list[tuple[str, Spoil]] = [
    ("readable", garbage),
    ("readable", event("ADDED", epoch="one")),
    ("readable", thing("pod-0", "metadata", "resourceVersion", value="v1")),
    ("kind", lambda told: told.about("pod-0")[0]["event"]["object"].pop("kind")),
    ("keys", in_another_partition),
    ("keys", lambda told: told.about("pod-0")[0].update(key=b"conformance/node-0")),
    ("keys", event("LISTED", cluster="another")),
    ("keys", lambda told: first(told, "HEARTBEAT").update(key=b"conformance/")),
    ("keys", heartbeat_in_each_partition),
    ("listing", without("pod-0", 0)),
    ("listed", listed_first),
    ("listed", gap_in_the_ranges),
    ("listed", gap_in_the_uids),
    ("listed", lambda told: told.drop(told.of("LISTED", "Node")[1])),
    ("listed", lambda told: told.drop(*told.of("LISTED", "Node"))),
    ("listed", lambda told: first(told, "LISTED")["event"]["listing"]["uids"].clear()),
    ("heartbeats", no_heartbeats_of_nodes),
    ("heartbeats", heartbeats_first),
    ("heartbeats", lambda told: first(told, "HEARTBEAT")["event"].pop("listedAt")),
    ("pace", pauses),
    ("silence", goes_on),
    ("silence", goes_on_with_one_time),
    ("changes", lambda told: told.drop(first(told, "DELETED"))),
    ("changes", lambda told: told.drop(told.about("node-0")[1])),
    ("cut", without("cut", 0)),
    ("half-line", without("half-line", 0)),
    ("garbage", without("garbage", 0)),
    ("error-event", without("error-event", 0)),
    ("no-errors", says_error),
    ("forgotten", no_listing("error-event", "forgotten")),
    ("away", no_listing("forgotten", "away")),
    ("deleted-version", deletes_with_an_old_version),
    ("order", goes_back),
    ("epoch", no_epoch),
    ("epoch", old_epoch_behind_the_new),
    ("fields", thing("pod-0", "spec", "tolerations", value=[{"operator": "Exists"}])),
    ("not-cached", more(cached_lists=1)),
    ("sizes", too_long),
    ("stays", more(process=ProcessEvidence(ended_by_itself="signal 11"))),
    ("cluster-uid", event("HEARTBEAT", clusterUid="another")),
    ("stops", more(process=ProcessEvidence(stop_seconds=None))),
]


def test_what_the_contract_wants_holds_every_rule() -> None:
    assert without_fault().standings() == dict.fromkeys(ALL, "held")


@pytest.mark.parametrize(("rule", "spoil"), SPOILT)
def test_one_fault_breaks_its_rule(rule: str, spoil: Spoil) -> None:
    told = without_fault()
    spoil(told)
    assert told.standings()[rule] == "BROKEN"


def test_every_rule_can_be_broken() -> None:
    assert {rule for rule, _ in SPOILT} == set(ALL)


def test_nothing_recorded_shows_nothing() -> None:
    told = ToldFeed()
    told.more = {"process": ProcessEvidence(is_ours=False)}
    found = told.standings()
    assert found.pop("not-cached") == "held"  # it is known that nothing was listed
    assert set(found.values()) == {"not shown"}


def test_heartbeats_and_listings_may_be_left_out() -> None:
    """A feed may remember what it has written, send `DELETED` instead, and never begin with heartbeats."""
    told = without_fault()
    told.drop(*told.of("HEARTBEAT"))
    told.more["silent_at"] = None
    found = told.standings()
    assert {found[name] for name in ("heartbeats", "pace", "silence")} == {"not shown"}
    told = ToldFeed()
    told.write("ADDED", told.put("Pod", "pod-0", "node-0"))
    told.look("listing")
    assert told.standings()["listed"] == "not shown"


def test_a_heartbeat_delayed_by_kafka_counts_from_its_observation() -> None:
    told = without_fault()
    for one in told.records[-2:]:
        one["at"] += 25.0
    assert told.standings()["silence"] == "held"


def test_a_kill_is_no_pause_of_heartbeats() -> None:
    told = without_fault()
    assert max(one["at"] for one in told.of("HEARTBEAT") if one["at"] < 200) < 140
    assert told.standings()["pace"] == "held"


def test_known_objects_follow_versions_and_listings() -> None:
    told = without_fault()
    records = told.evidence().records
    assert set(TopicObjects(records).objects) == set(told.objects)
    late = dataclasses.replace(records[0], event=records[0].event | {"type": "DELETED"})
    assert set(TopicObjects([*records, late]).objects) == set(told.objects)


def test_unknown_fields_and_unbound_pods_are_passed_over() -> None:
    told = without_fault()
    for one in told.records:
        one["event"]["addedLater"] = {"to": ["the contract"]}
    unbound = told.put("Pod", "unbound", "")
    told.write("ADDED", unbound)
    del told.objects[unbound]
    told.look("rebuilt")
    assert told.standings() == dict.fromkeys(ALL, "held")


@pytest.mark.parametrize("partitions", [1, 3, 64])
def test_partitions_are_those_of_the_product(partitions: int) -> None:
    for number in range(50):
        key = f"cluster-{number}".encode()
        assert partition_of_key(key, partitions) == streams_partitioner.partition_of(key, partitions)
