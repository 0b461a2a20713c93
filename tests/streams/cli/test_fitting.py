from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evictstream.streams.cli.columns import GAP
from evictstream.streams.cli.fitting import Width, cut_domain, cut_end, cut_middle, fit

NARROWEST = 20

widths = st.builds(Width, st.integers(1, 60), st.none() | st.integers(1, 12), st.integers(0, 5))


@given(st.lists(widths, min_size=1, max_size=9), st.integers(NARROWEST, 120))
def test_lines_never_exceed_the_room(columns: list[Width], room: int) -> None:
    shown = fit(columns, room)
    assert 0 < sum(shown.values()) + len(GAP) * (len(shown) - 1) <= room
    if len(shown) > 1:
        assert all(columns[number].floor <= width <= columns[number].natural for number, width in shown.items())


@given(st.lists(widths, min_size=1, max_size=9))
def test_without_a_limit_every_cell_is_whole(columns: list[Width]) -> None:
    assert list(fit(columns, None).values()) == [column.natural for column in columns]


def test_the_highest_rank_is_left_out_first() -> None:
    columns = [Width(10), Width(10, rank=2), Width(10, rank=1)]
    assert list(fit(columns, 34)) == [0, 1, 2]
    assert list(fit(columns, 33)) == [0, 2]
    assert list(fit(columns, 21)) == [0]


def test_the_widest_column_yields_first() -> None:
    assert fit([Width(30, 5), Width(10, 5)], 32) == {0: 20, 1: 10}


@pytest.mark.parametrize(
    ("cut", "text", "shown"),
    [
        (cut_middle, "shop/cart-7d9f8b6c4-x2kq9", "shop/c…4-x2kq9"),
        (cut_middle, "short", "short"),
        (cut_domain, "node.kubernetes.io/unreachable", "unreachable"),
        (cut_domain, "example.com/maintenance=tonight", "mainte…tonight"),
        (cut_end, "a=1,b=2,c=3,d=4", "a=1,b=2,c=3,d…"),
    ],
)
def test_a_cut_keeps_what_tells_most(cut: object, text: str, shown: str) -> None:
    assert callable(cut)
    assert cut(text, 14) == shown


@given(st.text(max_size=40), st.integers(1, 30), st.sampled_from([cut_middle, cut_domain, cut_end]))
def test_a_cut_cell_is_never_wider(text: str, width: int, cut: object) -> None:
    assert callable(cut)
    assert len(cut(text, width)) <= width
