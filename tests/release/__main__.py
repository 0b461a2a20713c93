"""Check what a release needs, and leave its files in `dist/`.

Wheel and sdist are built from the commit, twice, and have to be equal byte for byte. twine looks at what a package
index would show. The wheel is installed and run on each supported Python, and once with the lowest versions of what it
depends on. The bill of materials lists what the image and the lock hold. Exit code 0 when all of it holds.
"""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from evictstream.streams.broker.embedded import EmbeddedBroker
from tests.release.building import (
    ROOT,
    CheckFailedError,
    build_twice,
    environment_with,
    lowest,
    python_of,
    refuse_changes,
    run,
)
from tests.release.running import try_out

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PYTHON = "Programming Language :: Python :: "
VERSIONS = [each.removeprefix(PYTHON) for each in PROJECT["classifiers"] if each.startswith(PYTHON)]
TOOLS = ROOT / "deploy" / "release.txt"


def main() -> int:
    """Run all checks; those that fail do not keep the others from running."""
    refuse_changes()
    failed = 0

    def check(name: str, what: Callable[[], str]) -> None:
        nonlocal failed
        try:
            print(f"ok      {name}: {what()}", flush=True)
        except CheckFailedError as error:
            failed += 1
            print(f"FAILED  {name}: {error}", flush=True)

    with tempfile.TemporaryDirectory(prefix="evictstream-release-") as temporary:
        folder = Path(temporary)
        sdist, wheel = sorted(build_twice(folder / "builds"), key=lambda file: file.suffix == ".whl")
        print(f"ok      built twice, equal byte for byte: {sdist.name}, {wheel.name}", flush=True)
        dist = ROOT / "dist"
        shutil.rmtree(dist, ignore_errors=True)
        dist.mkdir()
        tools = environment_with(folder / "tools", sys.executable, "--require-hashes", "--requirement", TOOLS)
        check("twine", lambda: run(tools / "bin" / "twine", "check", "--strict", sdist, wheel).strip().splitlines()[-1])
        check("bill of materials", lambda: _materials(tools, dist))
        with EmbeddedBroker() as broker:
            for version in VERSIONS:
                if (python := find_python(version)) is None:
                    print(f"skipped Python {version}: no python{version} on the PATH or in PYENV_ROOT", flush=True)
                    continue
                check(f"Python {version}", functools.partial(_runs, folder, python, broker, wheel))
            constraints = folder / "lowest.txt"
            constraints.write_text(lowest(PROJECT["dependencies"]), encoding="utf-8")
            check(
                "lowest versions",
                functools.partial(_runs, folder, sys.executable, broker, wheel, "--constraint", constraints),
            )
        for file in (sdist, wheel):
            shutil.copy(file, dist)
    for file in sorted(dist.iterdir()):
        print(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  dist/{file.name}")
    return 1 if failed else 0


def _runs(folder: Path, python: str, broker: EmbeddedBroker, *requirements: str | Path) -> str:
    environment = environment_with(folder / "environment", python, *requirements)
    try_out(environment, broker.bootstrap_servers)
    return run(python_of(environment), "--version").strip()


def _materials(tools: Path, dist: Path) -> str:
    """Write what the lock names, which is also what the image has, in CycloneDX."""
    file = dist / f"evictstream-{PROJECT['version']}.cdx.json"
    run(
        tools / "bin" / "cyclonedx-py",
        *("requirements", ROOT / "requirements" / "runtime.txt", "--pyproject", ROOT / "pyproject.toml"),
        *("--output-reproducible", "--output-file", file),
    )
    return file.name


def find_python(version: str) -> str | None:
    """Return a Python of a version, such as 3.12, that starts; `None` if there is none."""
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    places = [shutil.which(f"python{version}"), *sorted(root.glob(f"versions/{version}.*/bin/python{version}"))]
    for place in places:
        if place is not None and subprocess.run([place, "-c", ""], capture_output=True, check=False).returncode == 0:
            return str(place)
    return None


if __name__ == "__main__":
    try:
        sys.exit(main())
    except CheckFailedError as error:
        sys.exit(str(error))
