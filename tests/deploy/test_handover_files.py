"""The policy of the chart and of Kustomize is the one that `evictstream handover policy` prints."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]

from evictstream.streams.handover.policy_objects import (
    MORE_ANNOTATION,
    NEVER_MOVED,
    POLICY_NAME,
    POLICY_VERSION,
    VARIANT_ANNOTATION,
    VERSION_ANNOTATION,
    policy_objects,
)
from tests.deploy.handover_files import CHART_FILES, EXCLUDED, KUSTOMIZED, MORE, handover_files
from tests.deploy.pages import ROOT

TEMPLATE = (ROOT / "deploy" / "chart" / "templates" / "handover.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize("file", handover_files(), ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_a_file_is_what_the_generator_writes(file: Path) -> None:
    written = handover_files()[file]
    assert file.read_text(encoding="utf-8") == written, "run `python -m tests.deploy.handover_files`"


def test_kustomize_has_the_policy_of_the_command() -> None:
    assert list(yaml.safe_load_all(KUSTOMIZED.read_text(encoding="utf-8"))) == policy_objects(3600, guard=True)
    kustomization = yaml.safe_load((KUSTOMIZED.parent / "kustomization.yaml").read_text(encoding="utf-8"))
    assert kustomization["resources"] == [KUSTOMIZED.name]


def test_the_template_takes_each_file_and_word() -> None:
    for file in CHART_FILES.glob("*.yaml"):
        assert file in handover_files()
        assert file.stem in TEMPLATE
    assert TEMPLATE.count(f'replace "{MORE}"') == TEMPLATE.count(f'replace "{EXCLUDED}"') == 1


def test_the_template_has_the_names_of_the_command() -> None:
    """What it renders is compared object by object where Helm is: `tests/e2e/test_chart_objects.py`."""
    assert f"name: {POLICY_NAME}\n" in TEMPLATE
    assert " ".join(f'"{name}"' for name in NEVER_MOVED) in TEMPLATE
    assert TEMPLATE.count(f'{VERSION_ANNOTATION}: "{POLICY_VERSION}"\n') == 2
    assert f"{VARIANT_ANNOTATION}: " in TEMPLATE
    assert f"{MORE_ANNOTATION}: " in TEMPLATE
