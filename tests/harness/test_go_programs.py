"""Versions of programs that tests build: one by `go.mod`, others by an environment variable."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.binaries import CONTROL_PLANE
from tests.harness.go_programs import GoPrograms, UnknownVersionError


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GoPrograms:
    """Two versions of one module."""
    monkeypatch.delenv("PROGRAM", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    sources = tmp_path / "sources"
    (sources / "cmd").mkdir(parents=True)
    (sources / "cmd" / "main.go").write_text("package main\n")
    for name, version in (("go", "v2.0.1"), ("v1.9.0", "v1.9.0")):
        (sources / f"{name}.mod").write_text(f"require (\n\texample.com/module {version}\n)\n")
        (sources / f"{name}.sum").write_text(f"{version}\n")
    return GoPrograms(
        title="Program",
        sources=sources,
        module="example.com/module",
        programs=("program",),
        packages=("./cmd/...",),
        folder_name="program",
        how="make program",
        cost="seconds",
        variable="PROGRAM",
    )


@pytest.mark.parametrize(
    ("asked", "version"),
    [("", "v2.0.1"), ("2.0.1", "v2.0.1"), ("1.9.0", "v1.9.0"), ("v1.9.0", "v1.9.0")],
)
def test_environment_asks_for_a_version(
    programs: GoPrograms, monkeypatch: pytest.MonkeyPatch, asked: str, version: str
) -> None:
    monkeypatch.setenv("PROGRAM", asked)
    assert programs.version() == version
    assert programs.folder().name.startswith(f"{version}-")
    assert programs.versions() == ("v2.0.1", "v1.9.0")


def test_unknown_version_names_the_known_ones(
    programs: GoPrograms, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also in the command, in one line; no test is skipped for it unnoticed."""
    monkeypatch.setenv("PROGRAM", "1.8.0")
    with pytest.raises(UnknownVersionError, match=r"^PROGRAM=1\.8\.0: Program can be built at 2\.0\.1, 1\.9\.0$"):
        programs.are_built()
    assert programs.main() == 1
    assert capsys.readouterr().err == "PROGRAM=1.8.0: Program can be built at 2.0.1, 1.9.0\n"


def test_files_of_other_versions_build_nothing_again(programs: GoPrograms, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a version is built from decides about its folder, under the names that Go knows."""
    usual = programs.folder()
    (programs.sources / "v1.9.0.sum").write_text("more\n")
    assert programs.folder() == usual
    monkeypatch.setenv("PROGRAM", "1.9.0")
    other = programs.folder()
    for name in ("mod", "sum"):
        (programs.sources / f"v1.9.0.{name}").rename(programs.sources / f"go.{name}")
    monkeypatch.delenv("PROGRAM")
    assert programs.folder() == other
    (programs.sources / "cmd" / "main.go").write_text("package main // changed\n")
    assert programs.folder() != other


def test_each_version_of_kubernetes_is_named_after_its_file() -> None:
    first, *others = CONTROL_PLANE.versions()
    assert first == "v1.37.2"
    for version in others:
        assert (CONTROL_PLANE.sources / f"{version}.mod").is_file()
        assert (CONTROL_PLANE.sources / f"{version}.sum").is_file()
