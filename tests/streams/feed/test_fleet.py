"""Several clusters in one process: what is wrong with one of them costs no other."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from evictstream.kit.conformance.fake_api import FakeApi
from evictstream.streams.errors import ClusterNameTakenError, CredentialsError, EvictstreamError
from evictstream.streams.feed import cluster_feed
from evictstream.streams.feed.cluster_feed import ClusterFeed
from evictstream.streams.feed.fleet import feed_clusters
from evictstream.streams.kubernetes.access import ClusterAccess
from evictstream.streams.settings import Settings
from tests.harness.known_cluster import KnownCluster
from tests.streams.feed.feeding import feeding, listed, wait_for

pytestmark = pytest.mark.usefixtures("_short_watches")


class Fleet(threading.Thread):
    """`evictstream feed` in a thread; `failure` is what it ends with."""

    def __init__(self, settings: Settings, accesses: dict[str, ClusterAccess], options: Mapping[str, Any]) -> None:
        super().__init__(daemon=True)
        self.failure: EvictstreamError | None = None
        self.stopped = threading.Event()
        self._settings = settings.model_copy(update={"health_port": 0})
        self._accesses = accesses
        self._options = options

    def run(self) -> None:
        try:
            feed_clusters(
                self._accesses,
                settings=self._settings,
                keep_whole=False,
                new_epoch=False,
                is_stopped=self.stopped.is_set,
                **self._options,
            )
        except EvictstreamError as error:
            self.failure = error


@contextlib.contextmanager
def fleet(
    settings: Settings, options: Mapping[str, Any] = MappingProxyType({}), /, **accesses: ClusterAccess
) -> Iterator[Fleet]:
    found = Fleet(settings, accesses, options)
    found.start()
    try:
        yield found
    finally:
        found.stopped.set()
        found.join(30)


def access(api: FakeApi, folder: Path, name: str, user: dict[str, object] | None = None) -> ClusterAccess:
    file = folder / name
    config = json.loads(api.kubeconfig())
    if user is not None:
        config["users"][0]["user"] = user
    file.write_text(json.dumps(config))
    return ClusterAccess(kubeconfig=str(file))


def plugin(*command: str) -> dict[str, object]:
    version = "client.authentication.k8s.io/v1"
    return {"exec": {"apiVersion": version, "interactiveMode": "Never", "command": command[0], "args": command[1:]}}


@pytest.mark.parametrize(
    "problem",
    [
        pytest.param("no-configuration", marks=pytest.mark.kit),
        pytest.param("no-credentials", marks=pytest.mark.kit),
        pytest.param("plugin-hangs", marks=pytest.mark.kit),
        pytest.param("name-taken", marks=pytest.mark.kit),
        "no-server",
    ],
)
def test_a_cluster_that_cannot_be_fed_costs_no_other(
    problem: str, declared: Settings, api: FakeApi, tmp_path: Path
) -> None:
    with FakeApi() as other:
        bad = access(other, tmp_path, "bad")
        match problem:
            case "no-configuration":
                bad = ClusterAccess(kubeconfig=str(tmp_path / "none"))
            case "no-credentials":
                bad = access(other, tmp_path, "bad", plugin("false"))
            case "plugin-hangs":
                bad = access(other, tmp_path, "bad", plugin("sleep", "30"))
            case "name-taken":
                with feeding(declared, other, tmp_path) as before:
                    listed(before)
                other.uid = "another"
            case _:
                other.is_down = True
        with fleet(declared, lab=bad, good=access(api, tmp_path, "good")) as process:
            wait_for(lambda: KnownCluster(declared, "good").heartbeats > 0)
            assert process.failure is None
            assert process.is_alive()


@pytest.mark.parametrize("problem", [CredentialsError, ClusterNameTakenError])
def test_a_process_that_can_feed_no_cluster_ends(
    problem: type[EvictstreamError], declared: Settings, api: FakeApi, tmp_path: Path
) -> None:
    bad = ClusterAccess(kubeconfig=str(tmp_path / "none"))
    if problem is ClusterNameTakenError:
        with feeding(declared, api, tmp_path) as before:
            listed(before)
        api.uid = "another"
        bad = access(api, tmp_path, "bad")
    with fleet(declared, lab=bad) as process:
        wait_for(lambda: not process.is_alive())
        assert isinstance(process.failure, problem)


def test_another_cluster_at_the_address_ends_the_feeding(declared: Settings, api: FakeApi, tmp_path: Path) -> None:
    """Also one with lower versions, which a rebuilt one has."""
    uid, version = api.uid, api.version
    with feeding(declared, api, tmp_path) as feed:
        listed(feed)
        objects = dict(api.objects)
        api.rebuild(uid="another")
        api.end_watches()
        wait_for(lambda: isinstance(feed.refusal, ClusterNameTakenError))
        assert not feed.is_proven
        assert feed.is_alive()
        api.rebuild(uid=uid, version=version)
        api.objects.update(objects)
        listed(feed, 2)
    assert feed.epochs == 0
    assert KnownCluster(declared, "lab").epochs == {0}


def test_an_error_of_one_cluster_has_it_listed_again(
    declared: Settings, api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_feed, "FAILURE_SECONDS", 0.1)
    left = [RuntimeError("a fault of the program")]
    kind_feed = ClusterFeed._kind_feed

    def fail(*arguments: object) -> object:
        if left:
            raise left.pop()
        return kind_feed(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(ClusterFeed, "_kind_feed", fail)
    with feeding(declared, api, tmp_path) as feed:
        listed(feed)
        assert feed.failures == 1
        assert feed.failure is None
