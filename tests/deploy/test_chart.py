"""The chart without Helm: its schema against the program's settings, its values against both, its rights."""

from __future__ import annotations

import re
import shlex
import textwrap
import tomllib
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
import yaml  # type: ignore[import-untyped]

from evictstream.streams.errors import WrongUseError
from evictstream.streams.feed.cluster_labels import labels_of
from evictstream.streams.feed.cluster_profile import profiles_of
from evictstream.streams.settings import Settings
from tests.deploy.chart_schema import OWN, SCHEMA, schema, settings_schema, written
from tests.deploy.chart_values import LEAST, REFUSED, TAKEN, Values, merged
from tests.deploy.command_line import parse
from tests.deploy.pages import ROOT

CHART = ROOT / "deploy" / "chart"
README = (CHART / "README.md").read_text(encoding="utf-8")
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
    missing = {error.message for error in VALIDATOR.iter_errors(DEFAULTS) if error.validator == "required"}
    assert missing == {f"'{name}' is a required property" for name in ("repository", "bootstrapServers")}
    assert paths({}) == {"/image", "/kafka", "/clusters"}


@pytest.mark.parametrize("values", TAKEN.values(), ids=TAKEN)
def test_values_that_fit_are_taken(values: Values) -> None:
    assert paths(merged(LEAST, values)) == set()


@pytest.mark.parametrize(("values", "path"), REFUSED.values(), ids=REFUSED)
def test_wrong_values_are_refused_with_their_path(values: Values, path: str) -> None:
    assert path in paths(merged(LEAST, values))


@pytest.mark.parametrize("key", ["tier", "a.b/c", "a/b/c", "-a", "a.b/", "B/c", "x" * 64, "with space", "a=b"])
def test_labels_of_clusters_are_taken_as_the_feed_takes_them(key: str) -> None:
    """The schema may let through what is only too long; the feed says so."""
    try:
        taken = bool(labels_of([f"{key}=gold"])) and "=" not in key
    except WrongUseError:
        taken = False
    refused = "/feed/labels" in paths(merged(LEAST, {"feed": {"labels": {key: "gold"}}}))
    assert refused == (not taken and len(key) < 64)


@pytest.mark.parametrize(
    "place", ["fleet/prod-eu-1", "a/b.c", "a.b/c", "-a/b", "a/", "/b", "a/B", "a", "a/b/c", "a/b-"]
)
def test_profiles_are_taken_as_the_feed_takes_them(place: str) -> None:
    try:
        taken = bool(profiles_of([place], ["prod-eu-1"]))
    except WrongUseError:
        taken = False
    clusters = {"clusters": [{"name": "prod-eu-1", "profile": place}]}
    assert ("/clusters/0/profile" in paths(merged(LEAST, clusters))) == (not taken)


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
    optional |= {"image.repository", "kafka.bootstrapServers"}
    assert fields(schema()) - optional <= given(DEFAULTS)


def test_versions_are_those_of_the_package() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert chart["appVersion"] == version


@pytest.mark.parametrize("name", ["feed", "executor-observe", "executor-evict", "executor-request", "executor-delete"])
def test_rights_are_those_of_the_files_for_kubectl(name: str) -> None:
    rules = yaml.safe_load((CHART / "files" / "rights" / f"{name}.yaml").read_text(encoding="utf-8"))
    objects = yaml.safe_load_all((ROOT / "deploy" / "kubernetes" / f"{name}.yaml").read_text(encoding="utf-8"))
    assert [each["rules"] for each in objects if each["kind"] == "ClusterRole"] == [rules]


def blocks(language: str) -> list[str]:
    """Take the examples out of the page; those in a list are indented with it."""
    found = re.finditer(rf"^( *)```{language}(?: [^\n]*)?\n(.*?)^\1```$", README, re.MULTILINE | re.DOTALL)
    return [textwrap.dedent(each[2]) for each in found]


@pytest.mark.parametrize("text", blocks("yaml"), ids=lambda text: text.split(":")[0])
def test_values_on_the_page_are_taken(text: str) -> None:
    assert paths(merged(LEAST, yaml.safe_load(text))) == set()


def test_commands_on_the_page_are_real() -> None:
    """The cluster's part of them is tried in `tests/e2e/test_chart_runs.py`."""
    lines = [line for text in blocks("sh") for line in text.splitlines()]
    assert {line.split()[0] for line in lines} == {"docker", "helm", "kubectl"}
    for words in map(shlex.split, lines):
        if "--" in words:
            product = words[words.index("--") + 1 :]
            assert product[0] == "evictstream"
            parse(product[1:])
        if words[:3] == ["kubectl", "apply", "-k"]:
            assert (ROOT / words[3] / "kustomization.yaml").is_file()
        if words[0] == "helm":
            assert (ROOT / words[3] / "Chart.yaml").is_file()
        if "--set" in words:
            name, _, value = words[words.index("--set") + 1].partition("=")
            above, _, below = name.partition(".")
            assert paths(merged(LEAST, {above: {below: value}})) == set()
