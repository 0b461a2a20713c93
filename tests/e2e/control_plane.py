"""A real control plane on loopback: etcd, kube-apiserver and kube-controller-manager, with throwaway certificates.

There is no scheduler and no kubelet: pods name their node when they are created, and `hollow_nodes.py` plays kubelets.
Ports and data stay the same for the plane's life, so each server can be stopped and started again.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from evictstream.streams.broker.ports import LOOPBACK, free_ports
from tests.e2e.api_client import ApiClient, Object, RefusedError
from tests.e2e.binaries import CONTROL_PLANE
from tests.e2e.credentials import kubeconfig
from tests.e2e.server_process import ServerProcess

READY_SECONDS = 60.0
"""Five seconds are usual; two busy cores make twenty of it."""

# For `controller_manager_flags`: a dead node is noticed after 5 s instead of 50 s, and tainted at once with all others.
# Up to some 50 nodes: for more, one machine renews leases too slowly, so upstream's own times and `beat_seconds=10`.
QUICK_NODE_MONITOR = (
    "--node-monitor-period=1s",
    "--node-monitor-grace-period=5s",
    "--node-startup-grace-period=10s",
    "--node-eviction-rate=100",
    "--secondary-node-eviction-rate=100",
)

# For `controller_manager_flags`: without upstream's limit of 20 calls a second, which makes 300 new nodes ready in a
# minute. It limits the built-in evictor too, so not where that is the measure.
UNTHROTTLED = ("--kube-api-qps=1000", "--kube-api-burst=1000")

# For `apiserver_flags`: pods that say nothing of their own stay 5 s instead of 300 s on a node that is gone.
SHORT_DEFAULT_TOLERATIONS = (
    "--default-not-ready-toleration-seconds=5",
    "--default-unreachable-toleration-seconds=5",
)

NODE_CONTROLLER = "system:serviceaccount:kube-system:node-controller"
"""The user of upstream's node lifecycle controller, and of its taint eviction controller."""

# Who deletes pods, when, and with which preconditions; and which leases the controller manager reads by themselves.
_AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {
            "level": "Request",
            "verbs": ["delete", "deletecollection"],
            "resources": [{"group": "", "resources": ["pods"]}],
        },
        {"level": "Request", "verbs": ["create"], "resources": [{"group": "", "resources": ["pods/eviction"]}]},
        {
            "level": "Metadata",
            "users": [NODE_CONTROLLER],
            "verbs": ["get"],
            "resources": [{"group": "coordination.k8s.io", "resources": ["leases"]}],
        },
        {"level": "None"},
    ],
}

# Users of the kubeconfig, with their groups. `system:masters` may do everything; others get what a test binds to them.
_ADMIN = ("system:masters",)
_CONTROLLER_MANAGER = "system:kube-controller-manager"
_CONTROLLERS = "--controllers="
_QUOTA_BYTES = 8 * 1024**3  # etcd's own 2 GiB are filled by 150,000 pods that change a few times


