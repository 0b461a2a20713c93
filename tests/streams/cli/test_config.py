from __future__ import annotations

import json
from pathlib import Path

from evictstream.streams.settings import Settings
from tests.streams.cli.conftest import RunCli


def test_json_has_every_setting_with_its_origin(cli: RunCli, tmp_path: Path) -> None:
    file = tmp_path / "evictstream.toml"
    file.write_text("state_version = 2")
    result = cli(
        "--config", str(file), "--set", "partitions=16", "config", "-o", "json", EVICTSTREAM_LOG_LEVEL="warning"
    )
    assert result.returncode == 0
    shown = json.loads(result.stdout)
    assert list(shown) == list(Settings.model_fields)
    assert shown["partitions"] == {"value": 16, "origin": "flag"}
    assert shown["state_version"] == {"value": 2, "origin": "file"}
    assert shown["log_level"] == {"value": "warning", "origin": "environment"}
    assert shown["topic_prefix"] == {"value": "evictstream.", "origin": "default"}


def test_secrets_are_masked_in_both_formats(cli: RunCli) -> None:
    secret = {
        "EVICTSTREAM_SECURITY_PROTOCOL": "SASL_PLAINTEXT",
        "EVICTSTREAM_SASL_MECHANISM": "PLAIN",
        "EVICTSTREAM_SASL_USERNAME": "me",
        "EVICTSTREAM_SASL_PASSWORD": "hunter2",
    }
    for arguments in (["config"], ["config", "-o", "json"]):
        result = cli(*arguments, **secret)
        assert "********" in result.stdout
        assert "hunter2" not in result.stdout + result.stderr


def test_text_is_one_line_a_setting(cli: RunCli) -> None:
    lines = cli("config").stdout.splitlines()
    assert len(lines) == 1 + len(Settings.model_fields)
    assert lines[0].split() == ["setting", "value", "from"]
    assert ["partitions", "8", "default"] in [line.split() for line in lines]


def test_explain_says_what_each_is_for(cli: RunCli) -> None:
    shown = json.loads(cli("config", "--explain", "-o", "json").stdout)
    assert all(entry["meaning"] for entry in shown.values())
    assert "Partitions of each topic" in cli("config", "--explain").stdout
