"""Reads the ClusterProfiles of the clusters of this process from their hub, again and again, in a thread of its own.

A get for each, since they may be in several namespaces, and a right on one name is enough for that. What fails is tried
again, and is told by `/readyz`, a metric and the log; it stops nothing, and has no clusters wait.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Sequence
from typing import Final

import structlog

from evictstream.models.messages.envelope import DECODE_ERRORS
from evictstream.streams.errors import ApiRefusedError, ApiUnreachableError, KubernetesError
from evictstream.streams.feed.cluster_profile import FollowedProfile, ProfileContent, ProfilePlace, read_content
from evictstream.streams.kubernetes.access import ClusterAccess
from evictstream.streams.kubernetes.connection import Connection

log = structlog.get_logger(__name__)

PROFILE_GROUP: Final = "multicluster.x-k8s.io"

PROFILE_VERSIONS: Final = ("v1alpha2", "v1alpha1")
"""That are asked for, in this order: the first that the hub serves counts. Releases up to 0.1.2 serve the second."""

LARGEST_PROFILE_BYTES: Final = 2_097_152
"""2 MiB: etcd takes 1.5 MiB for an object, and one of an inventory has some kilobytes."""

PROFILE_RETRY_SECONDS: Final = 30.0
"""After a failure, if profiles are not read more often anyway."""

_LEAST_SHARE: Final = 0.75
"""Up to a quarter of the time between reads is taken off by chance, so that feeds do not all come at once."""

_NOT_FOUND: Final = 404


class ProfileReader(threading.Thread):
    """Reads each profile at once, and then every so often."""

    def __init__(self, hub: ClusterAccess, profiles: Sequence[FollowedProfile], seconds: float) -> None:
        """Make the thread; `seconds` are the most between two reads of a profile."""
        super().__init__(name="ClusterProfiles", daemon=True)
        self._hub = hub
        self._profiles = profiles
        self._seconds = seconds
        self._connection: Connection | None = None
        self._stopped = threading.Event()

    def stop(self) -> None:
        """Ask it to end. A request that is under way may take its time; nobody has to wait for it."""
        self._stopped.set()

    def run(self) -> None:
        """Read what is due, until stopped."""
        due_at = dict.fromkeys(self._profiles, 0.0)
        while due_at and not self._stopped.is_set():
            for profile in self._profiles:
                if due_at[profile] <= time.monotonic() and not self._stopped.is_set():
                    due_at[profile] = time.monotonic() + self.look(profile)
            self._stopped.wait(max(0.0, min(due_at.values()) - time.monotonic()))

    def look(self, profile: FollowedProfile) -> float:
        """Read a profile; returns after how many seconds to read it again."""
        wait = 0.0
        try:
            profile.take(self._read(profile.place))
            return self._seconds * random.uniform(_LEAST_SHARE, 1.0)  # noqa: S311 - no secret
        except KubernetesError as error:
            profile.fail(str(error))
            wait = (error.retry_after_seconds or 0.0) if isinstance(error, ApiRefusedError) else 0.0
        except Exception as error:
            log.exception("internal error while reading a ClusterProfile", cluster=profile.cluster)
            profile.fail(f"internal error: {type(error).__name__}")
        return max(wait, min(self._seconds, PROFILE_RETRY_SECONDS))

    def _read(self, place: ProfilePlace) -> ProfileContent:
        """Read a profile in the first version that the hub serves.

        Raises:
            KubernetesError: it cannot be read, or there is none.
        """
        if self._connection is None:
            self._connection = Connection(self._hub)
        refusal: ApiRefusedError | None = None
        for version in PROFILE_VERSIONS:
            path = f"/apis/{PROFILE_GROUP}/{version}/namespaces/{place.namespace}/clusterprofiles/{place.name}"
            try:
                body = _body(self._connection, path)
            except ApiRefusedError as error:
                if error.status != _NOT_FOUND:
                    raise
                if error.reason:  # the API server's own words; of what it does not serve it has none
                    refusal = error
                continue
            try:
                return read_content(body)
            except DECODE_ERRORS as error:
                reason = f"{path}: it is no ClusterProfile: {error}"
                raise ApiUnreachableError(host=self._connection.host, reason=reason, is_answered=True) from error
        if refusal is not None:
            raise refusal
        reason = f"it serves no ClusterProfile ({PROFILE_GROUP} in {' or '.join(PROFILE_VERSIONS)})"
        raise ApiUnreachableError(host=self._connection.host, reason=reason, is_answered=True)


def _body(connection: Connection, path: str) -> bytes:
    """Read an answer up to its limit."""
    body = bytearray()
    with connection.arriving(path, {}) as pieces:
        for piece in pieces:
            body += piece
            if len(body) > LARGEST_PROFILE_BYTES:
                reason = f"{path}: more than {LARGEST_PROFILE_BYTES} bytes"
                raise ApiUnreachableError(host=connection.host, reason=reason, is_answered=True)
    return bytes(body)
