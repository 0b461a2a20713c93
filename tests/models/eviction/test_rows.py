from __future__ import annotations

import itertools
from collections.abc import Callable

import msgspec
import pytest

from evictstream.models.eviction import (
    Changes,
    CorruptRowError,
    RowError,
    RowKind,
    RowLoader,
    UnknownRowKeyError,
    UnsupportedFormatError,
    row_key,
    split_row_key,
    wakeups,
)
from evictstream.models.eviction.pod_rows import deleted_pod_value, read_deleted_pod_value
from evictstream.models.eviction.row_format import FORMAT
from evictstream.models.eviction.state import DeletionMemory
from evictstream.models.kubernetes import Taint, Toleration
from tests.models.eviction.scene import DELETED, SICK, A, Scene, assert_same, in_cluster, tolerate, us

NODE_KEY = "prod-eu-1/node-0123"
NEW_POD = row_key(RowKind.POD, NODE_KEY, "pod-8")
HUGE = Toleration("b", "Exists", "", "NoExecute", 10**30)


def full() -> Scene:
    """A scene with a row of every kind."""
    scene = Scene()
    scene.pod(0, tolerate("a", 60), HUGE, tolerate("", 5))
    scene.pod(1, uid="pod-2", name="web-1", phase="Failed")
    scene.node(2, A, Taint("a", "v", "NoSchedule"), SICK, ready="False")
    scene.pod(3, uid="pod-3", name="web-2")
    scene.pod(4, uid="pod-3", name="web-2", event_type=DELETED)
    scene.node(4, uid="node-0", event_type=DELETED)
    return scene


def loaders() -> list[RowLoader]:
    """One that knows nothing yet, and one that knows a node, its pods and their evictions."""
    knowing = RowLoader()
    for key, value in full().table.items():
        knowing.load(key, value)
    return [RowLoader(), knowing]


def test_every_order_of_rows_gives_the_same() -> None:
    scene = full()
    assert {split_row_key(key)[0] for key in scene.table} == set(RowKind)
    for order in itertools.permutations(scene.table):
        loader = RowLoader()
        for key in order:
            loader.load(key, scene.table[key])
        assert_same(in_cluster(loader), scene.aggregate)


def test_log_of_all_rows_with_deletions_gives_the_same() -> None:
    scene = Scene()
    steps: list[Callable[[], Changes]] = [
        lambda: scene.pod(0, tolerate("a", 60)),
        lambda: scene.node(0, A),
        lambda: scene.node(1),
        lambda: scene.node(2, A),
        lambda: scene.pod(3, tolerate("a", 60), tolerate("b")),
        lambda: scene.fire(62),
        lambda: scene.pod(63, uid="pod-2"),
        lambda: scene.pod(64, uid="pod-2", event_type=DELETED),
        lambda: scene.pod(65, uid="pod-4"),
        lambda: scene.node(66, event_type=DELETED),
        lambda: scene.expire(10_000),
        lambda: scene.forget(10_001),
    ]
    loader = RowLoader()
    for step in steps:
        for key, value in reversed(step().rows):
            loader.load(key, value)
        assert_same(in_cluster(loader), scene.aggregate)


def test_tolerations_and_taints_are_shared_after_loading() -> None:
    scene = full()
    scene.pod(9, tolerate("a", 60), HUGE, tolerate("", 5), uid="pod-9", name="web-9")
    scene.restart()
    pods = scene.aggregate.pods
    assert pods["pod-1"].tolerations is pods["pod-9"].tolerations
    evictions = [pods[uid].eviction for uid in ("pod-1", "pod-9")]
    first, ninth = (eviction.due for eviction in evictions if eviction is not None)
    assert first.taint is ninth.taint
    assert first.toleration is ninth.toleration


def test_wakeups_after_loading() -> None:
    scene = full()
    assert set(wakeups(scene.aggregate)) == {(us(7), "pod-1"), (us(4 + 3600), "")}
    scene.fire(7)
    assert {uid for _, uid in wakeups(scene.aggregate)} == {"pod-1", ""}
    scene.pod(8, tolerate("a", 60), terminating=True)
    assert set(wakeups(scene.aggregate)) == {(us(4 + 3600), "")}


