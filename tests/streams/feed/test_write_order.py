from __future__ import annotations

import threading

import pytest

from evictstream.streams.feed.write_order import WriteOrder


@pytest.mark.parametrize(
    ("listed", "is_written"),
    [
        pytest.param(("uid", 6), False, id="older"),
        pytest.param(("uid", 7), False, id="the-same"),
        pytest.param(("uid", 8), True, id="newer"),
        pytest.param(("other", 1), True, id="another-object"),
    ],
)
def test_a_listing_writes_nothing_that_the_watch_has_written(listed: tuple[str, int], *, is_written: bool) -> None:
    order = WriteOrder()
    with order.beside_watch():
        with order.of_watch("uid", 7):
            pass
        with order.of_listing(*listed) as found:
            assert found is is_written


def test_what_the_watch_wrote_before_is_written_again() -> None:
    """The list was asked for later, so it holds at least as new a state."""
    order = WriteOrder()
    with order.of_watch("uid", 7):
        pass
    with order.beside_watch(), order.of_listing("uid", 7) as found:
        assert found
    with order.beside_watch(), order.of_watch("uid", 8):
        pass
    with order.of_listing("uid", 1) as found:
        assert found  # nothing runs beside the watch, so nothing is remembered


def test_one_object_is_written_after_the_other() -> None:
    order, entered = WriteOrder(), threading.Event()

    def write() -> None:
        with order.of_watch("uid", 1):
            entered.set()

    thread = threading.Thread(target=write)
    with order.of_listing("uid", 1):
        thread.start()
        assert not entered.wait(0.05)  # in which nothing may happen
    thread.join()
    assert entered.is_set()
