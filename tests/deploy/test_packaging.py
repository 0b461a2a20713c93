"""The ways to install the project, each in an environment of its own: what can be imported, and what comes along."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.deploy.locks import link, locked_distributions
from tests.deploy.pages import ROOT

pytestmark = pytest.mark.slow  # makes wheels and environments

LOCKS = ("requirements/runtime.txt", "deploy/build.txt")
OFFLINE = ("--no-index", "--no-deps", "--no-build-isolation", "--quiet")

# `make` installs it editable for all other tests.
WAYS = (*(pytest.param(way, marks=pytest.mark.kit) for way in ("wheel", "editable")), "wheel from sdist")
PATIENCE_SECONDS = 120

ALL_IS_THERE = """
import importlib.resources
import importlib.util

import evictstream.models
import evictstream.streams
from evictstream.streams.broker.jars import locked_jars
from evictstream.kit.demo.story import demo_incident, read_incident

package = importlib.resources.files("evictstream")
assert (package / "py.typed").is_file()
assert (package / "models/messages/schemas/command.json").is_file()
assert locked_jars()
assert read_incident(demo_incident(), partitions=1)
assert importlib.util.find_spec("models") is None
assert importlib.util.find_spec("kit") is None
assert importlib.util.find_spec("streams") is None
"""


def run(folder: Path, *arguments: str | Path, cwd: Path | None = None) -> str:
    """Run a program with nothing of the clone on its path."""
    done = subprocess.run(
        arguments,
        cwd=cwd or folder,
        env={"PATH": os.defpath, "HOME": str(folder), "PIP_CONFIG_FILE": os.devnull},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def build_wheel(folder: Path, way: str) -> Path:
    source = ROOT
    if way == "wheel from sdist":
        program = f"import hatchling.build; hatchling.build.build_sdist({str(folder)!r})"
        run(folder, sys.executable, "-c", program, cwd=ROOT)
        (source,) = folder.glob("*.tar.gz")
    run(folder, sys.executable, "-m", "pip", "wheel", *OFFLINE, "--wheel-dir", folder / "wheels", source)
    (wheel,) = (folder / "wheels").iterdir()
    return wheel


@pytest.fixture(scope="module", params=WAYS)
def environment(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packaging")
    run(folder, sys.executable, "-m", "venv", "--without-pip", folder / "venv")
    python = folder / "venv/bin/python"
    for lock in LOCKS:
        link(locked_distributions(lock), python)
    made = ["--editable", ROOT] if request.param == "editable" else [build_wheel(folder, request.param)]
    run(folder, sys.executable, "-m", "pip", "--python", python, "install", *OFFLINE, *made)
    return folder / "venv"


def test_all_is_there_under_one_import_name(environment: Path) -> None:
    run(environment.parent, environment / "bin/python", "-c", ALL_IS_THERE)


def test_the_demo_command_starts(environment: Path) -> None:
    assert "--no-kill" in run(environment.parent, environment / "bin/evictstream", "demo", "--help")
