"""What a policy is about, in words."""

from __future__ import annotations

from typing import Any

import pytest

from evictstream.kit.see.policies import selected_text
from evictstream.models.messages.policy import decode_policy
from tests.models.steering.test_policies import policy_record


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, "all evictions", id="all"),
        pytest.param(
            {"for": {"zones": list("abcd"), "nodeLabels": ["pool=gpu"], "priority": {"below": 1000}}},
            "zones: a or b or c or 1 more; nodeLabels: pool=gpu; priority: below 1000",
            id="traits",
        ),
        pytest.param(
            {"for": {"clusters": ["c*"]}, "except": {"owners": ["Job"]}}, "clusters: c* except owners: Job", id="except"
        ),
    ],
)
def test_what_is_selected_in_words(spec: dict[str, Any], expected: str) -> None:
    policy = decode_policy(policy_record(spec={"observe": True, **spec}))
    assert policy.spec is not None
    assert selected_text(policy.spec) == expected
