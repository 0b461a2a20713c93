"""Where the files are that these tests read, and how examples are taken out of a page."""

from __future__ import annotations

import dataclasses
import re
import textwrap
from pathlib import Path

ROOT = Path(__file__).parents[2]

_FENCE = re.compile(r"^(?P<indent> *)```(?P<words>[^\n]*)\n(?P<text>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL)


@dataclasses.dataclass(frozen=True, slots=True)
class Example:
    """One fenced block of a page.

    Attributes:
        words: what stands behind the fence, language first. Renderers look at the language only.
        text: what is between the fences, without the indentation of a list.
        line: where it begins, for whoever has to mend it.
    """

    words: tuple[str, ...]
    text: str
    line: int


def page(name: str) -> str:
    """Read a page of the documentation."""
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def examples(text: str) -> list[Example]:
    """Take the fenced blocks out of a page, in order."""
    return [
        Example(tuple(found["words"].split()), textwrap.dedent(found["text"]), text.count("\n", 0, found.start()) + 1)
        for found in _FENCE.finditer(text)
    ]


def section(text: str, title: str) -> str:
    """Return what stands under a heading of the second level, up to the next one."""
    _, _, rest = text.partition(f"\n## {title}\n")
    assert rest, f"no section {title!r}"
    return rest.split("\n## ", 1)[0]
