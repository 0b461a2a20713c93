from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evictstream.models.messages.cluster_names import (
    ANY_CLUSTER,
    LARGEST_KEY,
    LONGEST_CLUSTER_NAME,
    LONGEST_NODE_NAME,
    cluster_name_problem,
    usable_name,
)
from evictstream.models.messages.decoding import read_node_record, read_pod_record
from evictstream.models.messages.envelope import split_key
from evictstream.models.messages.events import Origin
from evictstream.models.messages.unreadable import Unreadable, UnreadableReason

ORIGIN = Origin("t", 0, 0)

EXAMPLES = ["lab", "Prod EU", " ", "a=b", "ü", "arn:aws:eks:eu-west-1:111122223333:cluster/shop", "*", "", "a\0b", "/"]


@pytest.mark.parametrize(
    "name",
    [*EXAMPLES, "n" * LONGEST_CLUSTER_NAME, "n" * (LONGEST_CLUSTER_NAME + 1), "ü" * LONGEST_CLUSTER_NAME],
    ids=lambda name: name[:12].replace("\0", "NUL") or "empty",
)
def test_a_name_is_one_where_keys_can_carry_it(name: str) -> None:
    node = "n" * LONGEST_NODE_NAME
    key = f"{name}/{node}".encode()
    if cluster_name_problem(name) is None:
        assert split_key(key) == (name, node)
        return
    with pytest.raises(Unreadable) as caught:
        split_key(key)
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
        ("*", "prod-eu-1"),
        ("", "prod-eu-1"),
    ],
)
def test_a_context_gives_a_name(context: str, name: str) -> None:
    assert usable_name(context) == name


@pytest.mark.parametrize("read", [read_node_record, read_pod_record])
@pytest.mark.parametrize("type_", ["HEARTBEAT", "LISTED", "FORGET"])
def test_no_signal_speaks_for_every_cluster(read: object, type_: str) -> None:
    listing: dict[str, object] = {"listing": {"resourceVersion": "1", "after": "", "through": None, "uids": {}}}
    value = {"cluster": ANY_CLUSTER, "type": type_} | (listing if type_ == "LISTED" else {})
    with pytest.raises(Unreadable) as caught:
        read(f"{ANY_CLUSTER}/".encode(), msgspec.json.encode(value), 0, ORIGIN)  # type: ignore[operator]
    assert caught.value.reason is UnreadableReason.BAD_KEY


def test_a_key_and_its_limit_are_of_one_size() -> None:
    assert len(f"{'c' * LONGEST_CLUSTER_NAME}/{'n' * LONGEST_NODE_NAME}") == LARGEST_KEY
