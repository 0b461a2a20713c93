"""A join that the library has forgotten is asked for again; one that goes on is left alone."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from evictstream.streams.broker.group_membership import finish_joining


class Coordinator:
    """The part of kafka-python's that decides whether a member joins."""

    def __init__(self, *, rejoining: bool, needs: bool) -> None:
        self.rejoining = rejoining
        self.needs = needs
        self.asked = False

    def need_rejoin(self) -> bool:
        return self.needs

    def request_rejoin(self) -> None:
        self.asked = True


@pytest.mark.parametrize(
    ("rejoining", "needs", "asked"), [(True, False, True), (True, True, False), (False, False, False)]
)
def test_only_a_forgotten_join_is_asked_for_again(*, rejoining: bool, needs: bool, asked: bool) -> None:
    coordinator = Coordinator(rejoining=rejoining, needs=needs)
    finish_joining(SimpleNamespace(_coordinator=coordinator))

    assert coordinator.asked is asked
