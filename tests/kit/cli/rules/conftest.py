"""The command line in this process: fast, and with files that a test writes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from evictstream.streams.cli.main import run


class Answer(NamedTuple):
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON object on stdout."""
        return json.loads(self.out)


Rules = Callable[..., Answer]
WriteFile = Callable[[str], str]


@pytest.fixture
def rules(capsys: pytest.CaptureFixture[str]) -> Rules:
    """Run `evictstream rules` with arguments."""

    def call(*arguments: str) -> Answer:
        code = run(["rules", *arguments])
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        return Answer(int(code), captured.out, captured.err)

    return call


@pytest.fixture
def write(tmp_path: Path) -> WriteFile:
    """Write a file and give its path."""

    def make(text: str) -> str:
        path = tmp_path / f"objects-{len(list(tmp_path.iterdir()))}"
        path.write_text(text, encoding="utf-8")
        return str(path)

    return make
