"""The index finds the toleration that trying one after another finds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evictstream.models.kubernetes import NO_EXECUTE, Taint, Toleration, first_match
from evictstream.models.kubernetes.matching import looks_at_value
from evictstream.models.kubernetes.toleration_index import TolerationIndex

KEYS = st.sampled_from(["", "a", "b"])
VALUES = st.sampled_from(["", "x", "-3", "0", "4", "5", "6", "07", "9" * 19, "9" * 21])
TOLERATIONS = st.builds(
    Toleration,
    KEYS,
    st.sampled_from(["", "Equal", "Exists", "Gt", "Lt", "Near"]),
    VALUES,
    st.sampled_from(["", NO_EXECUTE, "NoSchedule"]),
    st.sampled_from([None, -1, 5]),
)


@given(tolerations=st.lists(TOLERATIONS, max_size=12), key=KEYS, value=VALUES, comparison_operators=st.booleans())
def test_any_list_of_tolerations_gives_the_same(
    tolerations: list[Toleration], key: str, value: str, *, comparison_operators: bool
) -> None:
    taint = Taint(key, value, NO_EXECUTE)
    index = TolerationIndex(tolerations, NO_EXECUTE, comparison_operators=comparison_operators)
    found = first_match(tolerations, taint, comparison_operators=comparison_operators)
    assert index.first_match(taint) is found
    if found is not None:
        looks = looks_at_value(tolerations, taint, in_use=found, comparison_operators=comparison_operators)
        assert index.looks_at_value(taint) is looks


@pytest.mark.parametrize(
    ("operator", "bounds", "number", "position"),
    [
        pytest.param("Gt", [9, 5, 7, 3], 6, 1, id="Gt, the first bound below"),
        pytest.param("Gt", [9, 5, 7, 3], 5, 3, id="Gt does not let its bound in"),
        pytest.param("Gt", [9, 5, 7, 3], 2, None, id="Gt, all bounds above"),
        pytest.param("Lt", [1, 5, 3, 9], 4, 1, id="Lt, the first bound above"),
        pytest.param("Lt", [1, 5, 3, 9], 5, 3, id="Lt does not let its bound in"),
        pytest.param("Lt", [1, 5, 3, 9], 9, None, id="Lt, all bounds below"),
    ],
)
def test_the_first_bound_in_pod_order_counts(
    operator: str, bounds: list[int], number: int, position: int | None
) -> None:
    tolerations = [Toleration("a", operator, str(bound)) for bound in bounds]
    index = TolerationIndex(tolerations, NO_EXECUTE, comparison_operators=True)
    found = index.first_match(Taint("a", str(number), NO_EXECUTE))
    assert found is (None if position is None else tolerations[position])
