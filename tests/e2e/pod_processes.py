"""A kubelet for the product's own pods: their containers run as processes, exactly as the pods describe them.

Each has the arguments of its container, after the image's entry point; the environment that its ConfigMap, Secrets and
fields make, and none of this process's; its volumes at their paths; the user, the read-only root and the privileges of
its security contexts. A process that ends is started again as `restartPolicy` says, and ended with its pod. Two things
are not as in a cluster: all pods have this machine's network, so each gets a port of its own for health, and nobody
asks the probes.
"""

from __future__ import annotations

import base64
import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Self

from evictstream.streams.broker.ports import LOOPBACK
from tests.e2e.api_client import Object, RefusedError
from tests.e2e.control_plane import ControlPlane
from tests.harness.free_port import free_port

ENTRY_POINT: Final = Path(sys.executable).with_name("evictstream")
END_SECONDS: Final = 40

# What programs look for in the `/etc` of an image.
_ETC: Final = ("group", "hosts", "ld.so.cache", "localtime", "nsswitch.conf", "passwd", "ssl")

# In a mount namespace of its own, `/etc` and `/run` are those of the pod: what it mounts is there.
_CONTAINER: Final = """
set -e
mount --make-rprivate /
for folder in etc run; do mount --bind "$1/$folder" "/$folder"; done
mount -t tmpfs -o size=16m,mode=1777 tmpfs /tmp
test "$2" = false || mount -o remount,bind,ro /
shift 2
exec setpriv "$@"
"""


def why_not() -> str | None:
    """Say why containers cannot be imitated here; none if they can."""
    unshare = shutil.which("unshare")
    if os.geteuid() != 0 or unshare is None or shutil.which("setpriv") is None:
        return "needs root, setpriv and unshare, as a kubelet does"
    done = subprocess.run([unshare, "--mount", "true"], capture_output=True, check=False)
    return None if done.returncode == 0 else "mounts are not allowed here"


class PodProcesses:
    """Runs the pods of one namespace. Use as a context manager, and call `look` often; nothing happens in between."""

    def __init__(self, plane: ControlPlane, namespace: str, nodes: list[str], folder: Path) -> None:
        """`nodes` get the pods in turn, as no scheduler runs; `folder` gets logs and mounts."""
        self._plane = plane
        self._client = plane.client()
        self._namespace = namespace
        self._nodes = nodes
        self._folder = folder
        self._running: dict[str, ContainerProcess] = {}
        self._bound = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._running.values():
            process.kill()

    def look(self) -> None:
        """Bind, start, restart and end what has changed since the last look."""
        pods = {each["metadata"]["uid"]: each for each in self._client.items(self._path("pods"))}
        for uid in self._running.keys() - pods.keys():
            self._running.pop(uid).end()
        for uid, pod in pods.items():
            process = self._running.get(uid)
            if "deletionTimestamp" in pod["metadata"]:
                self._remove(pod)
            elif "nodeName" not in pod["spec"]:
                self._bind(pod)
            elif process is None and pod["status"].get("phase") in {"Pending", "Running"}:
                self._running[uid] = ContainerProcess(self._plane, pod, self._folder)
            elif process is not None and process.exit_code is not None and pod["status"]["phase"] == "Running":
                self._ended(pod, process)

    def port(self, pod: str) -> int:
        """Return the port of health of a pod that runs."""
        return next(each.port for each in self._running.values() if each.name == pod)

    def names(self) -> set[str]:
        """Return the pods whose process runs."""
        return {each.name for each in self._running.values() if each.exit_code is None}

    def execute(self, pod: str, *arguments: str) -> str:
        """Run another command of the product in a pod, as `kubectl exec` does; gives what it printed."""
        process = next(each for each in self._running.values() if each.name == pod)
        return subprocess.run(
            process.command_line(arguments),
            env=process.environment,
            cwd="/",
            capture_output=True,
            text=True,
            timeout=END_SECONDS,
            check=True,
        ).stdout

    def _bind(self, pod: Object) -> None:
        node = self._nodes[self._bound % len(self._nodes)]
        self._bound += 1
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod["metadata"]["name"]}}
        self._client.create(f"{self._path('pods')}/{pod['metadata']['name']}/binding", binding | {"target": target})

    def _ended(self, pod: Object, process: ContainerProcess) -> None:
        policy, has_failed = pod["spec"]["restartPolicy"], process.exit_code != 0
        if policy == "Always" or (policy == "OnFailure" and has_failed):
            process.start()
            return
        phase = "Failed" if has_failed else "Succeeded"
        self._client.patch(f"{self._path('pods')}/{process.name}/status", {"status": {"phase": phase}})

    def _remove(self, pod: Object) -> None:
        metadata = pod["metadata"]
        if metadata["uid"] in self._running:
            self._running.pop(metadata["uid"]).end()
        with contextlib.suppress(RefusedError):  # the hollow node was quicker
            self._client.delete(f"{self._path('pods')}/{metadata['name']}", uid=metadata["uid"], grace_seconds=0)

    def _path(self, what: str) -> str:
        return f"/api/v1/namespaces/{self._namespace}/{what}"


