"""Which options a text names, and of which commands it says them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

OPTION = re.compile(r"(?<![\w-])--?[a-zA-Z](?:[\w-]*\w)?")
LONG_OPTION = re.compile(r"(?<![\w-])--[a-zA-Z](?:[\w-]*\w)?")
CODE = re.compile(r"```.*?\n(.*?)```|`([^`]+)`", re.DOTALL)


class NamedOption(NamedTuple):
    """An option in a text.

    Attributes:
        option: as it is written.
        command: the words of the command that it stands behind; None where it stands alone.
    """

    option: str
    command: str | None


def named_options(text: str, known: Mapping[str, object]) -> Iterator[NamedOption]:
    """Yield the options that a text names: in what one may type after `evictstream`, and alone.

    What stands behind another program is that program's.

    Args:
        text: with code between backticks, or in fences.
        known: the commands by their words, the program itself under the empty text.
    """
    for found in CODE.finditer(text):
        lines = found[1].replace("\\\n", " ").splitlines() if found[1] else [found[2].replace("\n", " ")]
        for line in lines:
            yield from _typed(line, known)
    for option in LONG_OPTION.findall(CODE.sub(" ", text)):
        yield NamedOption(option, None)


def _typed(line: str, known: Mapping[str, object]) -> Iterator[NamedOption]:
    for part in re.split(r"\||&&|;|<\(|#", line):
        words = part.split()
        if words and words[0].startswith("-"):
            yield from (NamedOption(option, None) for option in LONG_OPTION.findall(part))
        begin = _of_the_program(words)
        if begin is None:
            continue
        command = ""
        for word in words[begin:]:
            longer = f"{command} {word}".strip()
            if word == "--":
                break
            if longer in known or any(each.startswith(f"{longer} ") for each in known):
                command = longer
            elif OPTION.fullmatch(word.partition("=")[0]):
                yield NamedOption(word.partition("=")[0], command)


def _of_the_program(words: list[str]) -> int | None:
    """Where the words for evictstream begin; for helm and kubectl it is a name, unless they run it."""
    for number, word in enumerate(words):
        is_name = words[0] in {"helm", "kubectl"} and words[number - 1] not in {"--", "kubectl"}
        if word == "evictstream" and not is_name:
            return number + 1
    return None
