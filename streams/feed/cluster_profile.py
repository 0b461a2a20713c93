"""The ClusterProfile of a cluster: an object of an inventory in a hub (multicluster.x-k8s.io, SIG Multicluster).

Its labels, and those of its properties that have the form of a label, label the cluster for readers of the fleet.
Nothing is decided by them. So a hub that does not answer, or answers nonsense, changes nothing: what was read last
stays, also over restarts of the feed, which finds it on the topic `feeds`.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

import msgspec
import structlog

from evictstream.models.messages.fleet import (
    LONGEST_PROFILE_NAME,
    LONGEST_PROFILE_NAMESPACE,
    MOST_CLUSTER_LABELS,
    ProfileRef,
)
from evictstream.streams.broker.feed_states import KnownProfile
from evictstream.streams.errors import WrongUseError
from evictstream.streams.feed.cluster_labels import is_label, is_label_value, is_subdomain
from evictstream.streams.feed.feed_records import ToldCluster

log = structlog.get_logger(__name__)

NOT_READ_YET: Final = "it was not read yet"


class ProfilePlace(NamedTuple):
    """Which ClusterProfile of the hub."""

    namespace: str
    name: str

    def __str__(self) -> str:
        """Write it as on the command line."""
        return f"{self.namespace}/{self.name}"


def profiles_of(texts: Iterable[str], clusters: Collection[str]) -> dict[str, ProfilePlace]:
    """Read `CLUSTER=NAMESPACE/NAME`, or `NAMESPACE/NAME` if there is one cluster; returns them by cluster.

    Raises:
        WrongUseError: a text says of no cluster that is fed which profile is its, or says so twice.
    """
    profiles: dict[str, ProfilePlace] = {}
    for text in texts:
        cluster, equals, where = text.rpartition("=")
        if not equals:
            if len(clusters) > 1:
                raise WrongUseError(
                    f"--profile {text} does not say of which cluster",
                    next_step="write --profile CLUSTER=NAMESPACE/NAME",
                )
            (cluster,) = clusters
        if cluster not in clusters:
            raise WrongUseError(f"--profile {text} is of a cluster that is not fed", next_step="name it by --cluster")
        if cluster in profiles:
            raise WrongUseError(f"--profile is given twice for {cluster}")
        namespace, _, name = where.partition("/")
        is_namespace = is_subdomain(namespace, LONGEST_PROFILE_NAMESPACE) and "." not in namespace
        if not (is_namespace and is_subdomain(name, LONGEST_PROFILE_NAME)):
            raise WrongUseError(f"{where!r} names no ClusterProfile", next_step="write --profile NAMESPACE/NAME")
        profiles[cluster] = ProfilePlace(namespace, name)
    return profiles


class _Metadata(msgspec.Struct):
    labels: dict[str, str] | None = None


class _Manager(msgspec.Struct):
    name: str = ""


class _Spec(msgspec.Struct, rename="camel"):
    cluster_manager: _Manager | None = None


class _Property(msgspec.Struct):
    name: str
    value: str


class _Status(msgspec.Struct):
    properties: list[_Property] | None = None


class _Profile(msgspec.Struct, tag_field="kind", tag="ClusterProfile"):
    metadata: _Metadata
    spec: _Spec | None = None
    status: _Status | None = None


_decoder: Final = msgspec.json.Decoder(_Profile)


class ProfileContent(NamedTuple):
    """What counts of a ClusterProfile.

    Attributes:
        manager: who keeps it; empty if that is not known.
        labels: its own, then its properties, each by name.
        odd: how many of its own labels are none as Kubernetes has them.
    """

    manager: str
    labels: dict[str, str]
    odd: int


def read_content(body: bytes) -> ProfileContent:
    """Read a ClusterProfile, of any version: they differ in nothing that counts here.

    Raises:
        msgspec.DecodeError: it is none; also `UnicodeDecodeError` and `RecursionError`.
    """
    profile = _decoder.decode(body)
    own = profile.metadata.labels or {}
    labels = {key: value for key, value in sorted(own.items()) if is_label(key, value)}
    odd = len(own) - len(labels)
    properties = (profile.status and profile.status.properties) or ()
    for each in sorted(properties, key=lambda one: one.name):
        if each.name not in own and is_label(each.name, each.value):
            labels[each.name] = each.value
    manager = (profile.spec and profile.spec.cluster_manager) or _Manager()
    return ProfileContent(manager.name if is_label_value(manager.name) else "", labels, odd)


class FollowedProfile:
    """What is known of one cluster by its ClusterProfile. Used by several threads.

    Attributes:
        cluster: its name.
        place: where the profile is.
        known: what was read of it last, by this feed or the one before; None if nothing was.
        trouble: why the newest attempt to read it has failed; empty if it has not.
        left_out: how many labels of it are not used.
    """

    def __init__(self, cluster: str, place: ProfilePlace, labels: Mapping[str, str]) -> None:
        """Know nothing yet; `labels` were given to the feed, and win over those of the profile."""
        self.cluster = cluster
        self.place = place
        self.known: KnownProfile | None = None
        self.trouble = NOT_READ_YET
        self.left_out = 0
        self._labels = labels
        self._lock = threading.Lock()
        self._log = log.bind(cluster=cluster, profile=str(place))

    @property
    def problem(self) -> str:
        """What is wrong with it, for people; empty if nothing is."""
        if self.trouble or not self.left_out:
            return self.trouble
        return f"{self.left_out} of its labels are not used: no more than {MOST_CLUSTER_LABELS}, or not in their form"

    def recall(self, kept: KnownProfile | None) -> None:
        """Take what an earlier feed has read, unless this one has read the profile itself."""
        with self._lock:
            if self.known is None and kept is not None and kept.place == self.place:
                self.known = kept

    def take(self, content: ProfileContent) -> None:
        """Take what was read just now."""
        namespace, name = self.place
        ref = ProfileRef(namespace=namespace, name=name, manager=content.manager)
        labels = dict(list(content.labels.items())[:MOST_CLUSTER_LABELS])
        with self._lock:
            known = KnownProfile(ref=ref, labels=labels)
            is_new = bool(self.trouble) or known != self.known
            self.known, self.trouble = known, ""
        self.left_out = content.odd + len(content.labels.keys() - self.told().labels.keys())
        if is_new:
            self._log.info("ClusterProfile read", labels=len(labels), left_out=self.left_out)

    def fail(self, reason: str) -> None:
        """Note why it was not read; the log says so when the reason is new."""
        if reason != self.trouble:
            self._log.warning("ClusterProfile not read", error=reason)
        self.trouble = reason

    def told(self) -> ToldCluster:
        """Return what heartbeats say of the cluster: labels that the feed was given, then those of the profile."""
        known = self.known
        if known is None:
            return ToldCluster(self._labels)
        more = [(key, value) for key, value in known.labels.items() if key not in self._labels]
        room = MOST_CLUSTER_LABELS - len(self._labels)
        return ToldCluster({**self._labels, **dict(more[:room])}, known.ref)
