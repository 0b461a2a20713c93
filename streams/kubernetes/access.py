"""Which cluster, and with which credentials: kubeconfig with contexts, or the service account of the pod.

Where a cluster is stays as it was when the process began. Credentials and the authorities that vouch for the server are
read again whenever they may be out of date. TLS and proxies are what the client library makes of them.
"""

from __future__ import annotations

import dataclasses
import os
import threading
import time
from typing import Any, Final
from urllib.parse import urlsplit

import urllib3
import yaml  # type: ignore[import-untyped]
from kubernetes import config
from kubernetes.client import Configuration
from kubernetes.client.rest import RESTClientObject
from kubernetes.config.config_exception import ConfigException

from evictstream.streams.errors import ClusterMovedError, CredentialsError
from evictstream.streams.kubernetes.credentials import Credentials, read_credentials
from evictstream.streams.kubernetes.kubeconfig import KubeconfigContext, expanded, read_context, text_of
from evictstream.streams.kubernetes.time_limits import limit_connections

_MALFORMED = (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError)
"""What reading raises for a file that is not as it should be, as while somebody writes it."""

_UNREADABLE = (ConfigException, OSError, yaml.YAMLError, *_MALFORMED)

IN_CLUSTER_VARIABLE = "KUBERNETES_SERVICE_HOST"
"""Kubernetes sets it in every container."""

_PROXIES: Final = frozenset({"http", "https", "socks5", "socks5h"})

DEFAULT_FILE: Final = "~/.kube/config"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ClusterTarget:
    """Where requests go, and what makes sure that they get there.

    Attributes:
        context: of the kubeconfig; empty for the service account of the pod.
        server: address of the API server.
        proxy: on the way to it; empty for none.
        tls_server_name: that its certificate has to have; empty for the address's.
        is_verified: whether its certificate is looked at.
    """

    context: str = ""
    server: str
    proxy: str = ""
    tls_server_name: str = ""
    is_verified: bool = True

    @property
    def host(self) -> str:
        """The address for people, without what stands before an `@`."""
        return self.server.replace(f"{urlsplit(self.server).netloc.rpartition('@')[0]}@", "")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClusterClient:
    """Connections to one cluster, and who sends over them.

    Attributes:
        target: where they lead.
        pool: the connections, urllib3's for this one server: its manager would look for them with each request.
        base: what the path of a request follows in its first line: that of the server, or all of its address where a
            proxy is asked for `http://`.
        credentials: of each request.
        read_at: when they were read, seconds since 1970.
    """

    target: ClusterTarget
    pool: Any
    base: str
    credentials: Credentials
    read_at: float

    def has_expired(self) -> bool:
        """Whether the credentials are no longer valid; those that were expired when they were read are tried."""
        expires_at = self.credentials.expires_at
        return expires_at is not None and self.read_at < expires_at <= time.time()


