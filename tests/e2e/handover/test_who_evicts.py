"""Who evicts what while the built-in evictor is on, and when: by the audit log of the API server.

A window of the built-in controller ends `MORE` after that of evictstream.
"""

from __future__ import annotations

import datetime as dt
import signal
import time
from collections.abc import Iterator
from typing import Final

import pytest

from evictstream.streams.broker.locate import Broker
from tests.e2e.handover.beside import BUILT_IN, OURS, Beside, beside_built_in
from tests.e2e.objects import NODES, pod, pods
from tests.e2e.processes import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.kafka, pytest.mark.usefixtures("built_binaries")]

MORE: Final = 20
LATE_SECONDS: Final = 5.0
"""On a busy machine."""

SEEN_SECONDS: Final = 3.0
"""So soon the worker knows what was created."""


@pytest.fixture(scope="module")
def beside(kafka: Broker, built_binaries: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Beside]:
    """The cluster of all cases; each has nodes of its own."""
    with beside_built_in(kafka, tmp_path_factory.mktemp("who-evicts")) as found:
        yield found


def wait_for_deletes(beside: Beside, *names: str) -> None:
    wait_until(lambda: beside.deletes().keys() >= set(names))


def is_near(at: float, wanted: float) -> bool:
    """Whether something came when it had to, and not before."""
    return wanted <= at <= wanted + LATE_SECONDS


def test_pods_behind_the_policy_are_ours(beside: Beside) -> None:
    """Before the policy, or untolerated: the built-in controller's."""
    beside.nodes("live-0", "live-1")
    client = beside.fleet.client
    beside.fill("live-0", {"before": 6})
    client.create(pods(), pod("before-dead", "live-1"))
    beside.admission.use(MORE)
    beside.fill("live-0", {"behind": 6, "behind-at-once": 0, "behind-for-ever": None})
    client.create(pods(), pod("behind-untolerated", "live-0"))
    client.create(pods(), pod("behind-dead", "live-1"))
    time.sleep(SEEN_SECONDS)
    tainted_at = beside.taint("live-0")
    beside.fleet.nodes.silence(["live-1"])
    wait_for_deletes(beside, "before", "before-dead", "behind", "behind-at-once", "behind-untolerated", "behind-dead")
    ours = beside.seconds_after(tainted_at, OURS, ["behind", "behind-at-once"])
    assert is_near(ours["behind"], 6)
    assert is_near(ours["behind-at-once"], 0)
    theirs = beside.seconds_after(tainted_at, BUILT_IN, ["before", "behind-untolerated"])
    assert is_near(theirs["before"], 6)
    assert is_near(theirs["behind-untolerated"], 0)
    (unreachable,) = [
        dt.datetime.fromisoformat(each["timeAdded"]).timestamp()
        for each in client.get(f"{NODES}/live-1")["spec"]["taints"]
        if each["effect"] == "NoExecute"
    ]
    assert is_near(beside.seconds_after(unreachable, OURS, ["behind-dead"])["behind-dead"], 5)
    assert is_near(beside.seconds_after(unreachable, BUILT_IN, ["before-dead"])["before-dead"], 5)
    assert all(each.names_uid for name in ("behind", "behind-dead") for each in beside.deletes()[name])
    assert "behind-for-ever" in beside.fleet.alive()


def test_edits_count_until_the_backstop_comes(beside: Beside) -> None:
    """The timer of the built-in controller is never set again, so it ends what was prolonged beyond it."""
    beside.admission.use(MORE)
    beside.nodes("edit-0", "edit-1")
    edited = {"longer": 6, "shorter": 60, "for-ever": 7, "made-again": 8, "beyond-the-backstop": 8}
    beside.fill("edit-0", edited)
    beside.fill("edit-1", {"untainted": 6})
    time.sleep(SEEN_SECONDS)
    tainted_at = beside.taint("edit-0")
    beside.taint("edit-1")
    time.sleep(2.0)  # in the windows
    beside.edit("longer", 20)
    beside.edit("shorter", 5)
    beside.edit("for-ever", None)
    beside.edit("beyond-the-backstop", 200)
    beside.untaint("edit-1")
    made_at = beside.make_again("made-again", "edit-0", 8)
    wait_for_deletes(beside, "longer", "shorter", "made-again", "beyond-the-backstop")
    ours = beside.seconds_after(tainted_at, OURS, ["longer", "shorter"])
    assert is_near(ours["longer"], 20)
    assert is_near(ours["shorter"], 5)
    assert is_near(beside.seconds_after(made_at, OURS, ["made-again"])["made-again"], 8)
    theirs = beside.seconds_after(tainted_at, BUILT_IN, ["beyond-the-backstop"])
    assert is_near(theirs["beyond-the-backstop"], 8 + MORE)
    assert {"for-ever", "untainted"} <= beside.fleet.alive()


