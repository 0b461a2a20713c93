"""What the Dockerfile builds, built, and run from there: what is not copied is missing here as it is in the image."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import pytest

from tests.deploy.dockerfile import stages
from tests.deploy.image_build import ImageBuild, ImageBuildError
from tests.deploy.pages import ROOT

pytestmark = pytest.mark.slow  # makes wheels and environments

TEXT = (ROOT / "Dockerfile").read_text(encoding="utf-8")
IGNORE = (ROOT / ".dockerignore").read_text(encoding="utf-8")


def build(root: Path, text: str = TEXT, rules: str = IGNORE) -> ImageBuild:
    image = ImageBuild(root, rules)
    for stage in stages(text):
        image.carry_out(stage)
    return image


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> ImageBuild:
    return build(tmp_path_factory.mktemp("image"))


def test_the_image_starts_the_installed_command(image: ImageBuild) -> None:
    (entrypoint,) = stages(TEXT)[-1].of("ENTRYPOINT")
    command = image.placed(f"/opt/evictstream/bin/{entrypoint.arguments[0]}")
    assert "taint" in image.run(command, "--help")
    assert image.run("/usr/bin/env", *entrypoint.arguments, "--version").strip() == "0.1.0"
    image.run(command, "config")  # its settings, and so its libraries


def test_a_worker_imports_only_from_the_image(image: ImageBuild) -> None:
    python = image.placed("/opt/evictstream/bin/python")
    where = image.run(
        python,
        "-c",
        "import evictstream.streams.worker.app as app, evictstream.models as models;"
        "print(app.__file__, models.__file__)",
    )
    assert all(Path(each).is_relative_to(image.root / "opt") for each in where.split())


def test_the_image_has_the_incident_of_the_demo(image: ImageBuild) -> None:
    python = image.placed("/opt/evictstream/bin/python")
    program = (
        "from evictstream.kit.demo.story import demo_incident, read_incident\n"
        "print(demo_incident()); assert read_incident(demo_incident(), partitions=1)"
    )
    assert Path(image.run(python, "-c", program).strip()).is_relative_to(image.root / "opt")


def test_the_wheel_has_every_file_of_the_packages(image: ImageBuild) -> None:
    (wheel,) = (image.root / "wheels").iterdir()
    inside = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("evictstream/")}
    ours = {
        file.relative_to(ROOT).as_posix()
        for folder in ("kit", "models", "streams")
        for file in (ROOT / folder).rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    assert {f"evictstream/{name}" for name in ours} | {"evictstream/py.typed"} <= inside


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        pytest.param(TEXT, IGNORE.replace("!streams\n", ""), id="shut out by .dockerignore"),
        pytest.param(
            re.sub(r"COPY examples/.*\\\n.*\n", "", TEXT),
            IGNORE,
            id="the incident is not copied",
            marks=pytest.mark.kit,
        ),
        pytest.param(
            TEXT.replace("COPY pyproject.toml README.md", "COPY pyproject.toml"),
            IGNORE,
            id="a single file",
            marks=pytest.mark.kit,
        ),
    ],
)
def test_what_is_missing_fails_the_build(text: str, rules: str, tmp_path: Path) -> None:
    assert (text, rules) != (TEXT, IGNORE)
    with pytest.raises(ImageBuildError):
        build(tmp_path, text, rules)
