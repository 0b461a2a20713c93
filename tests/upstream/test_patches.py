"""Each patch applies to the aiokafka that is installed, and its own tests fail without it and pass with it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import aiokafka
import pytest

ROOT = Path(__file__).parents[2]
PATCHES = sorted((ROOT / "docs" / "upstream").glob("*.patch"))
INSTALLED = Path(aiokafka.__file__).parent

PASSED, FAILED = 0, 1  # pytest's exit codes
TEST_TIMEOUT_SECONDS = 120

GIT = shutil.which("git") or ""

needs_git = pytest.mark.skipif(not GIT, reason="git not found: it applies the patches")


def patched(folder: Path, *patches: Path) -> None:
    """Apply patches to a copy of the installed package, and add their tests."""
    shutil.copytree(INSTALLED, folder / "aiokafka", ignore=shutil.ignore_patterns("__pycache__"))
    for patch in patches:
        applied = subprocess.run([GIT, "apply", str(patch)], cwd=folder, capture_output=True, text=True, check=False)
        assert applied.returncode == 0, applied.stderr


def exit_code_of_tests(folder: Path) -> int:
    """Run the tests of patches on the package beside them; returns pytest's exit code."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--rootdir={folder}", "tests"]
    run = subprocess.run(
        command, cwd=folder, env={"PYTHONPATH": str(folder)}, check=False, timeout=TEST_TIMEOUT_SECONDS
    )
    return run.returncode


@needs_git
@pytest.mark.kit
@pytest.mark.slow
@pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.stem[:4])
def test_its_tests_fail_without_a_patch_and_pass_with_it(patch: Path, tmp_path: Path) -> None:
    patched(tmp_path, patch)
    assert exit_code_of_tests(tmp_path) == PASSED
    shutil.rmtree(tmp_path / "aiokafka")
    shutil.copytree(INSTALLED, tmp_path / "aiokafka")
    assert exit_code_of_tests(tmp_path) == FAILED


@needs_git
@pytest.mark.kit
@pytest.mark.slow
def test_all_patches_apply_together(tmp_path: Path) -> None:
    assert PATCHES
    patched(tmp_path, *PATCHES)
    assert exit_code_of_tests(tmp_path) == PASSED


def test_every_patch_is_explained() -> None:
    page = (ROOT / "docs" / "upstream" / "README.md").read_text(encoding="utf-8")
    assert [patch.name for patch in PATCHES if f"]({patch.name})" not in page] == []
