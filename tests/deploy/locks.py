"""Locks with hashes, read."""

from __future__ import annotations

import re

from tests.deploy.pages import ROOT

_PIN = re.compile(
    r"^(?P<name>[a-z0-9-]+)==(?P<version>\S+)(?P<hashes>(?: \\\n    --hash=sha256:[0-9a-f]{64})+)$", re.MULTILINE
)


def pins(name: str) -> dict[str, tuple[str, frozenset[str]]]:
    """Read a lock: version and hashes by name. What is not a pin with hashes is an error."""
    text = (ROOT / name).read_text(encoding="utf-8")
    found = {
        each["name"]: (each["version"], frozenset(re.findall("[0-9a-f]{64}", each["hashes"])))
        for each in _PIN.finditer(text)
    }
    rest = [line for line in _PIN.sub("", text).splitlines() if line.strip() and not line.strip().startswith("#")]
    assert rest == []
    return found
