"""No page calls a live cluster as the recordings call theirs: an import would then write into its tables."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest

from tests.deploy.pages import ROOT

RECORDED = {
    json.loads(gzip.decompress(file.read_bytes()).partition(b"\n")[0])["cluster"]
    for file in (ROOT / "examples" / "incidents").glob("*/events.jsonl.gz")
}
TEXTS = [
    ROOT / "README.md",
    ROOT / "docker-compose.yml",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "deploy").rglob("*.*")),
    ROOT / "streams" / "cli" / "execute.py",
    ROOT / "streams" / "cli" / "feed.py",
]
LIVE = re.compile(r"evictstream (?:feed|execute)\b[^\n`|]*|kubectl[^\n]*--watch[^\n]*\|[^\n]*import[^\n]*")


@pytest.mark.parametrize("file", TEXTS, ids=lambda file: str(file.relative_to(ROOT)))
def test_a_live_cluster_has_a_name_of_its_own(file: Path) -> None:
    text = re.sub(r"([\\|])\n#?", r"\1 ", file.read_text(encoding="utf-8"))
    named = {name for command in LIVE.findall(text) for name in re.findall(r"--cluster[ =]([\w-]+)", command)}
    assert named & RECORDED == set()


def test_the_recordings_have_a_name() -> None:
    assert {"lab"} == RECORDED
