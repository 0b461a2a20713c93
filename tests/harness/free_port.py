"""A port that is free, and what a process of the test's own says of itself there."""

from __future__ import annotations

import json
import socket
import urllib.error
import urllib.request
from typing import Any


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def ready(port: int) -> dict[str, Any]:
    """Return what `/readyz` says; nothing while nothing is served."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5) as answer:
            text = answer.read()
    except urllib.error.HTTPError as error:
        text = error.read()
    except OSError:
        return {}
    found: dict[str, Any] = json.loads(text)
    return found