class ContainerProcess:
    """The one container of a pod, as a process."""

    def __init__(self, plane: ControlPlane, pod: Object, folder: Path) -> None:
        """Prepare its mounts below `folder`, and start it."""
        self.name: str = pod["metadata"]["name"]
        self.port = free_port()
        self._plane = plane
        self._client = plane.client()
        self._namespace: str = pod["metadata"]["namespace"]
        self._pod = pod
        (self._container,) = pod["spec"]["containers"]
        self._stage = folder / pod["metadata"]["uid"]
        self._log = folder / f"{self.name}.log"
        self.environment = self._environment()
        self._mount()
        self._process = self._started()

    @property
    def exit_code(self) -> int | None:
        """Of the process, once it has ended."""
        return self._process.poll()

    def start(self) -> None:
        """Start it again."""
        self._process = self._started()

    def end(self) -> None:
        """End it in order; it has to exit with 0, unless it had ended before."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            code = self._process.wait(END_SECONDS)
            assert code == 0, f"{self.name} has ended with exit code {code}: {self._log}"

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()
        self._process.wait()

    def _started(self) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            return subprocess.Popen(
                self.command_line(self._container["args"]),
                env=self.environment,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def command_line(self, arguments: Sequence[str]) -> list[str]:
        """Return what runs the product with these arguments in the container."""
        own, shared = self._container["securityContext"], self._pod["spec"]["securityContext"]
        assert shared["runAsNonRoot"]
        assert own["allowPrivilegeEscalation"] is False
        assert own["capabilities"] == {"drop": ["ALL"]}
        privileges = [
            f"--reuid={shared['runAsUser']}",
            f"--regid={shared['runAsGroup']}",
            f"--groups={shared['fsGroup']}",
            "--no-new-privs",
            "--bounding-set=-all",
            "--inh-caps=-all",
        ]
        read_only = str(own["readOnlyRootFilesystem"]).lower()
        prepared = ["sh", "-c", _CONTAINER, "sh", str(self._stage), read_only, *privileges, "--"]
        return [
            "unshare",
            "--mount",
            *prepared,
            str(ENTRY_POINT),
            *(_expanded(each, self.environment) for each in arguments),
        ]

    def _environment(self) -> dict[str, str]:
        # What the image and every kubelet give.
        found = {
            "PATH": f"{ENTRY_POINT.parent}:{os.defpath}",
            "PYTHONUNBUFFERED": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
            "HOSTNAME": self.name,
            "KUBERNETES_SERVICE_HOST": LOOPBACK,
            "KUBERNETES_SERVICE_PORT": str(self._plane.port),
        }
        for source in self._container.get("envFrom", ()):
            found |= self._get("configmaps", source["configMapRef"]["name"])["data"]
        for each in self._container.get("env", ()):
            found[each["name"]] = _expanded(self._value(each), found)
        return found | {"EVICTSTREAM_HEALTH_PORT": str(self.port)}

    def _value(self, variable: Object) -> str:
        match variable.get("valueFrom"):
            case None:
                return str(variable["value"])
            case {"fieldRef": {"fieldPath": "metadata.name"}}:
                return self.name
            case {"secretKeyRef": {"name": name, "key": key}}:
                return base64.b64decode(self._get("secrets", name)["data"][key]).decode()
        raise AssertionError(variable)

    def _mount(self) -> None:
        for folder in ("etc", "run"):
            (self._stage / folder).mkdir(parents=True)
        for name in _ETC:
            if (found := Path("/etc", name)).is_dir():
                # Keys are nobody's business, and authorities are what others may read.
                shutil.copytree(found, self._stage / "etc" / name, symlinks=True, ignore=lambda *_: ["private"])
            elif found.exists():
                shutil.copy(found, self._stage / "etc" / name)
        group = self._pod["spec"]["securityContext"]["fsGroup"]
        volumes = {each["name"]: each for each in self._pod["spec"]["volumes"]}
        for mount in self._container["volumeMounts"]:
            if mount["mountPath"] == "/tmp":  # noqa: S108 - inside the container
                continue
            target = self._stage / mount["mountPath"].replace("/var/run/", "/run/").lstrip("/")
            target.mkdir(parents=True)
            for name, content in self._files(volumes[mount["name"]]).items():
                (target / name).write_bytes(content)
                os.chown(target / name, 0, group)
                (target / name).chmod(0o440)

    def _files(self, volume: Object) -> dict[str, bytes]:
        match volume:
            case {"secret": {"secretName": name, "items": items}}:
                data = self._get("secrets", name)["data"]
                return {each["path"]: base64.b64decode(data[each["key"]]) for each in items}
            case {"projected": {"sources": sources}}:
                return {name: content for each in sources for name, content in self._projected(each).items()}
        raise AssertionError(volume)

    def _projected(self, source: Object) -> dict[str, bytes]:
        match source:
            case {"serviceAccountToken": {"path": path}}:
                account = self._pod["spec"]["serviceAccountName"]
                request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
                found = self._client.create(self._path("serviceaccounts", account) + "/token", request)
                return {path: found["status"]["token"].encode()}
            case {"configMap": {"name": name, "items": items}}:
                data = self._get("configmaps", name)["data"]
                return {each["path"]: data[each["key"]].encode() for each in items}
            case {"downwardAPI": {"items": [{"path": path, "fieldRef": {"fieldPath": "metadata.namespace"}}]}}:
                return {path: self._namespace.encode()}
        raise AssertionError(source)

    def _get(self, kind: str, name: str) -> Object:
        return self._client.get(self._path(kind, name))

    def _path(self, kind: str, name: str) -> str:
        return f"/api/v1/namespaces/{self._namespace}/{kind}/{name}"


def _expanded(text: str, environment: Mapping[str, str]) -> str:
    """Put variables in, as a kubelet does: `$(NAME)`; one that is not known stays."""
    for name, value in environment.items():
        text = text.replace(f"$({name})", value)
    return text
