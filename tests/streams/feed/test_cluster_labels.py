from __future__ import annotations

import pytest

from evictstream.streams.errors import WrongUseError
from evictstream.streams.feed.cluster_labels import labels_of


def test_labels_are_read_as_kubernetes_writes_them() -> None:
    texts = ["tier=gold", "topology.example.com/site=fra-1", "empty="]
    assert labels_of(texts) == {"tier": "gold", "topology.example.com/site": "fra-1", "empty": ""}


@pytest.mark.parametrize(
    "texts",
    [
        ["tier"],
        ["=gold"],
        ["tier=a", "tier=b"],
        ["-tier=gold"],
        ["tier=gold bar"],
        ["UPPER.case/tier=gold"],
        ["/tier=gold"],
        [f"{'k' * 64}=v"],
        [f"k={'v' * 64}"],
        [f"k{number}=v" for number in range(51)],
    ],
    ids=lambda texts: texts[0][:20],
)
def test_what_is_no_label_is_wrong_use(texts: list[str]) -> None:
    with pytest.raises(WrongUseError):
        labels_of(texts)
