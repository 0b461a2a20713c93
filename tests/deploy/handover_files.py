"""The policy of a handover for the chart and for Kustomize: `python -m tests.deploy.handover_files` writes the files.

The chart gets what stands below `spec`, with words for what its values say. Kustomize gets the objects.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from evictstream.streams.handover.object_files import as_yaml, objects_as_yaml
from evictstream.streams.handover.policy_objects import (
    DEFAULT_MORE,
    NEVER_MOVED,
    guard_objects,
    namespace_selector,
    policy_objects,
    policy_spec,
)
from tests.deploy.pages import ROOT

CHART_FILES: Final = ROOT / "deploy" / "chart" / "files" / "handover"
KUSTOMIZED: Final = ROOT / "deploy" / "kustomize" / "handover" / "handover.yaml"

MORE: Final = "MORE_SECONDS"
EXCLUDED: Final = "EXCLUDED_NAMESPACES"


def handover_files() -> dict[Path, str]:
    """Return the text of each file."""
    backstop = as_yaml(policy_spec(DEFAULT_MORE))
    expression = f"expression: '{DEFAULT_MORE}'"
    assert backstop.count(expression) == 1
    selector = as_yaml(namespace_selector([EXCLUDED]))
    usual = f"{', '.join(NEVER_MOVED)}, {EXCLUDED}"
    assert usual in selector
    guard = {each["metadata"]["name"]: each for each in guard_objects() if "validations" in each["spec"]}
    return {
        CHART_FILES / "backstop.yaml": backstop.replace(expression, f"expression: '{MORE}'"),
        CHART_FILES / "handover.yaml": as_yaml(policy_spec(None)),
        CHART_FILES / "selector.yaml": selector.replace(usual, EXCLUDED),
        **{CHART_FILES / f"{name}.yaml": as_yaml(each["spec"]) for name, each in guard.items()},
        KUSTOMIZED: objects_as_yaml(
            policy_objects(DEFAULT_MORE, guard=True), "Made by `python -m tests.deploy.handover_files`."
        ),
    }


if __name__ == "__main__":
    for file, text in handover_files().items():
        file.write_text(text, encoding="utf-8")
