"""Every reference leads somewhere: numbers of rules, links and their anchors, files and modules that texts name.

All texts of the repository are read, pages and code. What does not resolve is reported as `file:line reference`.
"""

from __future__ import annotations

import functools
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parent.parent
ROOMS = (
    "kit",
    "models",
    "streams",
    "specs",
    "tests",
    "docs",
    "deploy",
    "examples",
    "requirements",
    "src",
    ".github",
    ".ci",
)
TEXTS = {".md", ".py", ".toml", ".yaml", ".yml", ".sh", ".java", ""}
SEMANTICS = ROOT / "docs" / "semantics.md"

# "semantics.md 6.4 to 6.6, 6.12 and 13 row 23" is four numbers and a row.
_RULE = r"(?:part [AB]\b|\d{1,2}(?:\.\d{1,2})?\b(?![.%]\d))"
RULES = re.compile(rf"[Ss]emantics(?:\.md)?(?:,?\s+(?:(?:and|to|or|rows?|sections?)\s)*{_RULE})+")
RULE = re.compile(r"(?P<row>rows? )?(?:part (?P<part>[AB])|(?P<number>\d{1,2}(?:\.\d{1,2})?))\b")
TURNED_ROUND = re.compile(r"section (?P<number>\d[\d.]*\d|\d) of [Ss]emantics(?:\.md)?")
ARCHITECTURE = re.compile(r"architecture(?:\.md)?,? (?:section )?\d+")
LINK = re.compile(r"\]\((?P<target>[^)\s]+)\)")
PAGE = re.compile(r"(?<![\w/.:-])(?P<page>(?:[\w-]+/)*[\w-]+\.md)(?:#(?P<anchor>[\w-]+(?:\.[\w-]+)*))?")
TICKED = re.compile(r"(?<!`)`(?P<text>[^`\n]+)`(?!`)")
MODULE = re.compile(r"(?:evictstream\.)?(?:models|streams|tests|engine|service)(?:\.\w+)+")
# A path with a room of ours in front, or a Python file by any part of its path; `x.go` and the like are Kubernetes'.
FILE = re.compile(r"(?:(?:[\w.-]+/)*[\w-]+\.py|(?:models|streams|tests|docs|deploy|examples|requirements)/[\w./-]+)")
OUTSIDE = re.compile(r"\.\./shared\b")


class Text(NamedTuple):
    """A file and what it says."""

    file: Path
    words: str


@functools.cache
def files() -> tuple[Path, ...]:
    found = [each for each in ROOT.iterdir() if each.is_file()]
    for room in ROOMS:
        found += [each for each in (ROOT / room).rglob("*") if each.is_file() and "__pycache__" not in each.parts]
    return tuple(sorted(found))


@functools.cache
def _by_last_part() -> dict[str, list[Path]]:
    found = defaultdict[str, list[Path]](list)
    for file in files():
        found[file.name].append(file)
    return found


def files_named(end: str) -> list[Path]:
    """List the files whose path ends with these parts."""
    return [file for file in _by_last_part()[end.rpartition("/")[2]] if file.as_posix().endswith(f"/{end}")]


@functools.cache
def names() -> frozenset[str]:
    """All paths and all their ends: `a/b/c.py`, `b/c.py`, `c.py`; of folders too."""
    found = set()
    for file in files():
        parts = file.relative_to(ROOT).parts
        for end in range(1, len(parts) + 1):
            found |= {"/".join(parts[begin:end]) for begin in range(end)}
    return frozenset(found)


def texts() -> Iterator[Text]:
    for file in files():
        if file.suffix in TEXTS and file != Path(__file__) and file.name != "LICENSE":
            yield Text(file, file.read_text(encoding="utf-8"))


@functools.cache
def anchors(page: Path) -> frozenset[str]:
    """List what a link into a page may name: its headings as platforms spell them, and the ids set by hand."""
    text = page.read_text(encoding="utf-8")
    found = set(re.findall(r'<a id="([^"]+)"></a>', text))
    outside = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    for title in re.findall(r"^#+ (.+)$", outside, re.MULTILINE):
        plain = re.sub(r"<[^>]+>|`|\]\([^)]*\)|\[", "", title).strip().lower()
        found.add(re.sub(r"[^\w\- ]", "", plain).replace(" ", "-"))
    return frozenset(found)


def broken_rules(text: Text) -> Iterator[tuple[int, str]]:
    """Numbers of rules that the page of rules does not have."""
    known = anchors(SEMANTICS)
    for found in RULES.finditer(text.words):
        for rule in RULE.finditer(found[0]):
            anchor = f"part-{rule['part'].lower()}" if rule["part"] else rule["number"]
            anchor = f"row-{anchor}" if rule["row"] else anchor
            if anchor not in known:
                yield found.start() + rule.start(), f"semantics.md {rule[0]} (no anchor {anchor!r})"
    for found in TURNED_ROUND.finditer(text.words):
        if found["number"] not in known:
            yield found.start(), found[0]
    for found in ARCHITECTURE.finditer(text.words):
        yield found.start(), f"{found[0]} (its sections have no numbers: name a heading, docs/architecture.md#...)"


