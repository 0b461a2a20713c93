"""What a ClusterProfile says of a cluster, in a hub that misbehaves: what was read stays, and the feed says why."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from evictstream.kit.conformance.fake_api import FakeApi
from evictstream.kit.conformance.fake_faults import Fault, deep, deep_json
from evictstream.models.messages.fleet import ProfileRef
from evictstream.streams.broker.feed_states import KnownProfile
from evictstream.streams.cli.main import run
from evictstream.streams.errors import ExitCode, WrongUseError
from evictstream.streams.feed.cluster_profile import FollowedProfile, ProfilePlace, profiles_of, read_content
from evictstream.streams.feed.feed_health import FeedHealth
from evictstream.streams.feed.profile_reader import LARGEST_PROFILE_BYTES, PROFILE_RETRY_SECONDS, ProfileReader
from evictstream.streams.feed.publisher import Publisher
from evictstream.streams.kubernetes.access import ClusterAccess
from tests.streams.feed.feeding import wait_for

PLACE = ProfilePlace("fleet", "lab-eu")
REF = ProfileRef(namespace="fleet", name="lab-eu", manager="hubs")
LABELS = {"x-k8s.io/cluster-manager": "hubs", "tier": "gold"}
PROFILE: dict[str, Any] = {
    "metadata": {"namespace": "fleet", "name": "lab-eu", "labels": LABELS},
    "spec": {"displayName": "Lab", "clusterManager": {"name": "hubs"}},
    "status": {
        "version": {"kubernetes": "1.36.3"},
        "properties": [
            {"name": "topology.kubernetes.io/region", "value": "eu-west", "lastObservedTime": "2026-11-21T02:15:53Z"},
            {"name": "tier", "value": "from a property"},
            {"name": "about.example.com/owner", "value": "a text with spaces"},
        ],
    },
}
KNOWN = {**LABELS, "topology.kubernetes.io/region": "eu-west"}


@pytest.fixture
def hub() -> Iterator[FakeApi]:
    with FakeApi() as found:
        found.profile_versions = {"v1alpha1"}
        found.profiles = {str(PLACE): PROFILE}
        yield found


@pytest.fixture
def followed() -> FollowedProfile:
    return FollowedProfile("lab", PLACE, {})


@pytest.fixture
def reader(hub: FakeApi, tmp_path: Path, followed: FollowedProfile) -> ProfileReader:
    file = tmp_path / "hub"
    file.write_text(hub.kubeconfig())
    return ProfileReader(ClusterAccess(kubeconfig=str(file)), [followed], 300.0)


def body(**changes: Any) -> bytes:
    return json.dumps({"kind": "ClusterProfile", **PROFILE, **changes}).encode()


@pytest.mark.parametrize("versions", [{"v1alpha1"}, {"v1alpha2"}, {"v1alpha1", "v1alpha2"}], ids=sorted)
def test_a_profile_is_read_in_whatever_version(
    versions: set[str], hub: FakeApi, reader: ProfileReader, followed: FollowedProfile
) -> None:
    hub.profile_versions = versions
    assert 225 <= reader.look(followed) <= 300
    assert followed.told() == (KNOWN, REF)
    assert followed.problem == ""


def test_labels_of_flags_win() -> None:
    followed = FollowedProfile("lab", PLACE, {"tier": "iron", "site": "fra"})
    followed.take(read_content(body()))
    assert followed.told().labels == {**KNOWN, "tier": "iron", "site": "fra"}
    assert followed.left_out == 0


def test_labels_win_over_properties() -> None:
    """Also a label that is none: its property says something else."""
    labels = {"tier": "no label at all"}
    content = read_content(body(metadata={"labels": labels}))
    assert content.labels == {"topology.kubernetes.io/region": "eu-west"}
    assert content.odd == 1


@pytest.mark.parametrize(
    "profile",
    [
        {"metadata": {}},
        {"metadata": {"labels": None}, "spec": None, "status": None},
        {"metadata": {"labels": {}}, "spec": {"clusterManager": None}, "status": {"properties": None}},
        {"metadata": {}, "spec": {"clusterManager": {"name": "no label at all"}}},
    ],
    ids=["nothing", "nulls", "nulls-below", "manager"],
)
def test_what_a_profile_does_not_say_is_not_known(profile: dict[str, Any]) -> None:
    assert read_content(json.dumps({"kind": "ClusterProfile"} | profile).encode()) == ("", {}, 0)


def test_no_more_labels_than_heartbeats_may_have() -> None:
    many = {f"k{number:02}": "v" for number in range(60)}
    properties = [{"name": "a", "value": "property"}]
    followed = FollowedProfile("lab", PLACE, {"k55": "flag", "z": "flag"})
    followed.take(read_content(body(metadata={"labels": many}, status={"properties": properties})))
    told = followed.told().labels
    assert set(told) == {"k55", "z"} | {f"k{number:02}" for number in range(48)}
    assert (told["k55"], followed.left_out) == ("flag", 12)
    assert followed.problem.startswith("12 of its labels are not used")


ABSENT = Fault(status=404, text="404 page not found\n")
LONG = Fault(status=200, text=" " * (LARGEST_PROFILE_BYTES + 1))
DEEP = Fault(status=200, text=deep_json({"kind": "ClusterProfile", "metadata": deep(200_000)}).decode())


@pytest.mark.parametrize(
    ("faults", "words"),
    [
        pytest.param([403], "answered 403", id="no right"),
        pytest.param([ABSENT, 404], "answered 404", id="no such profile"),
        pytest.param([ABSENT, ABSENT], "it serves no ClusterProfile", id="not defined"),
        pytest.param([500], "answered 500", id="an error"),
        pytest.param([401, 401], "answered 401", id="credentials"),
        pytest.param([ABSENT, "cut"], "no answer", id="half an answer"),
        pytest.param([LONG], "more than 2097152 bytes", id="too long"),
        pytest.param([DEEP], "it is no ClusterProfile", id="too deep"),
        pytest.param([Fault(status=200, text="<html>")], "it is no ClusterProfile", id="no JSON"),
        pytest.param([Fault(status=200, text='{"kind":"Pod","metadata":{}}')], "it is no ClusterProfile", id="a pod"),
        pytest.param(
            [Fault(status=200, text='{"kind":"ClusterProfile","metadata":{"labels":{"a":1}}}')],
            "it is no ClusterProfile",
            id="a number",
        ),
    ],
)
def test_what_was_read_stays_and_the_reason_is_told(
    faults: list[int | str | Fault], words: str, hub: FakeApi, reader: ProfileReader, followed: FollowedProfile
) -> None:
    reader.look(followed)
    hub.trouble = {"get clusterprofiles": faults}
    assert reader.look(followed) == PROFILE_RETRY_SECONDS
    assert words in followed.trouble
    assert followed.told() == (KNOWN, REF)
    assert not hub.trouble["get clusterprofiles"]
    reader.look(followed)
    assert followed.problem == ""


def test_a_hub_that_asks_for_time_gets_it(hub: FakeApi, reader: ProfileReader, followed: FollowedProfile) -> None:
    hub.trouble = {"get clusterprofiles": [Fault(status=429, retry_after_seconds=90)]}
    assert reader.look(followed) == 90


def test_a_hub_that_is_gone_or_unknown_is_told(hub: FakeApi, reader: ProfileReader, followed: FollowedProfile) -> None:
    hub.is_down = True
    assert reader.look(followed) == PROFILE_RETRY_SECONDS
    assert "no answer" in followed.trouble
    assert followed.told() == ({}, None)
    ProfileReader(ClusterAccess(kubeconfig="/nowhere"), [followed], 10.0).look(followed)
    assert "no credentials from /nowhere" in followed.trouble


def test_profiles_are_read_again_and_one_costs_no_other(hub: FakeApi, reader: ProfileReader) -> None:
    absent, there = FollowedProfile("a", ProfilePlace("fleet", "absent"), {}), FollowedProfile("b", PLACE, {})
    again = ProfileReader(reader._hub, [absent, there], 0.05)
    again.start()
    wait_for(lambda: there.told().labels == KNOWN)
    hub.profiles[str(PLACE)] = PROFILE | {"metadata": {"labels": {"tier": "iron"}}}
    wait_for(lambda: there.told().labels.get("tier") == "iron")
    assert 'clusterprofiles.multicluster.x-k8s.io "absent" not found' in absent.trouble
    hub.profiles["fleet/absent"] = PROFILE
    wait_for(lambda: not absent.problem)
    again.stop()
    again.join(10)
    assert not again.is_alive()


def test_an_internal_error_ends_nothing(
    reader: ProfileReader, followed: FollowedProfile, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(followed, "take", fail)
    assert reader.look(followed) == PROFILE_RETRY_SECONDS
    assert followed.trouble == "internal error: ZeroDivisionError"


def test_what_an_earlier_feed_has_read_is_recalled(followed: FollowedProfile) -> None:
    kept = KnownProfile(ref=REF, labels={"tier": "old"})
    followed.recall(KnownProfile(ref=msgspec.structs.replace(REF, name="another"), labels={"tier": "another"}))
    assert followed.told() == ({}, None)
    followed.recall(kept)
    assert followed.told() == ({"tier": "old"}, REF)
    followed.take(read_content(body()))
    followed.recall(kept)
    assert followed.told() == (KNOWN, REF)


def test_readiness_names_the_problem_and_does_not_end(followed: FollowedProfile) -> None:
    health = FeedHealth((), cast("Publisher", SimpleNamespace(in_flight=0)), [followed])
    followed.fail("no answer")
    report = health.ready(0.0)
    assert (report.status, report.body["profiles"]) == (200, {"lab": "no answer"})
    (metric,) = [one for one in health.collect() if one.name == "evictstream_feed_profile_read"]
    assert [(sample.labels, sample.value) for sample in metric.samples] == [({"cluster": "lab"}, 0)]
    followed.take(read_content(body()))
    assert health.ready(0.0).body["profiles"] == {}
    (metric,) = [one for one in health.collect() if one.name == "evictstream_feed_profile_read"]
    assert [sample.value for sample in metric.samples] == [1]


def test_profiles_are_given_by_cluster() -> None:
    assert profiles_of(["fleet/lab-eu"], ["lab"]) == {"lab": PLACE}
    assert profiles_of(["b=fleet/lab.eu"], ["a", "b"]) == {"b": ProfilePlace("fleet", "lab.eu")}


@pytest.mark.parametrize(
    ("texts", "clusters"),
    [
        (["fleet/x"], ["a", "b"]),
        (["c=fleet/x"], ["a", "b"]),
        (["a=fleet/x", "a=fleet/y"], ["a", "b"]),
        (["fleet/x", "fleet/x"], ["a"]),
        (["fleet"], ["a"]),
        (["/x"], ["a"]),
        (["fleet/"], ["a"]),
        (["fleet/x/y"], ["a"]),
        (["fl.eet/x"], ["a"]),
        (["fleet/X"], ["a"]),
        (["fleet/.."], ["a"]),
        ([f"{'f' * 64}/x"], ["a"]),
        ([f"fleet/{'x' * 254}"], ["a"]),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_names_no_profile_is_wrong_use(texts: list[str], clusters: list[str]) -> None:
    with pytest.raises(WrongUseError):
        profiles_of(texts, clusters)


def test_a_hub_without_a_profile_is_wrong_use(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["feed", "--cluster", "lab", "--hub", "admin@hub"]) == ExitCode.WRONG_USE
    assert "no profile in it" in capsys.readouterr().err
