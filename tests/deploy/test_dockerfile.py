from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from evictstream.streams.worker.app import STOP_SIGNALS
from tests.deploy.command_line import parse
from tests.deploy.compose import compose
from tests.deploy.dockerfile import DockerfileError, Stage, below, build_context, stages
from tests.deploy.locks import pins
from tests.deploy.pages import ROOT

TEXT = (ROOT / "Dockerfile").read_text(encoding="utf-8")
STAGES = stages(TEXT)
BUILD = next(stage for stage in STAGES if stage.name == "build")
LAST = STAGES[-1]
IGNORE = (ROOT / ".dockerignore").read_text(encoding="utf-8")
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def copies(stage: Stage) -> list[tuple[str, ...]]:
    """Sources and target of what comes from the project."""
    return [each.arguments for each in stage.of("COPY") if "from" not in each.flags]


class TestBase:
    def test_one_image_by_exact_tag(self) -> None:
        names = {stage.name for stage in STAGES}
        images = [stage.base for stage in STAGES if stage.base not in names]
        assert len(images) == 1
        assert re.fullmatch(r"python:3\.\d+\.\d+-slim-[a-z]+", images[0])
        assert LAST.of("LABEL")[0].pairs()["org.opencontainers.image.base.name"] == images[0]

    def test_its_python_is_a_supported_version(self) -> None:
        version = STAGES[0].base.split(":")[1].split("-")[0]
        assert version in SpecifierSet(PROJECT["project"]["requires-python"])

    def test_stages_are_used_in_order(self) -> None:
        known: set[str] = set()
        for stage in STAGES:
            assert stage.base in known or not known
            for each in stage.of("COPY"):
                assert each.flags.get("from", "build") in known or "from" not in each.flags
            known.add(stage.name)


class TestBuild:
    @pytest.mark.parametrize("source", [source for *sources, _ in copies(BUILD) for source in sources])
    def test_what_is_copied_is_there_and_let_in(self, source: str) -> None:
        path = ROOT / source
        files = [file for file in path.rglob("*") if file.is_file()] if path.is_dir() else [path]
        names = [file.relative_to(ROOT).as_posix() for file in files if "__pycache__" not in file.parts]
        assert names
        assert set(names) <= set(below(source, build_context(ROOT, IGNORE)))

    def test_the_package_is_complete(self) -> None:
        copied = {source for *sources, _ in copies(BUILD) for source in sources}
        wheel = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
        assert {*wheel["force-include"], *wheel["only-include"]} <= copied
        assert {PROJECT["project"]["readme"], *PROJECT["project"]["license-files"], "pyproject.toml"} <= copied

    def test_all_that_is_installed_is_hashed_or_local(self) -> None:
        installs = [each.arguments for each in BUILD.of("RUN") if "pip" in each.arguments[0]]
        assert len(installs) == 4
        for arguments in installs:
            assert ("--require-hashes" in arguments) != ("--no-index" in arguments)

    def test_no_build_fetches_what_it_is_made_with(self) -> None:
        """pip's isolated builds take the newest of what a package asks for, without a hash, and run it."""
        installs = [each.arguments for each in BUILD.of("RUN") if "pip" in each.arguments[0]]
        for arguments in installs:
            assert "--no-build-isolation" in arguments or "--only-binary" in arguments or "--no-index" in arguments
            if "--require-hashes" in arguments:
                assert arguments[arguments.index("--only-binary") + 1] == ":all:"
        built = [each[each.index("--no-binary") + 1] for each in installs if "--no-binary" in each]
        assert built == ["faust-streaming"]
        assert all("--no-build-isolation" in each for each in installs if "wheel" in each)

    def test_what_builds_faust_is_locked(self) -> None:
        """Its `build-system.requires`, without Cython, which only a compiler could make use of."""
        assert {"setuptools", "setuptools-scm", "wheel"} <= pins("deploy/build.txt").keys()

    @pytest.mark.parametrize("name", ["requirements/runtime.txt", "deploy/build.txt"])
    def test_requirements_are_copied_where_they_are_read(self, name: str) -> None:
        (target,) = [found[-1] for found in copies(BUILD) if name in found[:-1]]
        (read,) = [each.arguments[-1] for each in BUILD.of("RUN") if each.arguments[-1].endswith(name)]
        assert f"{target}{name.rpartition('/')[2]}" == read
        assert pins(name)

    def test_runtime_lock_has_what_the_project_needs(self) -> None:
        locked = pins("requirements/runtime.txt")
        for text in PROJECT["project"]["dependencies"]:
            needed = Requirement(text)
            assert needed.specifier.contains(locked[needed.name][0])

    def test_build_lock_is_part_of_the_one_for_development(self) -> None:
        build, dev = pins("deploy/build.txt"), pins("requirements/dev.txt")
        assert build == {name: dev[name] for name in build}
        for text in PROJECT["build-system"]["requires"]:
            needed = Requirement(text)
            assert needed.specifier.contains(build[needed.name][0])

    def test_make_fetches_no_builder_either(self) -> None:
        makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
        installs = [line for line in makefile.splitlines() if "pip install" in line]
        assert len(installs) == 3
        assert all("--no-build-isolation" in line or "--only-binary :all:" in line for line in installs)
        assert all("--require-hashes" in line or "--no-deps" in line for line in installs)

    def test_no_instruction_goes_through_a_shell(self) -> None:
        assert [
            each for stage in STAGES for each in stage.of("RUN") if each.arguments[0] not in {"python", "pip"}
        ] == []


