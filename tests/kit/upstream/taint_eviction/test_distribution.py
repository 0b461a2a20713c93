"""semantics.md 6.1 and 6.2: FNV-1a, workers, waiting keys. Hashes are the published test vectors of FNV-1a, 32 bit."""

from __future__ import annotations

import pytest

from evictstream.kit.upstream.taint_eviction import (
    WORKERS,
    PodDeleted,
    PodKey,
    TaintEvictionController,
    TimerSet,
    WaitingKeys,
    fnv1a_32,
    worker_of,
)
from evictstream.models.kubernetes import NO_EXECUTE, NO_SCHEDULE, Node, Pod, Taint, Toleration

TAINT = Taint("a", "x", NO_EXECUTE, 1)
OTHER = Taint("b", "", NO_EXECUTE)
SOFT = Taint("c", "", NO_SCHEDULE)
STAY = (Toleration("", "Exists", "", NO_EXECUTE, 10),)


@pytest.mark.parametrize(
    ("text", "digest", "worker"),
    [
        ("", 0x811C9DC5, 5),
        ("a", 0xE40C292C, 4),
        ("b", 0xE70C2DE5, 5),
        ("c", 0xE60C2C52, 2),
        ("d", 0xE10C2473, 3),
        ("e", 0xE00C22E0, 0),
        ("f", 0xE30C2799, 1),
        ("ab", 0x4D2505CA, 2),
        ("abc", 0x1A47E90B, 3),
        ("fo", 0x6222E842, 2),
        ("foo", 0xA9F37ED7, 7),
        ("foob", 0x3F5076EF, 7),
        ("fooba", 0x39AAA18A, 2),
        ("foobar", 0xBF9CF968, 0),
    ],
)
def test_worker_of_a_node(text: str, digest: int, worker: int) -> None:
    """6.1: FNV-1a, 32 bit, modulo 8"""
    assert fnv1a_32(text) == digest
    assert WORKERS == 8
    assert worker_of(text) == worker


def test_a_worker_takes_node_keys_first() -> None:
    """6.1: "b" and "" are both of worker 5, "e" of worker 0"""
    keys = WaitingKeys()
    keys.put_pod(PodKey("ns/p", "b"))
    keys.put_pod(PodKey("ns/unbound", ""))
    keys.put_node("b")
    keys.put_pod(PodKey("ns/q", "e"))
    assert keys.take_all() == [PodKey("ns/q", "e"), "b", PodKey("ns/p", "b"), PodKey("ns/unbound", "")]
    assert keys.take_all() == []


def test_a_key_waits_once() -> None:
    keys = WaitingKeys()
    for _ in range(2):
        keys.put_node("b")
        keys.put_pod(PodKey("ns/p", "b"))
    assert keys.take_all() == ["b", PodKey("ns/p", "b")]


def test_a_pod_waits_once_per_node() -> None:
    """6.5.2: another key covers the other node"""
    keys = WaitingKeys()
    keys.put_pod(PodKey("ns/p", "e"))
    keys.put_pod(PodKey("ns/p", "b"))
    assert len(keys.take_all()) == 2


def is_handled(*nodes: tuple[Taint, ...]) -> bool:
    """Tell whether a node with the last of these taint lists is queued, after the others were handled."""
    controller = TaintEvictionController()
    for version, taints in enumerate(nodes[:-1]):
        controller.see_node(Node("n", "u", str(version), taints))
        controller.work(version)
    controller.see_node(Node("n", "u", "99", nodes[-1]))
    return controller._keys.take_all() == ["n"]


@pytest.mark.parametrize(
    ("old", "new", "queued"),
    [
        pytest.param((), (), False, id="6.2 no taints before and after"),
        pytest.param((), (TAINT,), True, id="6.2 taint added"),
        pytest.param((TAINT,), (), True, id="6.2 taint removed"),
        pytest.param((TAINT,), (TAINT,), False, id="6.2 same taint"),
        pytest.param((TAINT,), (Taint("a", "y", NO_EXECUTE, 1),), True, id="6.2 value counts as a difference"),
        pytest.param((TAINT,), (Taint("a", "x", NO_EXECUTE, 2),), True, id="6.2 timeAdded counts as a difference"),
        pytest.param((TAINT,), (Taint("a", "x", NO_EXECUTE),), True, id="6.2 timeAdded vanishes"),
        pytest.param((TAINT, OTHER), (OTHER, TAINT), True, id="6.2 order counts as a difference"),
        pytest.param((TAINT,), (TAINT, SOFT), False, id="6.2 only NoExecute taints are compared"),
        pytest.param((SOFT, TAINT), (TAINT, SOFT), False, id="6.2 other effects have no order"),
        pytest.param((SOFT,), (Taint("c", "", NO_EXECUTE),), True, id="6.2 effect becomes NoExecute"),
    ],
)
def test_node_updates_that_are_queued(old: tuple[Taint, ...], new: tuple[Taint, ...], queued: bool) -> None:  # noqa: FBT001
    assert is_handled(old, new) is queued


