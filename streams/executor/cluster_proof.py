"""A regular small request to the API server of a cluster of which nothing is due.

Evictions show whether the API server answers. Without it, one that is away would be noticed when the first pod has to
leave, which is when it is needed.
"""

from __future__ import annotations

import threading
import time
from typing import Final

import structlog

from evictstream.streams.errors import KubernetesError
from evictstream.streams.executor.cluster_executor import ClusterExecutor
from evictstream.streams.executor.cluster_identity import ClusterIdentity

log = structlog.get_logger(__name__)

ASKED_EACH_SECONDS: Final = 10.0
"""Between two requests: as often as a feed asks for etcd's newest version, and well below the two minutes of the alert.
A hundred clusters cost ten reads of one small object a second, each in another API server."""

ASKED_AGAIN_SECONDS: Final = 1.0
"""After a request that failed soon. One alone is no outage: an API server that is replaced closes its connections."""


class ClusterProof(threading.Thread):
    """Asks who answers while no eviction of the cluster waits or runs, and tells the executor of the cluster.

    The request reads the UID of `kube-system`, for which every mode has the right. It is the cheapest one that shows
    that the API server and etcd answer, that the credentials are taken, and that it is the right cluster. It does not
    show that the rights for evictions are still there. No answer counts after 60 s, as for evictions.
    """

    def __init__(self, executor: ClusterExecutor, identity: ClusterIdentity) -> None:
        super().__init__(name=f"{executor.name} proof", daemon=True)
        self._executor = executor
        self._identity = identity
        self._failures = 0  # in a row
        self._stopped = threading.Event()

    def stop(self) -> None:
        """Send no further request; one that is under way ends by itself, and is not waited for."""
        self._stopped.set()

    def run(self) -> None:
        """Ask until stopped."""
        seconds = ASKED_EACH_SECONDS
        while not self._stopped.wait(seconds):
            seconds = self.ask()

    def ask(self) -> float:
        """Ask once, unless evictions wait or run; returns for how many seconds not to ask again."""
        if self._executor:
            self._failures = 0
            return ASKED_EACH_SECONDS
        began_at = time.monotonic()
        problem = self._problem()
        self._failures = self._failures + 1 if problem is not None else 0
        if self._failures == 1 and time.monotonic() - began_at < ASKED_EACH_SECONDS:
            return ASKED_AGAIN_SECONDS
        if not self._stopped.is_set():
            self._executor.note_proof(problem)
        return ASKED_EACH_SECONDS

    def _problem(self) -> str | None:
        try:
            self._identity.prove()
        except KubernetesError as error:
            return str(error)
        except Exception as error:  # of any kind: without this thread nothing would be noticed any more
            log.exception("cluster could not be asked", cluster=self._executor.name)
            return f"{type(error).__name__} in the executor"
        return None
