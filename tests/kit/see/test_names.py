from __future__ import annotations

import pytest

from evictstream.kit.see.names import check_known
from evictstream.streams.errors import FoundProblemError


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("prod-eu", "the service has no cluster prod-eu; did you mean prod-eu-1 or prod-us-1?"),
        ("zzz", "the service has no cluster zzz; known clusters: lab, prod-eu-1, prod-us-1"),
    ],
)
def test_an_unknown_name_is_answered_with_others(asked: str, said: str) -> None:
    with pytest.raises(FoundProblemError) as error:
        check_known("cluster", asked, ["prod-us-1", "lab", "prod-eu-1"])
    assert str(error.value) == said


def test_many_names_are_listed_in_part() -> None:
    with pytest.raises(FoundProblemError, match="n-17 and 90 more"):
        check_known("node", "zzz", (f"n-{number}" for number in range(100)))


def test_known_names_and_none_pass() -> None:
    check_known("cluster", "lab", ["lab"])
    check_known("cluster", None, [])
