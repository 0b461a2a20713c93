"""Lets the faults of a plan happen to a simulation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.faults.plan import Fault, FaultKind
from tests.faults.simulated.world import SECOND_US

if TYPE_CHECKING:
    from tests.faults.simulated.run import Simulation
    from tests.faults.simulated.worker import Worker

AT_A_REQUEST_SECONDS = 1.0  # a worker is hit at one of its next requests, or after this long anyway
LEADER_MOVE_SECONDS = 0.4
LEADERS_COME_SECONDS = 4.0  # from the return of a broker until it leads all that it had led, transactions run out
OUTPUTS = ("commands", "decisions", "dead-letters", "changelog")


class Trouble:
    """Plans the faults of a plan, and undoes each after its duration."""

    def __init__(self, simulation: Simulation) -> None:
        self._on = simulation
        self._world = simulation.world
        self._broker = simulation.broker
        self._on_worker = {
            FaultKind.WORKER_KILL: self._kill,
            FaultKind.WORKER_TERM: self._term,
            FaultKind.WORKER_STOP_CONT: self._stop_and_continue,
            FaultKind.NETWORK_SLOW: self._slow,
            FaultKind.NETWORK_CUT: self._cut,
            FaultKind.CLOCK_STEP: self._step_clock,
        }
        self._on_brokers = {
            FaultKind.WORKER_JOIN: self._join,
            FaultKind.BROKER_KILL_RESTART: lambda fault: self._leaderless(fault.duration_seconds),
            FaultKind.BROKER_PAUSE: lambda fault: self._no_broker(fault.duration_seconds),
            FaultKind.LEADER_MOVE: lambda _fault: self._leaderless(LEADER_MOVE_SECONDS),
            FaultKind.PRODUCE_REFUSED: self._refuse,
            FaultKind.RECORD_TOO_LARGE: lambda _fault: None,  # is among the plan's changes
            FaultKind.DISK_FULL: self._fill,
        }

    def plan_faults(self) -> None:
        """Plan them all."""
        for fault in self._on.plan.faults:
            at_us = self._on.plan.start_at_us + int(fault.at_seconds * SECOND_US)
            self._world.at(at_us, lambda fault=fault: self._strike(fault))  # type: ignore[misc]

    def _strike(self, fault: Fault) -> None:
        """Let it happen; a fault of a worker does not count while none runs."""
        if fault.kind in self._on_brokers:
            self._on_brokers[fault.kind](fault)
        elif running := [worker for worker in self._world.workers if worker.is_running]:
            self._on_worker[fault.kind](fault, self._world.chance.choice(running))
        else:
            return
        self._on.seen[str(fault.kind)] += 1

    def _kill(self, _fault: Fault, worker: Worker) -> None:
        self._at_a_request(worker, worker.kill)

    def _at_a_request(self, worker: Worker, strike: object) -> None:
        """Strike at one of the worker's next requests, before or after the broker has carried it out."""
        done = False

        def once() -> None:
            nonlocal done
            if not done and callable(strike):
                done = True
                strike()

        worker.connection.sprung = once
        worker.connection.trap = self._world.chance.randint(1, 30)
        self._world.after(AT_A_REQUEST_SECONDS, once)

    def _term(self, _fault: Fault, worker: Worker) -> None:
        worker.stop()
        self._world.after(AT_A_REQUEST_SECONDS * 10, worker.kill)  # a supervisor's patience

    def _stop_and_continue(self, fault: Fault, worker: Worker) -> None:
        def pause() -> None:
            worker.is_paused = True
            self._world.after(fault.duration_seconds, go_on)

        def go_on() -> None:
            worker.is_paused = False

        self._at_a_request(worker, pause)

    def _join(self, fault: Fault) -> None:
        self._on.wanted_workers += 1
        worker = self._on.start_worker()

        def leave() -> None:
            self._on.wanted_workers -= 1
            worker.stop()

        self._world.after(1 + fault.duration_seconds, leave)

    def _no_broker(self, seconds: float) -> None:
        until_us = self._world.now_us + int(seconds * SECOND_US)
        self._broker.down_until_us = max(self._broker.down_until_us, until_us)

    def _leaderless(self, seconds: float) -> None:
        self._no_broker(seconds)
        come_us = self._world.now_us + int((seconds + LEADERS_COME_SECONDS) * SECOND_US)
        self._broker.leaderless_until_us = max(self._broker.leaderless_until_us, come_us)

    def _slow(self, fault: Fault, worker: Worker) -> None:
        worker.connection.extra_us += int(fault.amount * SECOND_US)

        def fast() -> None:
            worker.connection.extra_us -= int(fault.amount * SECOND_US)

        self._world.after(fault.duration_seconds, fast)

    def _cut(self, fault: Fault, worker: Worker) -> None:
        worker.connection.hold(fault.duration_seconds)

    def _refuse(self, fault: Fault) -> None:
        topic = self._world.chance.choice(OUTPUTS)
        self._broker.refused.add(topic)
        self._world.after(fault.duration_seconds, lambda: self._broker.refused.discard(topic))

    def _fill(self, fault: Fault) -> None:
        self._broker.is_full = True

        def clean() -> None:
            self._broker.is_full = False

        self._world.after(fault.duration_seconds, clean)

    def _step_clock(self, fault: Fault, worker: Worker) -> None:
        off_us = int(fault.amount * SECOND_US)
        worker.clock_off_us += off_us

        def back() -> None:
            worker.clock_off_us -= off_us

        self._world.after(fault.duration_seconds, back)
