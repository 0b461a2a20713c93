"""Each command of each page is run in CI, or says why not; its words are those that evictstream takes."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from evictstream.streams.settings import Settings
from tests.deploy import test_replay_page
from tests.deploy.command_line import parse
from tests.deploy.pages import ROOT
from tests.docs.shell_blocks import NOT_RUN, PAGES, SHELLS, Block, blocks, calls, parts, shell_blocks
from tests.streams.cli.command_tree import commands

BLOCKS = shell_blocks()
PROMPT = re.compile(r"^(?:\$ |evictstream |kubectl |helm |make )", re.MULTILINE)
PATHS = re.compile(r"(?<![\w/.-])(?:deploy|docs|examples)/[\w/.-]*\w")
SENTENCE = re.compile(r"(?<!`)`evictstream ((?:[a-z][\w-]* ?){1,2})")
"""A command in a sentence, with the words that may name it."""
NOTES = re.compile(r"^  (?:\{\{ \$cli \}\} )?evictstream (.+)$", re.MULTILINE)

each_block = pytest.mark.parametrize("block", BLOCKS, ids=lambda block: f"{block.page}:{block.line}")


@each_block
def test_a_block_says_how_it_is_run_or_why_not(block: Block) -> None:
    if block.words[0] == "console":
        assert block.page in {"docs/see.md", *(f"docs/{name}" for name in test_replay_page.NAMES)}
        return
    language, *way = block.words
    assert language == "sh"
    assert len(way) == 1
    assert way[0] in {"run", *NOT_RUN}


def test_commands_are_in_blocks_of_a_shell() -> None:
    others = [block for block in blocks() if not SHELLS.intersection(block.words[:1]) and "grammar" not in block.words]
    assert [f"{block.page}:{block.line}" for block in others if PROMPT.search(block.text)] == []


@each_block
def test_evictstream_takes_what_a_block_types(block: Block) -> None:
    for line in block.lines:
        for words in calls(line):
            parse(words)


@each_block
def test_what_a_block_names_exists(block: Block) -> None:
    variables = {f"EVICTSTREAM_{name.upper()}" for name in Settings.model_fields}
    set_here = {
        word.partition("=")[0]
        for line in block.lines
        for words in parts(line)
        for word in words
        if word.startswith("EVICTSTREAM_")
    }
    assert set_here <= variables
    assert [path for path in PATHS.findall(block.text) if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("page", PAGES)
def test_commands_in_sentences_exist(page: str) -> None:
    known = {words for words, _ in commands()}
    groups = {words[0] for words in known if len(words) > 1}
    wrong = []
    for found in SENTENCE.finditer((ROOT / page).read_text(encoding="utf-8")):
        first, *rest = found[1].split()
        is_sub = first not in groups or not rest or (first, rest[0]) in known
        if not is_sub or (first not in groups and (first,) not in known):
            wrong.append(found[0])
    assert wrong == []


def test_evictstream_takes_what_the_chart_tells_to_type() -> None:
    typed = NOTES.findall((ROOT / "deploy/chart/templates/NOTES.txt").read_text(encoding="utf-8"))
    assert typed
    for words in typed:
        parse(words.split())


def test_blocks_are_in_the_language_of_a_shell() -> None:
    text = "\n".join(block.text for block in BLOCKS if block.words[0] != "console")
    shell = shutil.which("bash")
    if shell is None:
        pytest.skip("no bash here")
    subprocess.run([shell, "-n"], input=text, text=True, check=True)


def test_reasons_name_tests_that_exist() -> None:
    for reason in NOT_RUN.values():
        for path in re.findall(r"tests/[\w/]+\.py", reason):
            assert (ROOT / path).exists()
    assert NOT_RUN.keys() <= {block.words[1] for block in BLOCKS if block.words[0] == "sh"}