def test_restarted_controller_manager_evicts_nothing_of_ours(beside: Beside) -> None:
    beside.admission.use(MORE)
    beside.nodes("calm-0")
    beside.fill("calm-0", {"calm-15": 15, "calm-25": 25})
    time.sleep(SEEN_SECONDS)
    tainted_at = beside.taint("calm-0")
    time.sleep(5.0)  # in the window
    beside.fleet.plane.controller_manager.stop()
    beside.fleet.plane.controller_manager.start()
    wait_for_deletes(beside, "calm-15", "calm-25")
    ours = beside.seconds_after(tainted_at, OURS, ["calm-15", "calm-25"])
    assert is_near(ours["calm-15"], 15)
    assert is_near(ours["calm-25"], 25)


def test_backstop_evicts_while_no_worker_runs(beside: Beside) -> None:
    """Each pod goes `MORE` after its time."""
    beside.admission.use(MORE)
    beside.nodes("dead-worker-0")
    seconds = {"alone-5": 5, "alone-6": 6, "alone-0": 0, "alone-15": 15}
    beside.fill("dead-worker-0", seconds)
    beside.fleet.worker.send_signal(signal.SIGKILL)
    tainted_at = beside.taint("dead-worker-0")
    wait_for_deletes(beside, *seconds)
    beside.fleet.worker.kill_and_start()
    theirs = beside.seconds_after(tainted_at, BUILT_IN, list(seconds))
    assert all(is_near(theirs[name], wanted + MORE) for name, wanted in seconds.items()), theirs


def test_backstop_begins_anew_with_the_controller_manager(beside: Beside) -> None:
    """Later, and never earlier."""
    beside.admission.use(MORE)
    beside.nodes("both-dead-0")
    beside.fill("both-dead-0", {"late-5": 5})
    beside.fleet.worker.send_signal(signal.SIGKILL)
    beside.taint("both-dead-0")
    time.sleep(10.0)  # in the window
    beside.fleet.plane.controller_manager.stop()
    time.sleep(3.0)  # away
    began_at = dt.datetime.now(dt.UTC).timestamp()
    beside.fleet.plane.controller_manager.start()
    wait_for_deletes(beside, "late-5")
    beside.fleet.worker.kill_and_start()
    assert beside.seconds_after(began_at, BUILT_IN, ["late-5"])["late-5"] >= 5 + MORE


def test_without_a_backstop_nobody_else_evicts(beside: Beside) -> None:
    """The other variant: what is due waits for the worker. Seconds taken off the spec change nothing."""
    beside.admission.use(None)
    beside.nodes("no-backstop-0")
    beside.fill("no-backstop-0", {"waits-0": 0, "waits-3": 3, "no-seconds-7": 7})
    beside.fleet.worker.send_signal(signal.SIGKILL)
    tainted_at = beside.taint("no-backstop-0")
    beside.edit("no-seconds-7", None)
    time.sleep(12.0)  # in which all of them become due, and no one evicts
    assert {"waits-0", "waits-3", "no-seconds-7"} <= beside.fleet.alive()
    beside.fleet.worker.kill_and_start()
    wait_for_deletes(beside, "waits-0", "waits-3", "no-seconds-7")
    ours = beside.seconds_after(tainted_at, OURS, ["waits-0", "waits-3", "no-seconds-7"])
    assert min(ours.values()) >= 12


def test_no_pod_was_deleted_by_both(beside: Beside) -> None:
    """Over all cases above; but a pod of ours that terminates for ever on a dead node (semantics.md 13 row 14)."""
    by_both = {name: deletes for name, deletes in beside.deletes().items() if len({each.by for each in deletes}) > 1}
    assert by_both.keys() <= {"behind-dead"}
    assert all(deletes[0].by == OURS for deletes in by_both.values())
