"""The product as it was at another commit, to be run beside today's."""

from __future__ import annotations

import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
BEFORE_TAGS: Final = "b7575139"
"""What stands for the last release as long as there is none."""


def last_release() -> str | None:
    """Return the newest tag behind this commit, or what stands for it; None where there is no history."""
    if tag := _git("describe", "--tags", "--abbrev=0", "HEAD^"):
        return tag
    return BEFORE_TAGS if _git("cat-file", "-t", BEFORE_TAGS) else None


def version_of(commit: str, folder: Path) -> Path:
    """Write what a commit holds into a folder, and return the folder."""
    folder.mkdir(parents=True)
    archive = folder / "source.tar"
    _git("archive", f"--output={archive}", commit)
    with tarfile.open(archive) as source:
        source.extractall(folder, filter="tar")
    return folder


def _git(*arguments: str) -> str:
    git = shutil.which("git")
    if git is None:
        return ""
    done = subprocess.run([git, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""
