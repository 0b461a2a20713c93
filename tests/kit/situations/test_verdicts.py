"""The verdict of `policy test` on each worked situation, as programs read it; and what Kubernetes does there."""

from __future__ import annotations

import gzip
import json
from typing import Any, Final

import pytest

from evictstream.streams.settings import Settings
from tests.kit.situations.made import MADE, files, lines
from tests.streams.cli.running import ROOT, run

NOWHERE: Final = Settings.model_validate({"bootstrap_servers": "127.0.0.1:1", "partitions": 8})
OUTAGE: Final = "examples/incidents/zone-outage-part-recovers-no-evictor/events.jsonl.gz"

VERDICTS: Final[dict[str, dict[str, Any]]] = {
    "zone-goes-dark": {"issued": (68, 58), "spared": 10, "waited": {"hold": (8, 62)}},
    "agents-rollout": {"issued": (1000, 0), "spared": 1000, "waited": {}},
    "xid-storm": {
        "issued": (100, 52),
        "spared": 48,
        "waited": {"guard": (6, 1), "guard:4c0bc0be91": (8, 3614), "limit": (38, 3962)},
    },
    "maintenance-wave": {"issued": (200, 200), "spared": 0, "waited": {"hold": (192, 21812), "limit": (8, 21721)}},
    "region-evacuation": {"issued": (660, 660), "spared": 0, "waited": {"limit": (480, 8)}},
    "singletons": {"issued": (36, 36), "spared": 0, "waited": {"limit": (18, 518)}},
}
"""Evictions without and with the policy, those that were spared, and by clause how many waited, and for how long."""


def recording(name: str) -> str:
    return f"examples/situations/{name}.jsonl.gz" if name in MADE else OUTAGE


def asked(*arguments: str) -> dict[str, Any]:
    result = run(NOWHERE, *arguments, "-o", "json")
    assert (result.returncode, result.stderr) == (0, b"")
    found = json.loads(result.stdout)
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("name", VERDICTS)
def test_the_verdict_on_a_situation_stays(name: str) -> None:
    found = asked("policy", "test", f"examples/policies/{name}.yaml", "--on", recording(name), "--run-on", "30000")
    verdict = {
        "issued": (found["without"]["issued"], found["with"]["issued"]),
        "spared": found["spared"],
        "waited": {one["clause"]: (one["delayed"], round(one["longestSeconds"])) for one in found["clauses"]},
    }
    assert verdict == VERDICTS[name]
    assert found["heldAtEnd"] == {}


@pytest.mark.parametrize("name", MADE)
def test_the_recording_of_a_situation_is_as_made(name: str) -> None:
    """To change one, change `made.py`, run it, and look at what becomes of the verdicts."""
    assert gzip.decompress(dict(files())[name].read_bytes()) == lines(name)


@pytest.mark.parametrize("name", MADE)
def test_without_a_policy_all_is_as_in_kubernetes(name: str) -> None:
    found = asked("replay", recording(name), "--against", "upstream", "--run-on", "30000")
    assert (found["same"], found["differences"]) == (found["issued"], [])


def test_each_situation_has_a_policy_and_a_section() -> None:
    page = (ROOT / "docs" / "situations.md").read_text()
    for name in VERDICTS:
        assert f"policies/{name}.yaml" in page
        assert recording(name) in page
    assert set(MADE) < set(VERDICTS)