def broken_links(text: Text) -> Iterator[tuple[int, str]]:
    """Links between pages that lead to no file, or to no heading of it."""
    if text.file.suffix != ".md":
        return
    for found in LINK.finditer(text.words):
        file, _, anchor = found["target"].partition("#")
        if "://" in file or file.startswith("mailto:"):
            continue
        page = (text.file.parent / file).resolve() if file else text.file
        if not page.exists() or (anchor and page.suffix == ".md" and anchor not in anchors(page)):
            yield found.start(), found["target"]


def broken_pages(text: Text) -> Iterator[tuple[int, str]]:
    """Pages that code names."""
    if text.file.suffix == ".md":
        return
    for found in PAGE.finditer(text.words):
        name = found["page"].replace("Semantics", "semantics")  # the first word of a sentence
        pages = files_named(name)
        if not pages or (found["anchor"] and not any(found["anchor"] in anchors(page) for page in pages)):
            yield found.start(), found[0]


def broken_names(text: Text) -> Iterator[tuple[int, str]]:
    """Files, tests and modules in backticks."""
    for found in TICKED.finditer(text.words):
        name, _, test = found["text"].removesuffix("()").partition("::")
        if FILE.fullmatch(name) and "..." not in name:
            if name.rstrip("/") not in names() or (test and not _is_defined(test.rpartition("::")[2], name)):
                yield found.start(), found["text"]
        elif MODULE.fullmatch(name) and not _is_module_or_part(name):
            yield found.start(), name


def broken_outside(text: Text) -> Iterator[tuple[int, str]]:
    """Documents that are not in the repository. Recorded incidents may lie outside; a test that reads them says so."""
    if "incidents" not in text.file.parts:
        yield from ((found.start(), found[0]) for found in OUTSIDE.finditer(text.words))


CHECKS = (broken_rules, broken_links, broken_pages, broken_names, broken_outside)


def _is_defined(test: str, name: str) -> bool:
    """Tell whether a file of this name defines the test."""
    defined = re.compile(rf"\b(?:def|class) {test}\b")
    return any(defined.search(file.read_text(encoding="utf-8")) for file in files_named(name))


def _is_module_or_part(name: str) -> bool:
    """Tell whether a dotted name is a module, or a name that a module defines or imports, or a part of that."""
    parts = name.removeprefix("evictstream.").split(".")
    place = ROOT if parts[0] in ROOMS else ROOT / "streams"
    for number, part in enumerate(parts):
        if (place / part).is_dir():
            place /= part
            continue
        module = place / f"{part}.py"
        if module.is_file():
            rest = parts[number + 1 :]
        else:
            module, rest = place / "__init__.py", parts[number:]
        return module.is_file() and (not rest or re.search(rf"\b{rest[0]}\b", module.read_text("utf-8")) is not None)
    return True


def broken(text: Text) -> list[str]:
    return [
        f"{text.file.relative_to(ROOT)}:{text.words.count(chr(10), 0, at) + 1} {what}"
        for check in CHECKS
        for at, what in check(text)
    ]


def test_every_reference_leads_somewhere() -> None:
    found = [each for text in texts() for each in broken(text)]
    assert found == [], "\n".join(found)


def test_no_text_is_half_merged() -> None:
    marks = re.compile(r"^(?:<{7}|>{7}) ", re.MULTILINE)
    assert [str(text.file) for text in texts() if marks.search(text.words)] == []


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("models/made_up.py", "The decision (semantics.md 12.99)."),
        ("models/made_up.py", "The decision (semantics.md 12.5 and 12.99)."),
        ("models/made_up.py", "As in semantics.md 13 row 99."),
        ("models/made_up.py", "As in semantics row 99."),
        ("models/made_up.py", "See section 15.1 of semantics.md."),
        ("models/made_up.py", "See architecture.md section 4."),
        ("models/made_up.py", "See docs/nowhere.md."),
        ("models/made_up.py", "See docs/architecture.md#nowhere."),
        ("models/made_up.py", "As `streams/engine/nowhere.py` does."),
        ("models/made_up.py", "As `nowhere.py` does."),
        ("models/made_up.py", "As `evictstream.streams.engine.nowhere` does."),
        ("models/made_up.py", "As `models.kubernetes.matching.nowhere` does."),
        ("models/made_up.py", "As `engine.core.nowhere` does."),
        ("docs/made_up.md", "Held by `test_health.py::test_nowhere`."),
        ("docs/made_up.md", "[there](nowhere.md)"),
        ("docs/made_up.md", "[there](guarantees.md#nowhere)"),
        ("docs/made_up.md", "It is in `streams/nowhere/`."),
        ("docs/made_up.md", "As in ../shared/design/semantics.md."),
    ],
)
def test_a_made_up_reference_is_reported(name: str, words: str) -> None:
    (found,) = broken(Text(ROOT / name, f"\n{words}"))
    assert found.startswith(f"{name}:2 ")


@pytest.mark.parametrize(
    "words",
    [
        "semantics.md 6.4 to 6.6, 6.12 and 6.13, row by row",
        "semantics.md 4, 12.5, 13 row 33 and part A",
        "semantics.md 6.11, #142617",
        "docs/guarantees.md#when-firing-waits",
        "`streams/engine/`, `matching.py`, `evictstream.models.kubernetes.matching.tolerates`",
    ],
)
def test_a_real_reference_is_not_reported(words: str) -> None:
    assert broken(Text(ROOT / "models" / "made_up.py", words)) == []
