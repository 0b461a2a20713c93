"""The chart without Helm: its schema against the program's settings, its values against both, its rights."""

from __future__ import annotations

import tomllib
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
import yaml  # type: ignore[import-untyped]

from evictstream.streams.settings import Settings
from tests.deploy.chart_schema import OWN, SCHEMA, schema, settings_schema, written
from tests.deploy.chart_values import LEAST, REFUSED, TAKEN, Values, merged
from tests.deploy.pages import ROOT

CHART = ROOT / "deploy" / "chart"
DEFAULTS: Values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft7Validator(schema())


def paths(values: Values) -> set[str]:
    """Where these values are wrong, beside the defaults, with the paths above."""
    found = set()
    waiting = list(VALIDATOR.iter_errors(merged(DEFAULTS, values)))
    while waiting:
        error = waiting.pop()
        found.add("".join(f"/{each}" for each in error.absolute_path))
        waiting += error.context or []
    return found


def test_the_schema_is_made_of_the_settings() -> None:
    assert SCHEMA.read_text(encoding="utf-8") == written(), "run `python -m tests.deploy.chart_schema`"
    jsonschema.Draft7Validator.check_schema(schema())
    assert settings_schema()["properties"].keys() == Settings.model_fields.keys() - OWN
    assert Settings.model_fields.keys() >= OWN


def test_without_values_the_schema_says_what_to_give() -> None:
    assert paths({}) == {"/image/repository", "/kafka/bootstrapServers", "/clusters"}


@pytest.mark.parametrize("values", TAKEN.values(), ids=TAKEN)
def test_values_that_fit_are_taken(values: Values) -> None:
    assert paths(merged(LEAST, values)) == set()


@pytest.mark.parametrize(("values", "path"), REFUSED.values(), ids=REFUSED)
def test_wrong_values_are_refused_with_their_path(values: Values, path: str) -> None:
    assert path in paths(merged(LEAST, values))


def test_each_value_has_a_default_or_has_to_be_given() -> None:
    """`values.yaml` is where people look for what there is."""

    def _is_closed(value: Any) -> bool:
        return isinstance(value, dict) and value.get("additionalProperties") is False

    def fields(value: dict[str, Any], above: str = "") -> set[str]:
        found = set()
        for name, below in value["properties"].items():
            found.add(f"{above}{name}")
            if _is_closed(below):
                found |= fields(below, f"{above}{name}.")
        return found

    def given(value: dict[str, Any], above: str = "") -> set[str]:
        found = set()
        for name, below in value.items():
            found.add(f"{above}{name}")
            if isinstance(below, dict):
                found |= given(below, f"{above}{name}.")
        return found

    optional = {"global", *(each for each in fields(schema()) if each.startswith(("settings.", "kafka.users.")))}
    assert fields(schema()) - optional <= given(DEFAULTS)


def test_versions_are_those_of_the_package() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert chart["appVersion"] == version


@pytest.mark.parametrize("name", ["feed", "executor-observe", "executor-evict", "executor-delete"])
def test_rights_are_those_of_the_files_for_kubectl(name: str) -> None:
    rules = yaml.safe_load((CHART / "files" / "rights" / f"{name}.yaml").read_text(encoding="utf-8"))
    objects = yaml.safe_load_all((ROOT / "deploy" / "kubernetes" / f"{name}.yaml").read_text(encoding="utf-8"))
    assert [each["rules"] for each in objects if each["kind"] == "ClusterRole"] == [rules]
