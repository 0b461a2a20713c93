"""The commands that pages tell a reader to type: each fenced block says how CI runs it, or why CI does not.

The word behind `sh` is `run`, or one of `NOT_RUN`. A block of `console` shows what its commands print.
"""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Iterator
from typing import Final, NamedTuple

from tests.deploy.pages import ROOT, examples

NOT_RUN: Final = {
    "in-ci": "tests/kit/demo/test_demo_command.py plays the demo",
    "needs-an-incident": "needs an incident that stands: tests/kit/cli/test_incidents.py has one",
    "needs-cluster": "needs a cluster or objects: tests/e2e/test_migration.py, test_chart_runs.py and others have them",
    "needs-kafka-tools": "Kafka's scripts are not installed: tests/harness/rights.py grants what the page grants",
    "needs-own-program": "needs a reader's own feed or executor: tests/kit/conformance/test_command.py has one",
    "own-kafka": "the pages run on one Kafka: tests/streams/cli/test_broker.py starts its own",
    "needs-registry": "needs a container engine and a registry: tests/deploy/test_image_build.py copies what it would",
}
"""Why CI does not run a block, and what it runs in its place. All that these blocks call of evictstream is parsed."""

SHELLS: Final = {"bash", "console", "sh", "shell", "zsh"}
PUNCTUATION: Final = frozenset("|&;<>()")

PAGES: Final = sorted(
    str(file.relative_to(ROOT))
    for pattern in ("*.md", ".github/**/*.md", "deploy/**/*.md", "docs/**/*.md", "examples/**/*.md")
    for file in ROOT.glob(pattern)
)


class Block(NamedTuple):
    """A fenced block: its page and line, the words behind the fence, and what is in it."""

    page: str
    line: int
    words: tuple[str, ...]
    text: str

    @property
    def lines(self) -> list[str]:
        """What is typed: lines with those that continue them, without comments and what is printed."""
        lines = self.text.replace("\\\n", " ").splitlines()
        if self.words[0] == "console":
            return [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
        return [line for line in lines if tokens(line)]


def blocks() -> list[Block]:
    """List all fenced blocks of all pages."""
    return [
        Block(page, found.line, found.words, found.text)
        for page in PAGES
        for found in examples((ROOT / page).read_text(encoding="utf-8"))
    ]


def shell_blocks() -> list[Block]:
    """List those whose language is that of a shell."""
    return [block for block in blocks() if block.words[:1] and block.words[0] in SHELLS]


def tokens(line: str) -> list[str]:
    """Split a line as a shell does; `|`, `>`, `&&` and their like are tokens of their own."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="".join(PUNCTUATION))
    lexer.whitespace_split = True
    return list(lexer)


def parts(line: str) -> Iterator[list[str]]:
    """Yield the words of each program that a line calls."""
    for is_between, words in itertools.groupby(tokens(line), PUNCTUATION.issuperset):
        if not is_between:
            yield list(words)


def calls(line: str) -> Iterator[list[str]]:
    """Yield what a line types after `evictstream`, also as plugin of kubectl or inside a pod."""
    for words in parts(line):
        for number, word in enumerate(words):
            if word == "evictstream" and (number == 0 or words[number - 1] in {"--", "kubectl"}):
                yield words[number + 1 :]


def through(line: str) -> tuple[list[str], list[str]]:
    """Split a line into what it types after `evictstream`, and what its output goes through: `| cut -c-60`."""
    words = tokens(line)
    assert words[0] == "evictstream", f"not a call of evictstream alone: {line}"
    end = next((number for number, word in enumerate(words) if PUNCTUATION.issuperset(word)), len(words))
    return words[1:end], words[end:]
