"""Writes all files."""

from __future__ import annotations

from tests.deploy.monitoring.files import texts
from tests.deploy.pages import ROOT

for path, text in texts().items():
    (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
    (ROOT / path).write_text(text, encoding="utf-8")
