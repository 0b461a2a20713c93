"""A kubeconfig with all the ways in which a client can say who it is."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

_EXEC_API = "client.authentication.k8s.io/v1"


def kubeconfig(url: str, secrets: Path, tokens: Mapping[str, str]) -> str:
    """Return a kubeconfig as JSON, which is YAML too; the current context is the first user's certificate."""
    users = []
    for user, token in tokens.items():
        files = {"client-certificate": str(secrets / f"{user}.crt"), "client-key": str(secrets / f"{user}.key")}
        users.append({"name": user, "user": files})
        if token:
            users.append({"name": f"{user}-token", "user": {"token": token}})
            users.append({"name": f"{user}-exec", "user": {"exec": _plugin(token)}})
    cluster = {"server": url, "certificate-authority": str(secrets / "ca.crt")}
    names = [str(each["name"]) for each in users]
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "e2e", "cluster": cluster}],
            "users": users,
            "contexts": [{"name": name, "context": {"cluster": "e2e", "user": name}} for name in names],
            "current-context": names[0],
        },
        indent=2,
    )


def _plugin(token: str) -> dict[str, object]:
    """Say how to run a credential plugin that knows this token."""
    answer = {"apiVersion": _EXEC_API, "kind": "ExecCredential", "status": {"token": token}}
    return {
        "apiVersion": _EXEC_API,
        "command": sys.executable,
        "args": ["-c", f"print({json.dumps(answer)!r})"],
        "interactiveMode": "Never",
    }
