from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from evictstream.streams.settings import Settings, load_settings
from tests.deploy.pages import examples, page
from tests.deploy.settings_page import GROUPS, PAGE, default, rewritten, variable

TEXT = page("settings.md")
JOINED = TEXT.replace("\n  ", " ")
"""Each entry of a list on one line."""


def test_lists_are_those_of_the_code() -> None:
    """Write them with `python -m tests.deploy.settings_page`."""
    assert rewritten(TEXT) == TEXT == PAGE.read_text(encoding="utf-8")


def test_groups_have_all_settings_in_the_order_of_the_command() -> None:
    assert [name for group in GROUPS.values() for name in group.model_fields] == list(Settings.model_fields)


@pytest.mark.parametrize("name", Settings.model_fields)
def test_every_setting_has_one_entry_with_its_default(name: str) -> None:
    (entry,) = re.findall(
        rf"^- `{variable(name)}` \((.+?); (no default|default `.*?`)\): (.+\.)$", JOINED, re.MULTILINE
    )
    takes, shown, what = entry
    assert takes
    assert what
    assert shown.removeprefix("default ").strip("`").replace("no default", "-") == default(Settings.model_fields[name])


@pytest.mark.parametrize("name", [name for name, field in Settings.model_fields.items() if field.default is not None])
def test_a_default_as_shown_can_be_given(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable(name), default(Settings.model_fields[name]))
    loaded = load_settings()
    assert loaded.settings == Settings()
    assert loaded.origins[name] == "environment"


def test_files_on_the_page_are_taken(tmp_path: Path) -> None:
    texts = [example.text for example in examples(TEXT) if example.words == ("toml",)]
    assert len(texts) == 2
    file, secret = tmp_path / "evictstream.toml", tmp_path / "password"
    secret.write_text("given elsewhere", encoding="utf-8")
    file.write_text("\n".join(texts).replace("/run/secrets/kafka/password", str(secret)), encoding="utf-8")
    settings = load_settings(config_file=file).settings
    assert (settings.partitions, settings.replication_factor, settings.uses_sasl) == (64, 3, True)


@pytest.mark.parametrize(
    "wrong",
    [
        {"heartbeat_interval_seconds": 6.0},
        {"lease_margin_seconds": 9.5},
        {"commit_linger_seconds": 60.0},
        {"retry_base_seconds": 301.0},
        {"write_limit_seconds": 60.0},
        {"broker_silence_limit_seconds": 120.0},
        {"min_insync_replicas": 2},
        {"max_object_bytes": 2_000_000},
        {"max_record_bytes": 2_097_152},
        {"max_batch_bytes": 2_097_153},
        {"max_fetch_bytes": 2_097_151},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_rules_between_settings_stand_on_the_page(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as refused:
        Settings(**wrong)
    (detail,) = refused.value.errors()
    for sentence in detail["msg"].removeprefix("Value error, ").split("; "):
        assert f"- {sentence}\n" in TEXT
