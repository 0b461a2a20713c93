"""The oracle reads the annotation by the contract, and the product reads the same from any text."""

from __future__ import annotations

import json

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st

from evictstream.kit.oracle.handed_over import in_force
from evictstream.models.kubernetes import read_tolerations
from evictstream.models.kubernetes.handed_over import handed_over

SECONDS = st.integers(0, 3) | st.sampled_from([3600, 3605, -(2**63), 2**63 - 1, 2**63, 10**30, 10**9])
TEXTS = {
    "key": st.sampled_from(["", "a", "b"]),
    "operator": st.sampled_from(["", "Equal", "Exists"]),
    "value": st.sampled_from(["", "v"]),
}
SPEC = st.fixed_dictionaries(
    {"effect": st.sampled_from(["NoExecute", "NoExecute", "NoSchedule"])},
    optional=TEXTS | {"tolerationSeconds": SECONDS.filter(lambda seconds: abs(seconds) < 2**63)},
)
ODD: st.SearchStrategy[object] = st.sampled_from([None, True, 1.5, "5", [], {}, 2**63])
ENTRY = st.fixed_dictionaries(
    {"effect": st.just("NoExecute")},
    optional=TEXTS | {"tolerationSeconds": SECONDS, "builtInSeconds": SECONDS | st.none(), "unknown": ODD},
)
BROKEN = st.dictionaries(st.sampled_from(["key", "effect", "tolerationSeconds", "builtInSeconds"]), ODD)
TEXT = st.one_of(
    st.lists(ENTRY, max_size=4).map(json.dumps),
    st.lists(ENTRY | BROKEN | ODD, max_size=4).map(json.dumps),
    st.recursive(ODD, st.lists).map(json.dumps),
    st.text(max_size=20),
)


@given(st.lists(SPEC, max_size=4), TEXT)
@example([], '[{"unknown":"\\ud800"}]')
@example([], "[NaN]")
def test_oracle_and_product_read_the_same(spec: list[dict[str, object]], annotation: str) -> None:
    read = handed_over(read_tolerations(msgspec.json.encode(spec)), annotation).tolerations
    assert [one.toleration_seconds for one in read] == [
        one.get("tolerationSeconds") for one in in_force(spec, annotation)
    ]
