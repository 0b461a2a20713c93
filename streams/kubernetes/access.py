"""Which cluster, and with which credentials: kubeconfig with contexts, or the service account of the pod.

Client certificates, tokens from files, exec plugins and proxies are what the client library makes of a kubeconfig.
"""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import yaml  # type: ignore[import-untyped]
from kubernetes import config
from kubernetes.client import ApiClient, Configuration
from kubernetes.config.config_exception import ConfigException

from evictstream.streams.errors import CredentialsError

_MALFORMED = (ValueError, KeyError, TypeError, AttributeError, IndexError)
"""What the client library raises for a file that is not as it should be, as while somebody writes it."""

IN_CLUSTER_VARIABLE = "KUBERNETES_SERVICE_HOST"
"""Kubernetes sets it in every container."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ClusterAccess:
    """How to reach one cluster.

    Attributes:
        kubeconfig: the file, or several with the path separator between them; None for `KUBECONFIG`, or
            `~/.kube/config`. Without such a file, in a container of Kubernetes, the service account of the pod is used.
        context: its context; None for the current one.
        connections: how many requests may run at once.
    """

    kubeconfig: str | None = None
    context: str | None = None
    connections: int = 8

    def client(self) -> ApiClient:
        """Read the configuration anew and make a client of it.

        Raises:
            CredentialsError: there is none, it cannot be read, or an exec plugin has failed.
        """
        configuration = Configuration()
        configuration.connection_pool_maxsize = self.connections
        configuration.retries = False  # each caller knows what may be tried again
        try:
            if self._is_in_cluster():
                config.load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
            else:
                config.load_kube_config(  # type: ignore[no-untyped-call]
                    self.kubeconfig, self.context, client_configuration=configuration, persist_config=False
                )
            return ApiClient(configuration)
        except (ConfigException, OSError, yaml.YAMLError, *_MALFORMED) as error:
            raise CredentialsError(self.place, _reason(error)) from error

    @property
    def place(self) -> str:
        """Where the credentials come from, for people."""
        if self._is_in_cluster():
            return "the service account of this pod"
        found = self.kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config"
        return found if self.context is None else f"context {self.context} of {found}"

    def _is_in_cluster(self) -> bool:
        if self.kubeconfig is not None or self.context is not None or IN_CLUSTER_VARIABLE not in os.environ:
            return False
        return "KUBECONFIG" not in os.environ and not Path("~/.kube/config").expanduser().exists()


def _reason(error: Exception) -> str:
    """Say what is wrong in one line; of unexpected errors the kind alone, since their text may quote the file."""
    return str(error) if isinstance(error, ConfigException | OSError) else f"it is malformed ({type(error).__name__})"
