"""What the torture has found: each story as short as it can be told."""

from __future__ import annotations

import json

import pytest

from evictstream.kit.oracle import Violation
from tests.faults.generate import VIRTUAL_START_US, generate
from tests.faults.objects import UNREACHABLE, Node, Pod, instant
from tests.faults.objects import watch_event as event
from tests.faults.plan import SIMULATED_KINDS, Change, Fault, FaultKind, Plan, Shape
from tests.faults.simulated.many import simulate_many
from tests.faults.simulated.run import Simulation

SECOND_US = 1_000_000


def at(seconds: float) -> int:
    return VIRTUAL_START_US + int(seconds * SECOND_US)


def tell(thing: Node | Pod, seconds: float, version: int) -> Change:
    topic = "nodes" if isinstance(thing, Node) else "pods"
    value = event(thing.cluster, "MODIFIED", thing.shown(version), at(seconds))
    return Change(at(seconds), "nodes" if topic == "nodes" else "pods", thing.key, value)


def tainted(window_seconds: int) -> list[Change]:
    """A node becomes unreachable after one second, with a pod that tolerates that for a while."""
    node = Node("c0", "n0", "node", [{"key": UNREACHABLE, "effect": "NoExecute"}], "Unknown")
    toleration = {
        "key": UNREACHABLE,
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": window_seconds,
    }
    return [tell(Pod("c0", "ns", "p", "pod", "n0", [toleration]), 0.5, 1), tell(node, 1.0, 2)]


def play(changes: list[Change], *faults: Fault) -> tuple[list[Violation], int]:
    """Play it with one worker; returns what was wrong, and how many evictions were issued."""
    simulation = stage(changes, *faults)
    outcome = simulation.run()
    return list(outcome.violations), outcome.seen["evictions"]


def stage(changes: list[Change], *faults: Fault) -> Simulation:
    shape = Shape(active_seconds=10, quiet_seconds=20, partitions=1)
    plan = Plan(seed=1, shape=shape, start_at_us=VIRTUAL_START_US, changes=tuple(changes), faults=faults)
    return Simulation(plan, workers=1)


def test_a_worker_takes_over_again_after_losing_every_partition() -> None:
    """It committed no offsets any more, so the group never confirmed it, and the repair waited for that forever."""
    changes = [*tainted(2), tell(Node("c0", "n1", "other"), 1.5, 3)]
    violations, evictions = play(changes, Fault(FaultKind.DISK_FULL, 1.2, 2.0))
    assert violations == []
    assert evictions > 0


@pytest.mark.parametrize("jump_seconds", [2.0, 5.0], ids=["below the limit of a jump", "above it"])
def test_nothing_is_issued_early_after_a_jump_of_the_clock(jump_seconds: float) -> None:
    """Between two transactions a jump went unseen by the comparison with the brokers."""
    violations, evictions = play(tainted(4), Fault(FaultKind.CLOCK_STEP, 2.8, 8.0, jump_seconds))
    assert violations == []
    assert evictions > 0


def test_a_slow_transaction_does_not_confirm_a_fast_clock() -> None:
    """The brokers seemed to be ahead by as long as they had been frozen, and so did not see that our clock was."""
    changes = [*tainted(7), tell(Node("c0", "n1", "other"), 3.95, 3)]
    pause = Fault(FaultKind.BROKER_PAUSE, 4.0, 1.7)
    violations, evictions = play(changes, Fault(FaultKind.CLOCK_STEP, 1.5, 20.0, 2.0), pause)
    assert violations == []
    assert evictions > 0


def test_firing_resumes_without_input_after_the_clock_is_corrected() -> None:
    """The old transaction said forever that the clock was ahead, and a quiet partition had no new one."""
    changes = [*tainted(6), tell(Node("c0", "n1", "other"), 2.0, 3)]
    violations, evictions = play(changes, Fault(FaultKind.CLOCK_STEP, 1.5, 3.0, 2.0))
    assert violations == []
    assert evictions > 0


@pytest.mark.slow
def test_many_simultaneous_timers_neither_spin_nor_wait() -> None:
    """A full outbox let the timer service spin; it has to go on as soon as there is room, and only then."""
    node = Node("c0", "n0", "node", [{"key": "k", "effect": "NoExecute"}])
    pods = [tell(Pod("c0", "ns", f"p{number}", f"pod-{number}", "n0"), 0.5, number + 1) for number in range(100)]
    simulation = stage([*pods, tell(node, 4.0, 200)], Fault(FaultKind.BROKER_PAUSE, 4.005, 1.0))
    assert list(simulation.run().violations) == []
    evicts = [json.loads(entry.value or b"") for entry in simulation.broker.entries("commands")]
    first = [one["issuedAt"] for one in evicts if one["attempt"] == 1 and "~" not in one["podUid"]]
    assert len(first) == 100
    assert max(first) < instant(at(5.6))


@pytest.mark.parametrize("has_kip_890", [False, True], ids=["before KIP-890", "KIP-890"])
@pytest.mark.parametrize("seed", [1090, pytest.param(1765, marks=pytest.mark.slow)])
def test_other_partitions_after_a_failed_take_over_are_taken_over(seed: int, *, has_kip_890: bool) -> None:
    """The worker waited for the group to take offsets of partitions that were not assigned to it any more: forever."""
    assert Simulation(generate(seed, Shape()), has_kip_890=has_kip_890).run().violations == ()


@pytest.mark.parametrize(
    ("seed", "others"),
    [
        pytest.param(20, [FaultKind.NETWORK_CUT], id="committed"),
        pytest.param(135, [FaultKind.WORKER_KILL, FaultKind.BROKER_PAUSE], id="aborted"),
    ],
)
def test_transactions_without_their_markers_end_as_they_should(seed: int, others: list[FaultKind]) -> None:
    """A takeover found what its predecessor had left open, and ended it wrongly, or with its own first transaction."""
    (outcome,) = simulate_many([seed], kinds=(FaultKind.LEADER_MOVE, *others), processes=1)
    assert outcome.seen["markers left out"] > 0
    assert outcome.violations == ()


@pytest.mark.parametrize("seed", [37, 196])
def test_a_change_of_policies_lets_go_as_the_record_says(seed: int) -> None:
    """What an earlier revision held goes over the spread."""
    (outcome,) = simulate_many([seed], kinds=SIMULATED_KINDS, processes=1)
    assert outcome.seen["records of policies"] > 0
    assert outcome.violations == ()


@pytest.mark.parametrize("seed", [536, 601])
def test_gates_wait_until_the_inputs_are_read(seed: int) -> None:
    """With open gates a new owner evicts for taints that are gone, and schedules what it knows too little of."""
    (outcome,) = simulate_many([seed], kinds=SIMULATED_KINDS, processes=1)
    assert outcome.violations == ()
