from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evictstream.models.messages.cluster_names import LONGEST_CLUSTER_NAME, cluster_name_problem, usable_name
from evictstream.models.messages.envelope import cluster_of
from evictstream.models.messages.unreadable import Unreadable, UnreadableReason

EXAMPLES = ["lab", "Prod EU", " ", "a=b", "ü", "arn:aws:eks:eu-west-1:111122223333:cluster/shop", "*", "", "a\0b", "/"]


@pytest.mark.parametrize(
    "name",
    [*EXAMPLES, "n" * LONGEST_CLUSTER_NAME, "n" * (LONGEST_CLUSTER_NAME + 1), "ü" * LONGEST_CLUSTER_NAME],
    ids=lambda name: name[:12].replace("\0", "NUL") or "empty",
)
def test_a_name_is_one_where_keys_can_carry_it(name: str) -> None:
    key = name.encode()
    if cluster_name_problem(name) is None:
        assert cluster_of(key) == name
        return
    with pytest.raises(Unreadable) as caught:
        cluster_of(key)
    assert caught.value.reason is UnreadableReason.BAD_KEY


@given(st.text(max_size=20) | st.text(alphabet="a/*\0- :", max_size=8))
def test_what_is_made_of_any_text_is_a_name(text: str) -> None:
    assert cluster_name_problem(usable_name(text)) is None


@pytest.mark.parametrize(
    ("context", "name"),
    [
        ("arn:aws:eks:eu-west-1:111122223333:cluster/shop", "shop"),
        ("default/api-lab-example-com:6443/admin", "default-api-lab-example-com:6443-admin"),
        ("admin@eu/", "admin@eu"),
        ("", "prod-eu-1"),
    ],
)
def test_a_context_gives_a_name(context: str, name: str) -> None:
    assert usable_name(context) == name
