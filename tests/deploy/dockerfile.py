"""A Dockerfile as a list of instructions, and what its build may see.

Knows what we use of the format and refuses the rest.
"""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path, PurePosixPath

INSTRUCTIONS = {"CMD", "COPY", "ENTRYPOINT", "ENV", "FROM", "LABEL", "RUN", "STOPSIGNAL", "USER"}
EXEC_FORM = {"CMD", "ENTRYPOINT", "RUN"}

_PAIR = re.compile(r'(?P<name>[A-Za-z_.]+)=(?P<value>"[^"]*"|\S*)')


class DockerfileError(ValueError):
    """Something that is no Dockerfile, or more of one than is understood here."""


@dataclasses.dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction.

    Attributes:
        word: what to do, in capitals.
        flags: `--from=build` and the like, by name.
        arguments: words of the exec form, else the words of the line.
        text: the line without the word.

    """

    word: str
    flags: dict[str, str]
    arguments: tuple[str, ...]
    text: str

    def pairs(self) -> dict[str, str]:
        """Read `NAME=value NAME="value with spaces"`."""
        return {found["name"]: found["value"].strip('"') for found in _PAIR.finditer(self.text)}


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
    instructions: tuple[Instruction, ...]

    def of(self, word: str) -> list[Instruction]:
        """Return the instructions of one kind."""
        return [each for each in self.instructions if each.word == word]


def stages(text: str) -> list[Stage]:
    """Read a Dockerfile.

    Raises:
        DockerfileError: it is none.

    """
    found: list[tuple[Instruction, list[Instruction]]] = []
    for line in _logical_lines(text):
        instruction = _instruction(line)
        if instruction.word == "FROM":
            found.append((instruction, []))
        elif not found:
            raise DockerfileError(f"before the first FROM: {line}")
        else:
            found[-1][1].append(instruction)
    return [_stage(start, rest) for start, rest in found]


def ignored(path: str, rules: str) -> bool:
    """Whether a `.dockerignore` with these rules keeps a file from the build. The last rule that matches decides."""
    result = False
    parts = PurePosixPath(path).parts
    prefixes = ["/".join(parts[: end + 1]) for end in range(len(parts))]
    for line in rules.splitlines():
        rule = line.strip()
        if not rule or rule.startswith("#"):
            continue
        pattern = _pattern(rule.removeprefix("!"))
        if any(pattern.fullmatch(prefix) for prefix in prefixes):
            result = not rule.startswith("!")
    return result


def _logical_lines(text: str) -> list[str]:
    lines: list[str] = []
    is_open = False
    for raw in text.splitlines():
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        if is_open:
            lines[-1] += " " + line.removesuffix("\\").strip()
        else:
            lines.append(line.removesuffix("\\").strip())
        is_open = line.endswith("\\")
    if is_open:
        raise DockerfileError("the last line goes on")
    return lines


def _instruction(line: str) -> Instruction:
    word, _, text = line.partition(" ")
    if word not in INSTRUCTIONS:
        raise DockerfileError(f"unknown here: {line}")
    if not text.strip():
        raise DockerfileError(f"{word} of nothing")
    if word in EXEC_FORM:
        try:
            arguments = json.loads(text)
        except ValueError as error:
            raise DockerfileError(f"not the exec form: {line}") from error
        return Instruction(word, {}, tuple(arguments), text)
    words = text.split()
    flags = [each for each in words if each.startswith("--")]
    named = dict(flag.removeprefix("--").split("=", 1) for flag in flags)
    return Instruction(word, named, tuple(each for each in words if each not in flags), text)


def _stage(start: Instruction, rest: list[Instruction]) -> Stage:
    match start.arguments:
        case (base,):
            return Stage("", base, tuple(rest))
        case (base, "AS", name):
            return Stage(name, base, tuple(rest))
    raise DockerfileError(f"FROM {start.text}")


def _pattern(rule: str) -> re.Pattern[str]:
    """Translate a rule as Docker does; sets in brackets mean the same there and here."""

    def translated(found: re.Match[str]) -> str:
        match found[0]:
            case "**" | "**/":
                return ".*" if found.end() == len(found.string) else "(?:.*/)?"
            case "*":
                return "[^/]*"
            case "?":
                return "[^/]"
            case other:
                return re.escape(other)

    return re.compile(re.sub(r"\*\*/?|\*|\?|[.$+(){}|]", translated, rule.strip("/")))


def project_files(root: Path, source: str) -> list[str]:
    """Return the files that a source of `COPY` stands for, as paths below the project."""
    path = root / source
    if path.is_dir():
        return [each.relative_to(root).as_posix() for each in sorted(path.rglob("*")) if each.is_file()]
    return [source] if path.is_file() else []