class ControlPlane:
    """The three servers, and how to reach them. Use as a context manager: nothing of it outlives the test.

    `kubeconfig` is a file with three contexts for each user of `users` and for `admin`: `<user>` presents a client
    certificate, `<user>-token` a static token, `<user>-exec` runs a credential plugin. `folder` gets data, logs and
    secrets, and `audit_log`. Flags that are given come after ours, so they win.
    """

    def __init__(
        self,
        folder: Path,
        *,
        taint_eviction: bool,
        users: Sequence[str] = (),
        apiserver_flags: Sequence[str] = (),
        controller_manager_flags: Sequence[str] = (),
    ) -> None:
        """Describe it. `taint_eviction` is whether upstream's own taint eviction controller runs."""
        self.folder = folder
        self.users = {"admin": _ADMIN} | dict.fromkeys(users, ())
        self.kubeconfig = folder / "kubeconfig.yaml"
        self._secrets = folder / "secrets"
        self.audit_log = folder / "audit.jsonl"
        self._audited: list[Object] = []
        self._audited_bytes = 0
        self._clients: dict[str, ApiClient] = {}
        self._client_port, self._peer_port, self.port, manager_port = free_ports(4)
        self.url = f"https://{LOOPBACK}:{self.port}"
        binaries = CONTROL_PLANE.folder()
        self.etcd = ServerProcess(binaries / "etcd", self._etcd_flags(), folder=folder)
        self.apiserver = ServerProcess(
            binaries / "kube-apiserver", [*self._apiserver_flags(), *apiserver_flags], folder=folder
        )
        self.controller_manager = ServerProcess(
            binaries / "kube-controller-manager",
            [
                *self._manager_flags(manager_port),
                _controllers(taint_eviction=taint_eviction),
                *controller_manager_flags,
            ],
            folder=folder,
        )

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._write_secrets()
        try:
            self.start()
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for client in self._clients.values():
            client.close()
        self.kill()  # nothing of it is needed any more, so nothing has to end in order

    @property
    def data(self) -> Path:
        """All that etcd holds: with every server stopped, a copy of this folder is a backup that can be put back."""
        return self.folder / "etcd"

    def start(self) -> None:
        """Start what is down, in order, and wait until pods can be created.

        Raises:
            ServerFailedError: a server has ended, or did not answer within 60 s.
        """
        self.etcd.start()
        self.start_apiserver()
        self.controller_manager.start()
        self.controller_manager.wait_until(self._has_default_account, READY_SECONDS)

    def start_apiserver(self) -> None:
        """Start the API server, and wait until it calls itself ready."""
        self.apiserver.start()
        self.apiserver.wait_until(self.is_ready, READY_SECONDS)

    def restart_controller_manager(self, *, taint_eviction: bool) -> None:
        """Restart the controller manager with upstream's own taint eviction controller on or off."""
        manager = self.controller_manager
        manager.stop()
        others = [one for one in manager.arguments if not one.startswith(_CONTROLLERS)]
        manager.arguments = [*others, _controllers(taint_eviction=taint_eviction)]
        manager.start()

    def stop(self) -> None:
        """Stop all servers in order; `start` goes on with the same data."""
        for server in (self.controller_manager, self.apiserver, self.etcd):
            server.stop()

    def kill(self) -> None:
        """Kill all servers."""
        for server in (self.controller_manager, self.apiserver, self.etcd):
            server.kill()

    def client(self, user: str = "admin") -> ApiClient:
        """Return the client of a user, who presents a certificate; the plane closes it at its end."""
        if user not in self._clients:
            certificate, key = self._secrets / f"{user}.crt", self._secrets / f"{user}.key"
            authority = self._secrets / "ca.crt"
            self._clients[user] = ApiClient(self.port, authority=authority, certificate=certificate, key=key)
        return self._clients[user]

    def is_ready(self) -> bool:
        """Whether the API server says that it is ready."""
        with contextlib.suppress(OSError, RefusedError):
            return self.client().call("GET", "/readyz") is not None
        return False

    def deletes(self) -> Sequence[Object]:
        """Give each attempt to delete or evict pods from the audit log, in the order of answers.

        `user.username` is who (the built-in evictor is `NODE_CONTROLLER`), `objectRef` what, `requestReceivedTimestamp`
        when, `responseStatus.code` the outcome, `requestObject` the options.
        """
        return [each for each in self._read_audit_log() if each["objectRef"]["resource"] == "pods"]

    def lease_reads(self) -> Sequence[str]:
        """Give the names of the nodes whose leases the node lifecycle controller has read live, in order."""
        found = [each["objectRef"] for each in self._read_audit_log()]
        return [each["name"] for each in found if each["resource"] == "leases"]

    def _read_audit_log(self) -> Sequence[Object]:
        """Give the whole audit log; reads on where it was."""
        if self.audit_log.exists():
            with self.audit_log.open("rb") as log:
                log.seek(self._audited_bytes)
                *lines, _ = log.read().split(b"\n")
            self._audited_bytes += sum(len(line) + 1 for line in lines)
            self._audited += map(json.loads, lines)
        return self._audited

    def renew_certificates(self, *users: str) -> None:
        """Make new client certificates for these users, in place; the authority stays."""
        asked = [f"{user}={','.join((user, *self.users[user]))}" for user in users]
        self._run_certificates(asked)

    def _has_default_account(self) -> bool:
        with contextlib.suppress(RefusedError):
            return self.client().get("/api/v1/namespaces/default/serviceaccounts/default") is not None
        return False

    def _run_certificates(self, asked: Sequence[str]) -> None:
        subprocess.run([CONTROL_PLANE.folder() / "certificates", self._secrets, *asked], check=True)

    def _write_secrets(self) -> None:
        self._secrets.mkdir(mode=0o700, exist_ok=True)
        self._run_certificates([f"controller-manager={_CONTROLLER_MANAGER}"])
        self.renew_certificates(*self.users)
        tokens = {user: secrets.token_hex(16) for user in self.users}
        lines = [f'{tokens[user]},{user},{user},"{",".join(groups)}"' for user, groups in self.users.items()]
        (self._secrets / "tokens.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
        (self._secrets / "audit-policy.json").write_text(json.dumps(_AUDIT_POLICY), encoding="utf-8")
        self.kubeconfig.write_text(kubeconfig(self.url, self._secrets, tokens), encoding="utf-8")
        manager = kubeconfig(self.url, self._secrets, {"controller-manager": ""})
        (self._secrets / "controller-manager.yaml").write_text(manager, encoding="utf-8")

    def _etcd_flags(self) -> list[str]:
        client, peer = f"http://{LOOPBACK}:{self._client_port}", f"http://{LOOPBACK}:{self._peer_port}"
        return [
            f"--data-dir={self.data}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            f"--quota-backend-bytes={_QUOTA_BYTES}",
            "--unsafe-no-fsync",  # the machine does not lose power in a test
            "--log-level=warn",
        ]

    def _apiserver_flags(self) -> list[str]:
        return [
            f"--etcd-servers=http://{LOOPBACK}:{self._client_port}",
            f"--bind-address={LOOPBACK}",
            f"--advertise-address={LOOPBACK}",
            "--endpoint-reconciler-type=none",  # loopback cannot be an endpoint of the service `kubernetes`
            f"--secure-port={self.port}",
            "--service-cluster-ip-range=10.0.0.0/24",
            f"--tls-cert-file={self._secrets / 'apiserver.crt'}",
            f"--tls-private-key-file={self._secrets / 'apiserver.key'}",
            f"--client-ca-file={self._secrets / 'ca.crt'}",
            f"--token-auth-file={self._secrets / 'tokens.csv'}",
            "--authorization-mode=RBAC",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={self._secrets / 'service-account.key'}",
            f"--service-account-signing-key-file={self._secrets / 'service-account.key'}",
            f"--audit-policy-file={self._secrets / 'audit-policy.json'}",
            f"--audit-log-path={self.audit_log}",
        ]

    def _manager_flags(self, port: int) -> list[str]:
        return [
            f"--kubeconfig={self._secrets / 'controller-manager.yaml'}",
            f"--bind-address={LOOPBACK}",
            f"--secure-port={port}",
            f"--cert-dir={self._secrets}",
            f"--root-ca-file={self._secrets / 'ca.crt'}",
            f"--service-account-private-key-file={self._secrets / 'service-account.key'}",
            "--use-service-account-credentials=true",
            "--leader-elect=false",  # a restart would wait for the lease of the one before
        ]


def _controllers(*, taint_eviction: bool) -> str:
    return f"{_CONTROLLERS}*" + ("" if taint_eviction else ",-taint-eviction-controller")