@dataclasses.dataclass(kw_only=True)
class ClusterAccess:
    """How to reach one cluster. `target` is found once, so make one of these for each cluster when the process begins.

    Attributes:
        kubeconfig: the file, or several with the path separator between them; None for `KUBECONFIG`, or
            `~/.kube/config`. Without such a file, in a container of Kubernetes, the service account of the pod is used.
        context: its context; None for the one that is current when `target` is first asked for.
        connections: how many requests may run at once.
    """

    kubeconfig: str | None = None
    context: str | None = None
    connections: int = 8
    _target: ClusterTarget | None = dataclasses.field(default=None, init=False, repr=False, compare=False)
    _lock: threading.Lock = dataclasses.field(default_factory=threading.Lock, init=False, repr=False, compare=False)

    def target(self) -> ClusterTarget:
        """Return where the cluster is: read the first time, the same for the life of this object. Runs no plugin.

        Raises:
            CredentialsError: there is no such context, or it cannot be read.
        """
        with self._lock:
            if self._target is None:
                try:
                    self._target = (
                        _in_cluster_target() if self._is_in_cluster() else _target_of(self._read(self.context))
                    )
                except _UNREADABLE as error:
                    raise CredentialsError(self.place, _reason(error)) from error
            return self._target

    def client(self) -> ClusterClient:
        """Read the credentials, with the user's plugin if it has one, and make a client for `target`.

        Raises:
            CredentialsError: there are none, they cannot be read, or a plugin has failed.
            ClusterMovedError: the context leads elsewhere now.
        """
        target = self.target()
        settings = Configuration()
        settings.connection_pool_maxsize = self.connections
        settings.retries = False  # each caller knows what may be tried again
        try:
            if not target.context:
                config.load_incluster_config(settings, try_refresh_token=False)  # type: ignore[no-untyped-call]
                token = settings.api_key["BearerToken"].removeprefix("bearer ").strip()
                credentials = Credentials(headers=(("Authorization", f"Bearer {token}"),))
            else:
                context = self._read(target.context)
                now = _target_of(context)
                if now != target:
                    raise ClusterMovedError(place=self.place, fixed=target.host, found=now.host)
                credentials = read_credentials(context)
                _configure(settings, context, credentials)
            manager = limit_connections(RESTClientObject(settings).pool_manager)
            is_forwarded = isinstance(manager, urllib3.ProxyManager) and target.server.startswith("http:")
            names = [name for name, _ in credentials.headers]
            if is_forwarded and len(set(names)) < len(names):
                raise ConfigException("a user with several groups cannot use http:// through a proxy")
            return ClusterClient(
                target=target,
                pool=manager.connection_from_url(target.server),
                base=target.server if is_forwarded else urlsplit(target.server).path,
                credentials=credentials,
                read_at=time.time(),
            )
        except _UNREADABLE as error:
            raise CredentialsError(self.place, _reason(error)) from error

    @property
    def place(self) -> str:
        """Where the credentials come from, for people."""
        if self._is_in_cluster():
            return "the service account of this pod"
        context = self.context if self._target is None else self._target.context
        return self._files() if context is None else f"context {context} of {self._files()}"

    def _read(self, context: str | None) -> KubeconfigContext:
        return read_context(self._files(), context)

    def _files(self) -> str:
        return self.kubeconfig or os.environ.get("KUBECONFIG") or DEFAULT_FILE

    def _is_in_cluster(self) -> bool:
        if self._target is not None:
            return not self._target.context
        if self.kubeconfig is not None or self.context is not None or IN_CLUSTER_VARIABLE not in os.environ:
            return False
        # A home folder that may not be read has no such file either; `Path` raises an error for it before Python 3.12.
        return not os.environ.get("KUBECONFIG") and not os.path.exists(expanded(DEFAULT_FILE))  # noqa: PTH110


def _in_cluster_target() -> ClusterTarget:
    host, port = os.environ[IN_CLUSTER_VARIABLE], os.environ.get("KUBERNETES_SERVICE_PORT", "")
    if not host or not port:
        raise ConfigException(f"{IN_CLUSTER_VARIABLE} or KUBERNETES_SERVICE_PORT is empty")
    return ClusterTarget(server=f"https://{f'[{host}]' if ':' in host else host}:{port}")


def _target_of(context: KubeconfigContext) -> ClusterTarget:
    server, proxy, name = (text_of(context.cluster, field) for field in ("server", "proxy-url", "tls-server-name"))
    if urlsplit(server).scheme not in {"http", "https"} or not urlsplit(server).hostname:
        raise ConfigException("the cluster's server must start with https://")
    if proxy and urlsplit(proxy).scheme not in _PROXIES:  # as client-go
        raise ConfigException("the cluster's proxy-url must start with http://, https:// or socks5://")
    return ClusterTarget(
        context=context.name,
        server=server.rstrip("/"),
        proxy=proxy,
        tls_server_name=name,
        is_verified=not context.cluster.get("insecure-skip-tls-verify"),
    )


def _configure(settings: Configuration, context: KubeconfigContext, credentials: Credentials) -> None:
    """Have the client library make files of certificates, and read TLS and proxies.

    It sees one context, and of its user the certificate alone: what it does not know it would leave out.
    """
    cluster = dict(context.cluster)
    if text_of(cluster, "proxy-url").startswith("socks5:"):  # as client-go, the proxy looks the server's name up
        cluster["proxy-url"] = cluster["proxy-url"].replace("socks5:", "socks5h:", 1)
    one = {"name": "it", "context": {"cluster": "it", "user": "it"}}
    config.load_kube_config_from_dict(  # type: ignore[no-untyped-call]
        {
            "contexts": [one],
            "clusters": [{"name": "it", "cluster": cluster}],
            "users": [{"name": "it", "user": dict(credentials.certificate)}],
        },
        context="it",
        client_configuration=settings,
        persist_config=False,
    )


def _reason(error: Exception) -> str:
    """Say what is wrong in one line; of unexpected errors the kind alone, since their text may quote the file."""
    return str(error) if isinstance(error, ConfigException | OSError) else f"it is malformed ({type(error).__name__})"
