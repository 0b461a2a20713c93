"""What `docker build` makes of the Dockerfile, carried out in an empty folder, without a container engine.

COPY brings what `.dockerignore` lets in, and RUN runs, each absolute path below that folder. Only the base image and
the network are missing. For the image's Python and pip stand those of the tests. Where pip would download a lock (the
instructions with `--require-hashes`), the same versions stand in for it, which the environment of the tests has from
the same hashes: what would have become wheels is linked into the environment into which wheels are installed, and what
would have been installed beside pip is only looked at, being there.
"""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import sys
from pathlib import Path, PurePosixPath

from tests.deploy.dockerfile import Instruction, Stage, below, build_context
from tests.deploy.locks import link, locked_distributions
from tests.deploy.pages import ROOT

PATIENCE_SECONDS = 120


class ImageBuildError(Exception):
    """The build fails; the text is what the failed program said."""


class ImageBuild:
    """The file system of an image that is being built.

    Attributes:
        root: the folder that stands for `/`.
        environment: what `ENV` has set so far, beside what every program needs.
    """

    def __init__(self, root: Path, rules: str) -> None:
        """Read which files of the project `rules`, those of `.dockerignore`, let in."""
        self.root = root
        # Nothing of the environment of the tests: no settings of pip or Python, no other packages.
        self.environment = {"PATH": os.defpath, "HOME": str(root), "PIP_CONFIG_FILE": os.devnull}
        self._context = build_context(ROOT, rules)
        self._made: list[importlib.metadata.Distribution] = []

    def carry_out(self, stage: Stage) -> None:
        """Do what a stage says, as far as it concerns files.

        Raises:
            ImageBuildError: a source of COPY is not there, or a program fails.
        """
        for instruction in stage.instructions:
            match instruction.word:
                case "ENV":
                    for name, value in instruction.pairs().items():
                        moved = [self.placed(each) for each in value.split(":")]
                        self.environment[name] = ":".join(moved).replace("$PATH", self.environment["PATH"])
                case "COPY" if "from" not in instruction.flags:
                    self._copy(instruction)
                case "RUN":
                    self._run(instruction)

    def placed(self, path: str) -> str:
        """Move an absolute path below the root; leave other words as they are."""
        return str(self.root / path[1:]) if path.startswith("/") else path

    def run(self, *arguments: str) -> str:
        """Run a program in the image's environment and return what it printed.

        Raises:
            ImageBuildError: it failed.
        """
        done = subprocess.run(
            arguments,
            env=self.environment,
            cwd=self.root,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        if done.returncode:
            raise ImageBuildError(f"{' '.join(arguments)}\n{done.stdout}{done.stderr}")
        return done.stdout

    def _copy(self, instruction: Instruction) -> None:
        *sources, target = instruction.arguments
        for source in sources:
            files = below(source, self._context)
            if not files:
                raise ImageBuildError(f"COPY {source}: not found, or shut out by .dockerignore")
            for file in files:
                # A folder's content goes into the target; a file goes there by its name.
                name = PurePosixPath(file).relative_to(source) if file != source else PurePosixPath(file).name
                place = Path(self.placed(target)) / name
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(ROOT / file, place)

    def _run(self, instruction: Instruction) -> None:
        program, *rest = (self.placed(word) for word in instruction.arguments)
        if "--require-hashes" in rest:
            self._stand_in(instruction.arguments[-1].removeprefix("/src/"), are_wheels="wheel" in rest)
            return
        if "--python" in rest:
            link(self._made, Path(rest[rest.index("--python") + 1]))
        words = {"python": [sys.executable], "pip": [sys.executable, "-m", "pip"]}[program]
        self.run(*words, *rest)

    def _stand_in(self, lock: str, *, are_wheels: bool) -> None:
        if not Path(self.placed(f"/src/{lock}")).is_file():
            raise ImageBuildError(f"{lock} is read before it is copied")
        found = locked_distributions(lock)
        self._made += found if are_wheels else []
