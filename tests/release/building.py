"""Builds what is published, twice and from the commit alone, and compares the two byte for byte."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
MINUTES = 10.0
"""For one program; a build takes seconds, an installation as long as its downloads."""


class CheckFailedError(Exception):
    """Something that a release needs does not hold; the text says what."""


def run(*command: str | Path, cwd: Path = ROOT, environment: Mapping[str, str] | None = None) -> str:
    """Run a program to its end and return what it printed. Raises `CheckFailedError` if it fails."""
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**os.environ, **(environment or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=MINUTES * 60,
        check=False,
    )
    if done.returncode != 0:
        raise CheckFailedError(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout[-3_000:]}")
    return done.stdout


def refuse_changes() -> None:
    """Raise `CheckFailedError` if the work tree has what no commit has: it would be in no release."""
    if changed := run("git", "status", "--porcelain"):
        raise CheckFailedError(f"not committed:\n{changed}")


def build_twice(folder: Path) -> list[Path]:
    """Build sdist and wheel in two folders, under other umasks, and return those of the first.

    Raises:
        CheckFailedError: a build failed, or the two differ.
    """
    first, second = (_built(folder / name, umask) for name, umask in (("one", 0o022), ("another", 0o077)))
    for here, there in zip(first, second, strict=True):
        if here.name != there.name or here.read_bytes() != there.read_bytes():
            raise CheckFailedError(f"two builds of {here.name} differ")
    return first


def _built(folder: Path, umask: int) -> list[Path]:
    folder.mkdir(parents=True)
    archive = folder / "source.tar"
    run("git", "archive", "--format=tar", f"--output={archive}", "HEAD")
    with tarfile.open(archive) as source:
        source.extractall(folder / "source", filter="tar")
    date = run("git", "log", "-1", "--format=%ct").strip()
    program = ["-m", "build", "--no-isolation", "--outdir", str(folder / "dist"), str(folder / "source")]
    before = os.umask(umask)
    try:
        run(sys.executable, *program, environment={"SOURCE_DATE_EPOCH": date})
    finally:
        os.umask(before)
    return sorted((folder / "dist").iterdir())


def python_of(environment: Path) -> Path:
    """Return the interpreter of an environment."""
    return environment / "bin" / "python"


def environment_with(folder: Path, python: Path | str, *requirements: str | Path) -> Path:
    """Make an environment of a Python, install into it with pip, and check that all of it fits together.

    Returns:
        The folder of the environment.
    """
    run(python, "-m", "venv", "--clear", folder)
    run(python_of(folder), "-m", "pip", "install", "--quiet", *requirements)
    run(python_of(folder), "-m", "pip", "check")
    return folder


def lowest(dependencies: Sequence[str]) -> str:
    """Return pip's constraints for the lowest version that each range allows; exact pins are left out."""
    from packaging.requirements import Requirement  # noqa: PLC0415 - of the tools for locks, not of the tests

    found = []
    for text in dependencies:
        requirement = Requirement(text)
        found += [f"{requirement.name}=={one.version}" for one in requirement.specifier if one.operator == ">="]
    return "\n".join(found) + "\n"
