"""Runs a plugin that signs in (`exec` of a kubeconfig's user) as client-go runs it, with a limit on its time.

The client library runs it without one, and leaves the user anonymous when it fails.
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import datetime as dt
import json
import os
import selectors
import signal
import subprocess
import time
from pathlib import Path
from typing import Any, Final

import msgspec
from kubernetes.config.config_exception import ConfigException

from evictstream.streams.kubernetes.kubeconfig import Section, text_of

PLUGIN_SECONDS: Final = 60.0
"""For one run. Plugins of clouds take seconds; what takes a minute waits for something that never comes."""

LARGEST_OUTPUT_BYTES: Final = 1_048_576
"""1 MiB: a token or a certificate has some kilobytes."""

LONGEST_QUOTE: Final = 200
"""Characters of the last line that a failing plugin wrote on its standard error."""

_CLUSTER_FIELDS: Final = (
    "server",
    "tls-server-name",
    "insecure-skip-tls-verify",
    "certificate-authority-data",
    "proxy-url",
    "disable-compression",
)
_EXTENSION: Final = "client.authentication.k8s.io/exec"


class _Status(msgspec.Struct, rename="camel"):
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: dt.datetime | None = None


class _ExecCredential(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str
    status: _Status


_plugin_answers: Final = msgspec.json.Decoder(_ExecCredential)


class PluginError(ConfigException):
    """The plugin `command` gives no credentials, for `reason`."""

    def __init__(self, command: str, reason: str) -> None:
        self.command = command
        self.reason = reason
        super().__init__(f"the plugin {command} {reason}")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PluginCredentials:
    """What a plugin has printed.

    Attributes:
        token: empty for none.
        certificate: as fields of a kubeconfig's user; empty for none.
        expires_at: seconds since 1970; None where it does not say.
    """

    token: str
    certificate: Section
    expires_at: float | None


def run_plugin(plugin: Any, cluster: Section) -> PluginCredentials:
    """Run it once.

    Args:
        plugin: `exec` of the user.
        cluster: what it may be told of the cluster.

    Raises:
        ConfigException: the kubeconfig names no command.
        PluginError: it is missing, fails, takes too long, or prints something else.
    """
    command, version = (text_of(plugin, field) for field in ("command", "apiVersion"))
    if not command or not version:
        raise ConfigException("the user's exec has no command or apiVersion")
    if plugin.get("interactiveMode") == "Always":
        raise PluginError(command, "needs a terminal (interactiveMode: Always)")
    environment = {str(one["name"]): str(one["value"]) for one in plugin.get("env") or ()}
    spec: dict[str, Any] = {"interactive": False}
    if plugin.get("provideClusterInfo"):
        spec["cluster"] = _cluster_info(cluster)
    info = json.dumps({"kind": "ExecCredential", "apiVersion": version, "spec": spec})
    arguments = [command, *(str(one) for one in plugin.get("args") or ())]
    output = _output_of(arguments, {**os.environ, **environment, "KUBERNETES_EXEC_INFO": info})
    try:
        shown = _plugin_answers.decode(output)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise PluginError(command, "did not print an ExecCredential with a status") from None
    if shown.kind != "ExecCredential" or shown.api_version != version:
        raise PluginError(command, f"did not print an ExecCredential of {version}")
    return _credentials(command, shown.status)


def _credentials(command: str, status: _Status) -> PluginCredentials:
    if bool(status.client_certificate_data) != bool(status.client_key_data):
        raise PluginError(command, "printed only one of certificate and key")
    if not status.token and not status.client_certificate_data:
        raise PluginError(command, "printed neither a token nor a certificate")
    certificate = {}
    if status.client_certificate_data and status.client_key_data:
        certificate = {
            "client-certificate-data": base64.b64encode(status.client_certificate_data.encode()).decode(),
            "client-key-data": base64.b64encode(status.client_key_data.encode()).decode(),
        }
    expires = status.expiration_timestamp
    if expires is not None and expires.tzinfo is None:
        raise PluginError(command, "printed an expirationTimestamp without a zone")
    return PluginCredentials(
        token=status.token or "", certificate=certificate, expires_at=None if expires is None else expires.timestamp()
    )


def _cluster_info(cluster: Section) -> dict[str, Any]:
    info = {field: cluster[field] for field in _CLUSTER_FIELDS if cluster.get(field)}
    if cluster.get("certificate-authority") and "certificate-authority-data" not in info:
        authority = Path(text_of(cluster, "certificate-authority")).read_bytes()
        info["certificate-authority-data"] = base64.b64encode(authority).decode()
    for extension in cluster.get("extensions") or ():
        if extension.get("name") == _EXTENSION:
            info["config"] = extension.get("extension")
    return info


def _output_of(arguments: list[str], environment: dict[str, str]) -> bytes:
    """Return what it printed; end it, and all that it started, when its time is over or it prints too much."""
    end_at = time.monotonic() + PLUGIN_SECONDS
    try:
        process = subprocess.Popen(  # noqa: S603 - the kubeconfig names it, as for kubectl
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise PluginError(arguments[0], f"cannot be run: {error}") from error
    with process:
        try:
            output, errors = _read_to(process, arguments[0], end_at)
            code = process.wait(max(0.0, end_at - time.monotonic()))
        except BaseException as error:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            raise PluginError(arguments[0], f"took longer than {PLUGIN_SECONDS:g} s") from None
    if code:
        lines = errors.decode(errors="replace").strip().splitlines() or ["no output"]
        raise PluginError(arguments[0], f"ended with {code}: {lines[-1][-LONGEST_QUOTE:]}")
    return output


def _read_to(process: subprocess.Popen[bytes], command: str, end_at: float) -> tuple[bytes, bytes]:
    """Read both outputs to their ends, to the end of the time, or to the largest size."""
    outputs: dict[int, bytearray] = {}
    with selectors.DefaultSelector() as selector:
        for pipe in (process.stdout, process.stderr):
            assert pipe is not None  # noqa: S101 - both were asked for
            selector.register(pipe, selectors.EVENT_READ)
            outputs[pipe.fileno()] = bytearray()
        numbers = list(outputs)
        while selector.get_map():
            left = end_at - time.monotonic()
            if left <= 0:
                raise subprocess.TimeoutExpired(process.args, PLUGIN_SECONDS)
            if sum(map(len, outputs.values())) > LARGEST_OUTPUT_BYTES:
                raise PluginError(command, f"printed more than {LARGEST_OUTPUT_BYTES} bytes")
            for key, _ in selector.select(left):
                piece = os.read(key.fd, 65_536)
                outputs[key.fd] += piece
                if not piece:
                    selector.unregister(key.fileobj)
    return bytes(outputs[numbers[0]]), bytes(outputs[numbers[1]])