@pytest.mark.parametrize("taints", [(), (TAINT,)], ids=["6.2 node added, clean", "6.2 node added, tainted"])
def test_an_added_node_is_always_queued(taints: tuple[Taint, ...]) -> None:
    assert is_handled(taints)


LONG = (Toleration("a", "Exists", "", NO_EXECUTE, 10), Toleration("b", "Exists"))


@pytest.mark.parametrize(
    ("old", "new", "queued"),
    [
        pytest.param(Pod("ns", "p", "u", "1", "n"), Pod("ns", "p", "u", "2", "n"), False, id="6.2 nothing differs"),
        pytest.param(Pod("ns", "p", "u", "1"), Pod("ns", "p", "u", "2", "n"), True, id="6.2 nodeName differs"),
        pytest.param(
            Pod("ns", "p", "u", "1", "n"), Pod("ns", "p", "u", "2", "n", STAY), True, id="6.2 tolerations differ"
        ),
        pytest.param(
            Pod("ns", "p", "u", "1", "n", LONG),
            Pod("ns", "p", "u", "2", "n", LONG[::-1]),
            True,
            id="6.2 order of tolerations differs",
        ),
        pytest.param(
            Pod("ns", "p", "u", "1", "n", STAY),
            Pod("ns", "p", "u", "2", "n", STAY, "Failed", is_terminating=True, is_mirror=True),
            False,
            id="6.2 phase, deletion timestamp and mirror annotation do not count",
        ),
        pytest.param(
            Pod("ns", "p", "u", "1", "n", STAY),
            Pod("ns", "p", "another", "2", "n", STAY),
            False,
            id="6.2 UID does not count",
        ),
    ],
)
def test_pod_updates_that_are_queued(old: Pod, new: Pod, queued: bool) -> None:  # noqa: FBT001
    controller = TaintEvictionController()
    controller.see_pod(old)
    controller.work(0)
    controller.see_pod(new)
    assert bool(controller._keys.take_all()) is queued


def test_states_in_between_are_not_seen() -> None:
    """6.1: a taint put and taken back before its key is handled evicts nobody"""
    controller = TaintEvictionController()
    controller.see_pod(Pod("ns", "p", "u", "1", "n"))
    controller.see_node(Node("n", "u", "1"))
    controller.work(0)
    controller.see_node(Node("n", "u", "2", (TAINT,)))
    controller.see_node(Node("n", "u", "3"))
    assert controller.work(1) == []


def test_a_taint_removed_and_added_unseen_keeps_the_timer() -> None:
    """6.1, 6.6: off and on again before the key is handled is no removal"""
    controller = TaintEvictionController()
    controller.see_node(Node("n", "u", "1", (TAINT,)))
    controller.see_pod(Pod("ns", "p", "u", "1", "n", STAY))
    assert TimerSet(0, "ns/p", 10_000_000) in controller.work(0)
    controller.see_node(Node("n", "u", "2"))
    controller.see_node(Node("n", "u", "3", (TAINT,)))
    controller.work(4_000_000)
    assert controller.deadlines() == {"ns/p": 10_000_000}


def test_time_does_not_go_back() -> None:
    controller = TaintEvictionController()
    controller.work(5)
    with pytest.raises(ValueError, match="time went back from 5 to 4"):
        controller.advance(4)


def test_a_key_of_another_node_is_passed_over() -> None:
    """6.5.2: bound elsewhere by the time that the key is handled; the other key covers it, once"""
    controller = TaintEvictionController()
    controller.see_node(Node("n1", "u1", "1", (TAINT,)))
    controller.see_node(Node("n2", "u2", "1", (TAINT,)))
    controller.work(0)
    controller.see_pod(Pod("ns", "p", "one", "2", "n1"))
    controller.see_pod(Pod("ns", "p", "two", "3", "n2"))
    outcomes = controller.work(1)
    assert [one.uid for one in outcomes if isinstance(one, PodDeleted)] == ["two"]
