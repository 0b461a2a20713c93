"""A Dockerfile as a list of instructions, and the files that its build sees.

It refuses what our Dockerfile does not use. Libraries for the format are no longer maintained or have no wheels for
arm64; that for `.dockerignore` is Docker's own.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import re
import shlex
from pathlib import Path

INSTRUCTIONS = {"CMD", "COPY", "ENTRYPOINT", "ENV", "FROM", "LABEL", "RUN", "STOPSIGNAL", "USER"}
EXEC_FORM = {"CMD", "ENTRYPOINT", "RUN"}

_NO_INSTRUCTION = re.compile(r"^[ \t]*(#.*)?\n", re.MULTILINE)


class DockerfileError(ValueError):
    """Something that is no Dockerfile, or uses more of the format than is understood here."""


@dataclasses.dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction.

    Attributes:
        word: what to do, in capitals.
        flags: `--from=build` and the like, by name.
        arguments: words of the exec form, else the words of the line.
    """

    word: str
    flags: dict[str, str]
    arguments: tuple[str, ...]

    def pairs(self) -> dict[str, str]:
        """Read `NAME=value NAME="value with spaces"`."""
        return dict(each.split("=", 1) for each in self.arguments)


@dataclasses.dataclass(frozen=True, slots=True)
class Stage:
    """A `FROM` and what follows it.

    Attributes:
        name: behind `AS`; empty if it has none.
        base: image or earlier stage.
        instructions: in order, without the `FROM`.
    """

    name: str
    base: str
    instructions: list[Instruction]

    def of(self, word: str) -> list[Instruction]:
        """Return the instructions of one kind."""
        return [each for each in self.instructions if each.word == word]


def stages(text: str) -> list[Stage]:
    """Read a Dockerfile.

    Raises:
        DockerfileError: it is none.
    """
    if text.rstrip().endswith("\\"):
        raise DockerfileError("the last line goes on")
    found: list[Stage] = []
    for line in _NO_INSTRUCTION.sub("", text).replace("\\\n", " ").splitlines():
        instruction = _instruction(line)
        match instruction.word, instruction.arguments:
            case "FROM", (base,):
                found.append(Stage("", base, []))
            case "FROM", (base, "AS", name):
                found.append(Stage(name, base, []))
            case word, _ if found and word != "FROM":
                found[-1].instructions.append(instruction)
            case _:
                raise DockerfileError(f"not understood here: {line}")
    return found


def _instruction(line: str) -> Instruction:
    word, _, text = line.strip().partition(" ")
    try:
        words: list[str] = json.loads(text) if word in EXEC_FORM else shlex.split(text)
    except ValueError as error:
        raise DockerfileError(f"neither words nor the exec form: {line}") from error
    if word not in INSTRUCTIONS or not words:
        raise DockerfileError(f"not understood here: {line}")
    flags = [each for each in words if each.startswith("--") and word == "COPY"]
    named = dict(flag.removeprefix("--").split("=", 1) for flag in flags)
    return Instruction(word, named, tuple(each for each in words if each not in flags))


@functools.cache
def build_context(root: Path, rules: str) -> list[str]:
    """Return the files below `root` that a `.dockerignore` with these rules lets into the build."""
    from docker.utils.build import PatternMatcher  # noqa: PLC0415 - 0.3 s in each process

    lines = [line.strip() for line in rules.splitlines()]
    matcher = PatternMatcher([line for line in lines if line and not line.startswith("#")])
    return sorted(path for path in matcher.walk(str(root)) if (root / path).is_file())


def below(source: str, files: list[str]) -> list[str]:
    """Return the files that a source of `COPY` stands for."""
    return [file for file in files if file == source or file.startswith(f"{source}/")]
