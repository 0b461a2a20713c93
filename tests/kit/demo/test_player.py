from __future__ import annotations

from evictstream.kit.demo.player import HEARTBEAT_US, Heartbeats, Player
from evictstream.models.instants import instant_us
from tests.kit.demo.samples import START_US, node, pod, us

EVENTS = [node(0), pod(0), node(2), node(5)]
NOW_US = us(1_000_000)


def test_events_come_at_their_own_pace_with_their_time_moved() -> None:
    player = Player(EVENTS, start_us=NOW_US)
    assert [event["object"]["kind"] for event in player.due(NOW_US)] == ["Node", "Pod"]
    assert list(player.due(NOW_US + 1_999_999)) == []
    (second,) = player.due(NOW_US + 2_100_000)
    assert instant_us(second["observedAt"]) == NOW_US + 2_000_000
    assert second["object"] is EVENTS[2]["object"]
    assert player.next_us() == NOW_US + 5_000_000
    assert len(list(player.due(NOW_US + 60_000_000))) == 1
    assert player.finished
    assert player.next_us() is None
    assert player.played == player.planned()


def test_speed_shortens_distances_and_nothing_else() -> None:
    player = Player(EVENTS, start_us=NOW_US, speed=2)
    assert [instant_us(event["observedAt"]) - NOW_US for event in player.planned()] == [0, 0, 1_000_000, 2_500_000]
    assert player.end_us == NOW_US + 2_500_000


def test_the_recording_itself_is_left_alone() -> None:
    list(Player(EVENTS, start_us=NOW_US).due(NOW_US + 60_000_000))
    assert instant_us(EVENTS[0]["observedAt"]) == START_US


def test_heartbeats_each_five_seconds_also_after_a_pause() -> None:
    beats = Heartbeats(NOW_US)
    assert beats.due(NOW_US)
    assert not beats.due(NOW_US + HEARTBEAT_US - 1)
    assert beats.due(NOW_US + 3 * HEARTBEAT_US)
    assert not beats.due(NOW_US + 4 * HEARTBEAT_US - 1)
