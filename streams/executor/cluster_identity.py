"""Whether a command is for the cluster that answers here: a name may lead to another cluster, or one may be rebuilt.

The connection sends requests to the expected cluster only. The feed defines which one is expected: by its state on the
topic `feeds`, and by the `clusterUid` of commands.
"""

from __future__ import annotations

import threading
import time
from typing import Final

import structlog

from evictstream.models.execution.command_log import CommandAnswer
from evictstream.models.messages.command import EvictionCommand
from evictstream.models.messages.vocabulary import Outcome
from evictstream.streams.broker.feed_states import read_state
from evictstream.streams.errors import BrokerError, ClusterChangedError, KubernetesError
from evictstream.streams.executor.eviction import CREDENTIALS_SECONDS, ExecutorMode, PodEvictor, PutOff
from evictstream.streams.kubernetes.connection import Connection
from evictstream.streams.settings import Settings

log = structlog.get_logger(__name__)

_LOOK_SECONDS: Final = 10.0
"""Between two checks of which cluster answers and which one is fed: as often as the connection checks by itself."""


class ClusterIdentity:
    """The UID of the cluster in which commands are carried out. Used by several threads."""

    def __init__(self, name: str, uid: str, *, connection: Connection, settings: Settings) -> None:
        """Expect the cluster that was checked at the start.

        Args:
            name: as commands call it.
            uid: of its namespace `kube-system`.
            connection: to its API server.
            settings: names the topic of the feeds' states.
        """
        self._name = name
        self._uid = uid
        self._seen_uid = uid
        self._fed_uid: str | None = None
        self._connection = connection
        self._settings = settings
        self._looked_at = -_LOOK_SECONDS
        self._lock = threading.Lock()
        connection.expect_cluster(uid)

    def objection(self, command: EvictionCommand) -> CommandAnswer | PutOff | None:
        """Return why a command must not be carried out here, or not yet; None if it may.

        A command for another cluster is obsolete if the cluster here is the one that is fed now. Otherwise the eviction
        is put off: perhaps this executor is connected to the wrong cluster.
        """
        uid = command.cluster_uid
        if uid is None or uid == self._uid:
            return None
        self.look_again()
        if uid == self._uid:
            return None
        seen = self._seen_uid
        reason = f"the command is for the cluster with UID {uid}, but the one at {self._connection.host} has {seen}"
        if self._fed_uid == self._uid == seen:
            return CommandAnswer(Outcome.OBSOLETE, reason)
        is_of_cluster = self._fed_uid == uid or seen != self._uid
        return PutOff(seconds=CREDENTIALS_SECONDS, reason=reason, is_of_cluster=is_of_cluster)

    def prove(self) -> None:
        """Ask which cluster answers; one that was rebuilt, and is fed again, is served from then on.

        Raises:
            KubernetesError: none answers as it has to, or another one than is expected.
        """
        uid = self._connection.cluster_uid()
        if uid != self._uid:
            self.look_again()
        if uid != self._uid:
            raise ClusterChangedError(host=self._connection.host, uid=uid, expected=self._uid)

    def look_again(self) -> None:
        """Check which cluster answers and which is fed, at most once in `_LOOK_SECONDS`; change to one that is both."""
        if time.monotonic() - self._looked_at < _LOOK_SECONDS or not self._lock.acquire(blocking=False):
            return  # checked lately, or another thread does it
        try:
            self._look()
        except (KubernetesError, BrokerError) as error:
            log.warning("cluster UID could not be checked", cluster=self._name, error=str(error))
        finally:
            self._looked_at = time.monotonic()
            self._lock.release()

    def _look(self) -> None:
        uid, kept = self._connection.cluster_uid(), read_state(self._settings, self._name)
        self._seen_uid = uid
        self._fed_uid = None if kept is None else kept.cluster_uid
        if uid != self._uid and uid == self._fed_uid:
            log.warning("cluster was replaced", cluster=self._name, uid=uid, before=self._uid)
            self._uid = uid
            self._connection.expect_cluster(uid)


class IdentifiedEvictor:
    """Carries out the commands of the cluster that answers.

    Attributes:
        mode: which write it may do.
    """

    def __init__(self, evictor: PodEvictor, identity: ClusterIdentity) -> None:
        self.mode: ExecutorMode = evictor.mode
        self._evictor = evictor
        self._identity = identity

    def evict(self, command: EvictionCommand, tries: int, seen_at: float) -> CommandAnswer | PutOff:
        """Try an eviction once, as `PodEvictor.evict`."""
        done = self._identity.objection(command)
        if done is None:
            done = self._evictor.evict(command, tries, seen_at)
            if isinstance(done, PutOff) and done.is_of_cluster:
                self._identity.look_again()  # perhaps the cluster was rebuilt, and is fed again
        return done