class TestResult:
    def test_it_runs_as_a_number_that_is_not_root(self) -> None:
        (user,) = LAST.of("USER")
        assert re.fullmatch(r"[1-9]\d{3,}:[1-9]\d{3,}", user.arguments[0])

    def test_nothing_is_made_in_it(self) -> None:
        assert {each.word for each in LAST.instructions} == {
            "LABEL",
            "COPY",
            "ENV",
            "USER",
            "STOPSIGNAL",
            "ENTRYPOINT",
            "CMD",
        }
        assert [each.flags for each in LAST.of("COPY")] == [{"from": "build"}]

    def test_it_starts_the_command_of_the_project(self) -> None:
        ((entrypoint,), (command,)) = LAST.of("ENTRYPOINT"), LAST.of("CMD")
        assert entrypoint.arguments[0] in PROJECT["project"]["scripts"]
        parse(command.arguments)

    def test_the_path_leads_to_the_environment_that_was_made(self) -> None:
        (made,) = [each.arguments[-1] for each in BUILD.of("RUN") if "venv" in each.arguments]
        (copied,) = LAST.of("COPY")
        assert copied.arguments == (made, made)
        assert LAST.of("ENV")[0].pairs()["PATH"] == f"{made}/bin:$PATH"
        interpreters = {
            each.arguments[each.arguments.index("--python") + 1]
            for each in BUILD.of("RUN")
            if "--python" in each.arguments
        }
        assert interpreters == {f"{made}/bin/python"}

    def test_what_is_imported_was_compiled(self) -> None:
        """pip compiles what it installs; the base image has no bytecode of the standard library."""
        (compiled,) = STAGES[0].of("RUN")
        assert "compileall" in compiled.arguments[-1]
        assert not any("--no-compile" in each.arguments for each in BUILD.of("RUN"))

    def test_output_is_not_held_back(self) -> None:
        assert LAST.of("ENV")[0].pairs()["PYTHONUNBUFFERED"] == "1"

    def test_the_worker_obeys_its_stop_signal(self) -> None:
        assert LAST.of("STOPSIGNAL")[0].arguments[0] in {number.name for number in STOP_SIGNALS}

    def test_labels(self) -> None:
        labels = LAST.of("LABEL")[0].pairs()
        prefix = "org.opencontainers.image."
        assert labels[f"{prefix}title"] == PROJECT["project"]["name"]
        assert labels[f"{prefix}version"] == PROJECT["project"]["version"]
        assert labels[f"{prefix}licenses"] == PROJECT["project"]["license"]
        assert labels[f"{prefix}description"]

    def test_no_secrets(self) -> None:
        names = [name for stage in STAGES for each in stage.of("ENV") for name in each.pairs()]
        assert [name for name in names if re.search("PASSWORD|SECRET|TOKEN|KEY|EVICTSTREAM", name)] == []

    def test_compose_builds_this_file(self) -> None:
        assert compose()["services"]["topics"]["build"] == {"context": "."}


class TestParser:
    @pytest.mark.parametrize(
        "text",
        [
            pytest.param("RUN ['a']\n", id="before the first FROM"),
            pytest.param("FROM a:1\nRUN make all\n", id="through a shell"),
            pytest.param("FROM a:1\nADD x /x\n", id="an instruction that we do not use"),
            pytest.param("FROM a:1\nENV A=1 \\\n", id="the last line goes on"),
            pytest.param("FROM a:1 AS\n", id="a stage without a name"),
            pytest.param("FROM a:1\nUSER \n", id="an instruction of nothing"),
        ],
    )
    def test_refuses(self, text: str) -> None:
        with pytest.raises(DockerfileError):
            stages(text)

    def test_comments_between_lines_that_go_on(self) -> None:
        (stage,) = stages('FROM a:1 AS b\nENV A=1 \\\n# why\n    B="2 3"\n')
        assert (stage.name, stage.base) == ("b", "a:1")
        assert stage.of("ENV")[0].pairs() == {"A": "1", "B": "2 3"}

    @pytest.mark.parametrize(
        ("path", "is_ignored"),
        [
            (".git/config", True),
            (".env", True),
            (".venv/bin/python", True),
            ("tests/conftest.py", True),
            ("deploy/build.txt", False),
            ("deploy/secret.yaml", True),
            ("requirements/dev.txt", True),
            ("models/messages/schemas/command.json", False),
            ("streams/cli/__pycache__/main.cpython-311.pyc", True),
            ("streams/cli/main.py", False),
        ],
    )
    def test_what_the_build_sees(self, path: str, is_ignored: bool, tmp_path: Path) -> None:  # noqa: FBT001
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
        assert build_context(tmp_path, IGNORE) == ([] if is_ignored else [path])