def test_wakeups_can_be_asked_for_again_at_any_time() -> None:
    scene = full()
    scene.restart()
    assert set(wakeups(scene.aggregate)) == scene.timers
    scene.pod(8, uid="pod-1", event_type=DELETED)
    scene.expire(4 + 3600)
    assert set(wakeups(scene.aggregate)) == {(us(8 + 3600), "")}
    assert scene.aggregate.purge_at_us == us(8 + 3600), "no other wake-up is asked for while this one is set"


def test_a_pod_that_was_evicted_keeps_its_owner() -> None:
    memory = DeletionMemory(5, 10, 1, evicted_for="a", evicted_us=3, owner=("x", "ReplicaSet", "web"))
    key, value = row_key(RowKind.DELETED_POD, "c/n", "u"), deleted_pod_value(memory)
    assert read_deleted_pod_value(key, value) == memory
    of_before = msgspec.msgpack.encode(msgspec.msgpack.decode(value)[:-1])
    assert read_deleted_pod_value(key, of_before) == msgspec.structs.replace(memory, owner=None)


def test_keys() -> None:
    assert row_key(RowKind.NODE, "c/n") == b"node\0c/n"
    assert row_key(RowKind.POD, "c/n", "u") == b"pod\0c/n\0u"
    assert row_key(RowKind.EVICTION, "c/n", "u") == b"eviction\0c/n\0u"
    assert row_key(RowKind.DELETED_POD, "c/n", "u") == b"gone\0c/n\0u"
    for kind in RowKind:
        uid = "" if kind is RowKind.NODE else "u"
        assert split_row_key(row_key(kind, "c/n", uid)) == (kind, "c/n", uid)


@pytest.mark.parametrize(
    "key",
    [
        b"",
        b"node",
        b"other\0c/n",
        b"pod\0c/n",
        b"node\0c/n\0u",
        b"pod\0c\0u",
        b"node\0\xff/n",
        b"\xff\0c/n",
        b"pod\0prod-eu-1/node-0123\0\xff",
        b"eviction\0prod-eu-1/node-0123\0\xff",
    ],
)
def test_unknown_keys_are_refused(key: bytes) -> None:
    for loader in loaders():
        with pytest.raises(UnknownRowKeyError):
            loader.load(key, b"")


def test_uid_with_nul_loads() -> None:
    scene = full()
    scene.pod(9, tolerate("a", 60), uid="pod\0other", name="web-9")
    scene.restart()
    assert scene.aggregate.pods["pod\0other"].eviction is not None


def test_rows_of_another_format_are_refused() -> None:
    for key, value in (*full().table.items(), (NEW_POD, full().table[row_key(RowKind.POD, NODE_KEY, "pod-1")])):
        fields = msgspec.msgpack.decode(value)
        for other in ([1, *fields[1:]], [1], [3, *fields[1:]], [3, "all", "new"]):
            for loader in loaders():
                with pytest.raises(UnsupportedFormatError, match=f"format {other[0]}, this program writes {FORMAT}"):
                    loader.load(key, msgspec.msgpack.encode(other))


@pytest.mark.parametrize(
    "value", [b"", b"\xc1", b"{}", msgspec.msgpack.encode([FORMAT]), msgspec.msgpack.encode([]), b"\x01"]
)
def test_damaged_rows_are_refused(value: bytes) -> None:
    for key in (*full().table, NEW_POD):
        for loader in loaders():
            with pytest.raises(RowError) as caught:
                loader.load(key, value)
            assert caught.value.key == key
            assert isinstance(caught.value, CorruptRowError)


def test_versions_beyond_64_bit_survive() -> None:
    scene = Scene()
    scene.pod(0, version="9" * 40)
    scene.node(0, version="8" * 40)
    scene.restart()
    assert scene.aggregate.pods["pod-1"].version == int("9" * 40)
