"""Locks with hashes: what they name, and the same versions linked from the environment of the tests."""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Iterable
from pathlib import Path

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


def locked_distributions(name: str) -> list[importlib.metadata.Distribution]:
    """Return the packages of a lock as the tests have them, from the same hashes."""
    found = []
    for package, (version, _) in pins(name).items():
        distribution = importlib.metadata.distribution(package)
        assert distribution.version == version, f"the tests have {package} {distribution.version}, not {version}"
        found.append(distribution)
    return found


def link(distributions: Iterable[importlib.metadata.Distribution], python: Path) -> None:
    """Link packages into the environment of a Python."""
    (packages,) = python.parents[1].glob("lib/python*/site-packages")
    for distribution in distributions:
        for top in {file.parts[0] for file in distribution.files or ()} - {"..", "__pycache__"}:
            if not (packages / top).exists():
                (packages / top).symlink_to(str(distribution.locate_file(top)))
